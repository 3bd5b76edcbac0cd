"""`ptncn train` and `ptncn eval`: any learner on any data."""

import json
import shlex

import numpy as np
import pytest

from commands import call as run
from ptncn import load
from ptncn.cli.common import parse_options
from ptncn.records import read_record

SMALL = ("--units", "8", "--sequences", "40", "--canvas", "32")


def test_a_network_is_trained_saved_and_evaluated_again(working_directory):
    tested = json.loads(run("train", "ptncn", "digits", *SMALL, "-o", "beta=0.3", "--json").stdout)
    learner, _, _ = load("trained/network.safetensors")
    assert learner.config.beta == 0.3
    again = json.loads(run("eval", "trained/network.safetensors", "digits", "--json").stdout)
    assert again == pytest.approx(tested)
    other = run("eval", "trained/network.safetensors", "letters", "--objects", "3", "--sequences", "20").stdout
    assert other.startswith("ptncn on letters test: ce ")
    (record,) = map(read_record, working_directory.glob("trained/train/*.json"))
    assert record.metrics["test"] == pytest.approx(tested)
    run(*shlex.split(record.command)[1:], "--out", "again")
    (again,) = map(read_record, working_directory.glob("again/train/*.json"))
    assert again.metrics == record.metrics


def test_text_and_user_files_can_be_trained_on(working_directory):
    run("train", "gru-bptt", "ptb", "--units", "8", "--sequences", "20")
    np.save(working_directory / "walk.npy", np.cumsum(np.ones((6, 5, 3)), axis=1))
    run("train", "ptncn", "walk.npy", "--units", "4", "--out", "own")
    assert "se " in run("eval", "own/network.safetensors", "walk.npy").stdout


def test_eval_can_learn_without_changing_the_file(working_directory):
    run("train", "ptncn", "digits", *SMALL)
    before = (working_directory / "trained/network.safetensors").read_bytes()
    arguments = ("eval", "trained/network.safetensors", "letters", "--sequences", "40", "--json")
    frozen, learning = (json.loads(run(*arguments, *more).stdout) for more in ((), ("--learn",)))
    assert learning["ce"] < frozen["ce"]
    assert (working_directory / "trained/network.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "lstm", "digits"), "lstm-bptt"),
        (("train", "ptncn", "digit"), "did you mean 'digits'"),
        (("train", "ptncn", "digits", *SMALL, "-o", "bета=1"), "unknown option"),
        (("train", "ptncn", "digits", "-o", "beta"), "NAME=VALUE"),
        (
            ("train", "ptncn", "digits", *SMALL, "-o", "biases=maybe"),
            "Error: biases: expected True or False",
        ),
        (("eval", "nothing.safetensors", "digits"), "no such checkpoint"),
    ],
)
def test_errors_are_one_line(arguments, message):
    result = run(*arguments, exit_code=1)
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_network_for_other_observations_is_rejected():
    run("train", "ptncn", "digits", *SMALL)
    assert "1024 numbers, got 95" in run("eval", "trained/network.safetensors", "ptb", exit_code=1).stderr


def test_options_are_values_or_text():
    assert parse_options(["a=1", "b=x", "c=[1, 2]", "d=null"]) == {"a": 1, "b": "x", "c": [1, 2], "d": None}
