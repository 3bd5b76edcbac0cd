"""The registry, and the command that lists it."""

import importlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ptncn.cli.learners import learners
from ptncn.learners import LEARNERS, Entry, describe, make, names


def test_it_has_every_learner_of_the_comparison() -> None:
    cells = ["lstm", "gru", "rnn", "rhn"]
    rules = ["bptt", "tbptt", "rtrl", "uoro", "kf-rtrl", "immediate", "snap1"]
    expected = {f"{cell}-{rule}" for cell in cells for rule in rules}
    expected |= {"lstm-e-prop", "gru-e-prop", "rhn-e-prop", "rnn-rflo", "elstm-rtrl", "lru-rtrl", "lstm-fp", "lstm-cfp"}
    expected |= {"ptncn", "lstm-sab", "rnn-sab", "esn-ridge", "esn-rls", "esn-sgd", "copy", "mean"}
    assert expected <= set(names())


@pytest.mark.parametrize("name", names())
def test_any_learner_can_replace_any_other_in_one_line(name: str) -> None:
    learner = make(name, input_size=3, hidden_size=4, output="gaussian", seed=1)
    assert learner.registry_name == name


def test_a_similar_name_is_suggested_and_all_names_are_listed() -> None:
    with pytest.raises(ValueError, match=r"'lstm-btpt'; did you mean 'lstm-bptt'\?.*ptncn.*mean"):
        make("lstm-btpt", input_size=3, hidden_size=4)
    with pytest.raises(ValueError, match="unknown learner 'transformer'"):
        describe("transformer")


def test_an_unknown_option_is_named_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match=r"'lstm-tbptt' has no option 'windw'; did you mean 'window'\?.*stride"):
        make("lstm-tbptt", input_size=3, hidden_size=4, windw=5)


def test_an_option_fixed_by_the_name_cannot_be_given() -> None:
    with pytest.raises(ValueError, match="'lstm-bptt' has no option 'cell'"):
        make("lstm-bptt", input_size=3, hidden_size=4, cell="gru")


def test_an_option_that_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match="'gru-rtrl' needs the option 'hidden_size'"):
        make("gru-rtrl", input_size=3)


@pytest.mark.parametrize("sizes", [{"hidden_size": 5}, {"hidden_size": [5]}, {"hidden_sizes": [5]}])
def test_the_network_takes_one_size_or_a_list(sizes: dict[str, Any]) -> None:
    assert make("ptncn", input_size=3, **sizes).options()["hidden_sizes"] == [5]


@pytest.fixture
def missing() -> Iterator[None]:
    LEARNERS.add("missing", Entry("ptncn.learners.missing:Missing", "not there", "online", "none"))
    yield
    LEARNERS.remove("missing")


@pytest.mark.usefixtures("missing")
def test_learners_are_imported_only_when_they_are_built() -> None:
    assert describe("missing").about == "not there"
    assert make("copy", input_size=3).registry_name == "copy"
    with pytest.raises(ModuleNotFoundError, match=r"ptncn\.learners\.missing"):
        make("missing", input_size=3)


@pytest.mark.parametrize("name", names())
def test_every_entry_has_a_one_line_description(name: str) -> None:
    entry = describe(name)
    assert 0 < len(entry.about) <= 40
    module, _, attribute = entry.where.partition(":")
    assert hasattr(importlib.import_module(module), attribute)


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(learners)
    return app


def test_the_command_shows_a_line_for_each(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, [], env={"COLUMNS": "80"})
    assert result.exit_code == 0
    listed = [line.split()[0] for line in result.output.splitlines() if line.strip()]
    assert listed == ["name", *names(), "State:", "online:", "Try"]


def test_the_command_prints_json(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["--json"])
    assert list(json.loads(result.output)) == names()
