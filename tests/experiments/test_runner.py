"""The training loop: what it learns, and that it stops and resumes anywhere."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from ptncn.data import ArraySequences, CosineStream
from ptncn.experiments import runner
from ptncn.experiments.config import TEXT, VIDEO
from ptncn.experiments.phases import epoch_phases, training_run
from ptncn.experiments.run import Interrupted, RunContext, RunSpec
from ptncn.experiments.runner import execute, train
from ptncn.metrics import CE
from ptncn.records import unpack
from ptncn.training import evaluate

TINY = replace(VIDEO["smoke"], sequences=60, valid=20, units=8, gated_units=8)


def spec(learner, data, seed, config, **others):
    defaults = {"experiment": "prediction", "scale": "smoke", "row": learner, "tuned": None, **others}
    return RunSpec(learner=learner, data=data, seed=seed, config=config, **defaults)


def context(folder, **others):
    return RunContext(folder, **{"every": 1e9, **others})


def weights(learner):
    return {name: value.clone() for name, value in learner.state_dict().items()}


def assert_same(one, other):
    assert one.phases == other.phases
    assert one.curve == other.curve
    ours, theirs = weights(one.learner), weights(other.learner)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_an_lstm_is_as_good_as_twenty_lines_of_plain_pytorch(tmp_path):
    """The same data in the same order from the same weights gives the same losses up to rounding."""
    run_spec = spec("lstm-bptt", "digits", 0, replace(TINY, epochs=1, decay=1.0))
    ours = execute(training_run(run_spec), context(tmp_path))

    start = training_run(run_spec).start()
    lstm, readout = nn.LSTM(1024, 8), nn.Linear(8, 1024)
    lstm.load_state_dict(start.cell.state_dict())
    readout.load_state_dict(start.readout.state_dict())
    parameters = [*lstm.parameters(), *readout.parameters()]
    optimizer = torch.optim.RMSprop(parameters, lr=1e-2)
    losses = []
    for x, _ in run_spec.splits.train.batches(20, shuffle_seed=0, epoch=0):
        logits = readout(lstm(x[:-1])[0])
        loss = nn.functional.binary_cross_entropy_with_logits(logits, x[1:], reduction="none").sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        losses.append(loss.item())

    assert ours.metric("train/0", "ce") == pytest.approx(np.mean(losses), rel=1e-5)
    for name, value in lstm.state_dict().items():
        torch.testing.assert_close(ours.learner.cell.state_dict()[name], value, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["ptncn", "lstm-bptt", "lstm-uoro", "esn-ridge"])
def test_an_interrupted_run_ends_with_the_same_numbers(tmp_path, monkeypatch, name):
    run_spec = spec(name, "digits", 0, TINY)
    whole = execute(training_run(run_spec), context(tmp_path / "whole"))
    calls, real = [], runner._run_batch

    def fail(*arguments):
        calls.append(1)
        if len(calls) in (2, 5, 7):
            raise RuntimeError("power cut")
        real(*arguments)

    monkeypatch.setattr(runner, "_run_batch", fail)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="power cut"):
            execute(training_run(run_spec), context(tmp_path / "broken", every=0, resume=True))
    assert_same(execute(training_run(run_spec), context(tmp_path / "broken", every=0, resume=True)), whole)


def test_text_and_selection_by_validation_resume(tmp_path, monkeypatch):
    run_spec = spec("gru-bptt", "python-reference", 1, replace(TEXT["smoke"], sequences=40))
    whole = execute(training_run(run_spec), context(tmp_path / "whole"))
    stopping = context(tmp_path / "stopped", resume=True)
    seen, real = [], runner._run_batch

    def run_batch(*arguments):
        real(*arguments)
        seen.append(1)
        stopping.stop.requested = len(seen) == 4

    monkeypatch.setattr(runner, "_run_batch", run_batch)
    with pytest.raises(Interrupted):
        execute(training_run(run_spec), stopping)
    stopping.stop.requested = False
    assert_same(execute(training_run(run_spec), stopping), whole)


def test_ctrl_c_takes_effect_at_the_end_of_a_batch_and_leaves_a_checkpoint(tmp_path, monkeypatch):
    run_spec = spec("ptncn", "digits", 0, TINY)
    ctx, real = context(tmp_path), runner._run_batch

    def interrupted(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        real(*arguments)

    monkeypatch.setattr(runner, "_run_batch", interrupted)
    with ctx.stop.listen(), pytest.raises(Interrupted):
        execute(training_run(run_spec), ctx)
    assert (tmp_path / training_run(run_spec).folder / "progress.safetensors").is_file()


def test_a_network_is_trained_once_and_kept(tmp_path, monkeypatch):
    run_spec = spec("ptncn", "digits", 0, TINY)
    first = train(run_spec, context(tmp_path))
    monkeypatch.setattr(runner, "_run_batch", lambda *arguments: pytest.fail("it was trained again"))
    assert_same(train(spec("ptncn", "digits", 0, TINY), context(tmp_path)), first)


def test_a_different_config_trains_a_new_network(tmp_path):
    runs = [
        training_run(spec("ptncn", "digits", 0, TINY)),
        training_run(spec("ptncn", "digits", 1, TINY)),
        training_run(spec("ptncn", "letters", 0, TINY)),
        training_run(spec("ptncn", "digits", 0, replace(TINY, units=9))),
        training_run(spec("ptncn", "digits", 0, TINY, options={"beta": 0.3})),
    ]
    assert len({run.key for run in runs}) == len(runs)


def test_the_best_network_is_kept(tmp_path):
    """White frames make it worse at digits, so the network before them is the best."""
    digits = spec("ptncn", "digits", 0, replace(TINY, decay=1.0))
    white = ArraySequences("white", np.ones((20, 20, 1024), np.float32))
    phases = (*epoch_phases(digits, 0), replace(epoch_phases(digits, 1)[0], data=white), epoch_phases(digits, 1)[1])
    result = execute(replace(training_run(digits), phases=phases), context(tmp_path))
    errors = [result.metric(f"valid/{epoch}", "ce") for epoch in range(2)]
    assert errors[0] < errors[1]
    meter = CE()
    evaluate(result.learner, [digits.splits.valid.batch(range(20)).x], [meter])
    assert meter.compute() == pytest.approx(errors[0])


@pytest.mark.parametrize("name", ["lstm-bptt", "ptncn"])
def test_the_step_size_falls_with_the_batches(tmp_path, name):
    run_spec = spec(name, "digits", 0, replace(TINY, epochs=1, decay=0.1))
    result = execute(replace(training_run(run_spec), keep=False), context(tmp_path))
    assert result.learner.lr == pytest.approx(run_spec.learner_options["lr"] * (1 - 0.9 * 2 / 3))
    assert result.learner.options().get("schedule") is None  # the step size falls once, not twice


def test_a_stream_in_pieces_equals_the_whole_stream():
    whole = torch.cat([batch.x for batch in CosineStream(2_500, chunk=2_500).batches()])
    pieces = torch.cat([batch.x for batch in CosineStream(2_500, chunk=1_000).batches()])
    assert torch.equal(whole, pieces)
    assert torch.equal(
        whole[1_000:], torch.cat([batch.x for batch in CosineStream(2_500, chunk=1_000).batches(start=1)])
    )


def test_errors_by_sequence_average_to_the_total(tmp_path):
    run = training_run(spec("copy", "digits", 0, replace(TINY, epochs=1)))
    phases = (replace(run.phases[1], keep_errors=True, film=2, select=False),)
    result = execute(replace(run, phases=phases, keep=False), context(tmp_path))
    phase = result.phases["valid/0"]
    x = phases[0].data.batch(range(20)).x.double()
    by_hand = (x[1:] - x[:-1].clamp(1e-3, 1 - 1e-3)).square().sum(-1).mean(0)  # copied pixels are clipped
    np.testing.assert_allclose(unpack(phase["errors"]["se"]), by_hand, rtol=1e-5)
    assert result.metric("valid/0", "se") == pytest.approx(by_hand.mean().item())
    assert phase["film"]["truth"]["shape"] == [20, 2, 1024]


def test_training_stops_when_patience_is_used_up(tmp_path):
    """With a step size of 0 every epoch after the first has the same error."""
    config = replace(TINY, epochs=6, decay=1.0, patience=2)
    result = train(spec("ptncn", "digits", 0, config, options={"lr": 1e-30}), context(tmp_path))
    assert [name for name in result.phases if name.startswith("valid")] == ["valid/0", "valid/1", "valid/2"]


def test_patience_survives_an_interruption(tmp_path, monkeypatch):
    config = replace(TINY, epochs=6, decay=1.0, patience=2)
    run_spec = spec("ptncn", "digits", 0, config, options={"lr": 1e-30})
    stopping = context(tmp_path, resume=True)
    seen, real = [], runner._run_batch

    def run_batch(*arguments):
        real(*arguments)
        seen.append(1)
        stopping.stop.requested = len(seen) == 7  # in the second epoch

    monkeypatch.setattr(runner, "_run_batch", run_batch)
    with pytest.raises(Interrupted):
        train(run_spec, stopping)
    stopping.stop.requested = False
    assert list(train(run_spec, stopping).phases)[-1] == "valid/2"


def test_continuous_text_carries_the_state_from_piece_to_piece(tmp_path):
    run_spec = spec("ptncn", "python-stream", 0, replace(TEXT["smoke"], sequences=40, epochs=1, valid=20))
    learn, _ = epoch_phases(run_spec, 0)
    run = replace(training_run(run_spec), phases=(learn,), keep=False)
    result = execute(run, context(tmp_path))
    text = run_spec.splits.train.text
    learner = run_spec.make_learner()
    x = torch.cat([batch.x for batch, _ in zip(text.stream(100, lanes=20), range(2), strict=False)])
    state, bits = learner.begin(20), []
    for number, frame in enumerate(x):
        learner.lr = learner.options()["lr"] * (1 - 0.9 * (number // 100) / 2)
        step = learner.step(frame, state, learn=True)
        if number:
            bits.append(-(step.prediction * frame).sum(-1).log2())
    assert result.metric("train/0", "bpc") == pytest.approx(torch.stack(bits).mean().item(), rel=1e-4)
