"""`ptncn reproduce`: every experiment at the smallest scale, end to end."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands import call
from ptncn.experiments.prediction import VIDEO_ROWS
from ptncn.records import read_record


def run(*arguments, exit_code=0):
    return call("reproduce", *arguments, exit_code=exit_code)


def test_prediction_zero_shot_one_shot_and_out_of_domain_share_their_training(working_directory):
    options = ("--scale", "smoke", "--json", "--learners", "ptncn,lstm-bptt")
    cells = json.loads(run("prediction", *options).stdout)
    assert set(cells) == {"test_ce", "test_se", "future_ce", "future_se", "valid_bpc", "test_bpc"}
    assert set(cells["test_se"]["ptncn"]) == {"mnist", "notmnist"}
    assert set(cells["test_bpc"]["lstm-bptt"]) == {"ptb"}
    trained = sorted((working_directory / "runs").rglob("finished.safetensors"))
    stamps = [path.stat().st_mtime_ns for path in trained]
    assert len(trained) == 7

    zero = json.loads(run("zero-shot", *options).stdout)
    assert set(zero["ce"]["ptncn"]) == {"notmnist-to-mnist", "mnist-to-notmnist"}
    one = json.loads(run("one-shot", *options).stdout)
    assert set(one["se"]["lstm-bptt"]) == {"one-shot notmnist", "zero-shot fashion-mnist"}
    other = json.loads(run("out-of-domain", *options).stdout)
    assert other["se"]["ptncn"]["mnist 2"] == pytest.approx(cells["test_se"]["ptncn"]["mnist"])
    assert [path.stat().st_mtime_ns for path in trained] == stamps

    records = [read_record(file) for file in (working_directory / "results").rglob("*.json")]
    assert len(records) == 7 + 4 + 2 + 4
    for record in records:
        assert record.status == "finished"
        assert record.config
        assert record.learner["seed"] == 0
        assert all(len(each["sha256"]) == 64 for each in record.datasets.values())
        assert record.stand_ins
    film = read_record(working_directory / "results/smoke/zero-shot/ptncn-mnist-to-notmnist-0.json").films["test"]
    assert film["prediction"]["shape"] == [20, 2, 1024]
    assert film["observation_shape"] == [32, 32]


def test_the_network_that_does_not_correct_its_states_is_the_trained_one(working_directory):
    rows = ("ptncn-best", "ptncn-best-uncorrected")
    options = ("--scale", "smoke", "--json", "--learners", ",".join(rows), "--data", "mnist-to-notmnist")
    errors = json.loads(run("zero-shot", *options).stdout)["se"]
    assert len(list((working_directory / "runs").rglob("finished.safetensors"))) == 1
    plain, uncorrected = (
        read_record(working_directory / f"results/smoke/zero-shot/{row}-mnist-to-notmnist-0.json").learner
        for row in rows
    )
    assert uncorrected == {**plain, "beta": 0.0, "gamma": 0.0, "lam": 0.0}
    assert errors[rows[0]] != errors[rows[1]]


def test_every_baseline_of_table_one_runs(working_directory):
    result = run("prediction", "--scale", "smoke", "--data", "mnist")
    assert "(79.67)" in result.stdout
    assert "significant" in result.stdout
    assert "exact RTRL has 2 units here" in result.stderr
    assert len(list((working_directory / "results/smoke/prediction").glob("*.json"))) == len(VIDEO_ROWS)


def test_continual_learning_gives_the_matrix_and_its_summary():
    cells = json.loads(run("continual", "--scale", "smoke", "--learners", "ptncn,lstm-rtrl", "--json").stdout)
    assert len(cells["se"]["ptncn"]) == 6
    assert cells["forgetting"]["ptncn"] == pytest.approx(-cells["backward_transfer"]["ptncn"])
    assert {"average", "forward_transfer", "prequential_se"} < set(cells)
    records = [read_record(file) for file in Path("results").rglob("*.json")]
    assert len(records) == 4
    record = records[0]
    assert len(record.metrics["matrix"]["losses"]) == 4
    assert [name for _, name in record.curve["changes"]] == ["bouncing-digits", "bouncing-letters", "bouncing-shapes"]


def test_discrete_prints_exactly_what_other_programs_expect():
    cells = json.loads(run("discrete", "--scale", "smoke", "--json").stdout)
    assert list(cells) == ["prequential_se"]
    assert list(cells["prequential_se"]) == ["sign", "tanh", "cosine", "untrained"]
    assert cells["prequential_se"]["cosine"] == pytest.approx(0.0004, rel=0.1)
    assert cells["prequential_se"]["sign"] < 0.1 < cells["prequential_se"]["untrained"]


def test_complexity_fits_exponents_for_every_learner():
    cells = json.loads(run("complexity", "--scale", "smoke", "--learners", "ptncn,rnn-rtrl,rnn-bptt", "--json").stdout)
    assert set(cells["time_exponent_units"]) == {"ptncn", "rnn-rtrl", "rnn-bptt"}
    assert cells["memory_exponent_units"]["rnn-rtrl"] > cells["memory_exponent_units"]["rnn-bptt"]
    assert cells["memory_exponent_length"]["ptncn"] == pytest.approx(0.0)
    assert cells["memory_exponent_length"]["rnn-bptt"] > 0.5


def test_a_failed_run_records_the_reason_and_the_others_continue(working_directory, monkeypatch):
    from ptncn.experiments import discrete
    from ptncn.experiments.experiment import Row

    monkeypatch.setitem(discrete.VARIANTS, "tanh", Row("ptncn", {"activation": "tanh", "lr": -1.0}))
    result = run("discrete", "--scale", "smoke", "--learners", "tanh,cosine", exit_code=1)
    assert "got -1.0" in result.stderr
    assert "Traceback" not in result.output
    assert read_record("results/smoke/discrete/tanh-noisy-cosine-0.json").status == "failed"
    assert read_record("results/smoke/discrete/cosine-noisy-cosine-0.json").status == "finished"


def test_wrong_names_give_one_line_errors():
    assert "prediction, continual" in run("predict", exit_code=1).stderr
    assert "choose one of: smoke, laptop, paper" in run("discrete", "--scale", "tiny", exit_code=1).stderr


def test_resume_skips_finished_runs(working_directory):
    arguments = ("discrete", "--scale", "smoke", "--models", "cosine", "--json")
    run(*arguments)
    path = working_directory / "results/smoke/discrete/cosine-noisy-cosine-0.json"
    before = path.read_bytes()
    run(*arguments, "--resume")
    assert path.read_bytes() == before


def command(*arguments):
    return [sys.executable, "-m", "ptncn", "reproduce", *arguments]


def test_killed_and_resumed_it_ends_with_the_same_numbers(working_directory):
    arguments = ["continual", "--scale", "smoke", "--learners", "ptncn", "--seeds", "1", "--json"]
    whole = run(*arguments).stdout
    expected = read_record(next((working_directory / "results").rglob("*.json")))

    arguments += ["--out", "killed", "--runs", "killed-runs", "--checkpoint-every", "0"]
    process = subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 1200
    while not list((working_directory / "killed-runs").rglob("progress.safetensors")) and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[1].decode()
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert read_record(next((working_directory / "killed").rglob("*.json"))).status == "running"

    assert run(*arguments, "--resume").stdout == whole
    record = read_record(next((working_directory / "killed").rglob("*.json")))
    assert record.metrics == expected.metrics
    assert record.errors == expected.errors
    assert record.curve == expected.curve


def test_sigterm_leaves_a_checkpoint_and_prints_the_command_that_continues(working_directory):
    process = subprocess.Popen(
        command("discrete", "--scale", "laptop", "--learners", "sign", "--jobs", "2", "--checkpoint-every", "0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 1200
    while not list((working_directory / "runs").rglob("progress.safetensors")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, printed = process.communicate(timeout=1200)
    assert process.returncode == 130
    assert "--resume" in printed
    assert "Traceback" not in printed


def test_tuning_searches_continues_and_writes_a_config_that_is_used(working_directory):
    pytest.importorskip("optuna")
    arguments = ["tune", "lstm-bptt", "mnist", "--scale", "smoke", "--trials", "2", "--json"]
    assert json.loads(call(*arguments).stdout)["study"]["trials"] == 2
    assert json.loads(call(*arguments).stdout)["study"]["trials"] == 4
    config = json.loads((working_directory / "configs/lstm-bptt-mnist.json").read_text())
    assert config["validation"] == min(each["value"] for each in config["study"]["best"])
    assert "lstm-bptt" in call("tune", "lstm", "mnist", exit_code=1).stderr
