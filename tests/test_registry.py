"""The generic registry, shared messages and option values."""

import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from ptncn import registry
from ptncn.cli.common import parse_option, parse_value
from ptncn.registry import Registry, load_object


def test_an_entry_is_found_by_name_and_listed_in_order() -> None:
    colours = Registry[int]("colour", entries={"red": 1})
    colours.add("blue", 2)
    assert colours.names() == ["red", "blue"]
    assert colours.find("blue") == colours["blue"] == 2


def test_a_name_can_be_registered_once_unless_it_is_replaced() -> None:
    colours = Registry[int]("colour", entries={"red": 1})
    with pytest.raises(ValueError, match="registered already"):
        colours.add("red", 2)
    assert colours.add("red", 2, replace=True) == colours["red"] == 2


def test_a_removed_entry_is_unknown() -> None:
    colours = Registry[int]("colour", entries={"red": 1, "blue": 2})
    colours.remove("red")
    assert "red" not in colours
    with pytest.raises(ValueError, match="unknown colour 'red'; choose one of: blue"):
        colours.remove("red")


def test_other_packages_add_entries_through_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = []

    def installed(group: str) -> EntryPoints:
        groups.append(group)
        return EntryPoints([EntryPoint("limit", "sys:maxsize", group), EntryPoint("red", "sys:path", group)])

    monkeypatch.setattr(registry, "entry_points", installed)
    colours = Registry[object]("colour", "ptncn.colours", {"red": 1})
    assert groups == []
    assert colours.find("limit") == sys.maxsize
    assert colours.find("red") == 1, "an installed package does not replace one of ours"
    assert groups == ["ptncn.colours"]


def test_a_lazy_entry_is_imported_when_it_is_first_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "shades_of_red.py").write_text("CRIMSON = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    colours = Registry[int]("colour", entries={"red": 1})
    colours.add_lazy("crimson", "shades_of_red:CRIMSON")
    assert colours.names() == ["red", "crimson"]
    assert "shades_of_red" not in sys.modules
    assert colours.find("crimson") == colours["crimson"] == 3
    with pytest.raises(ValueError, match="registered already"):
        colours.add_lazy("red", "shades_of_red:CRIMSON")


def test_an_object_is_loaded_from_its_path() -> None:
    assert load_object("sys:maxsize") == sys.maxsize


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("True", True),
        ("false", False),
        ("None", None),
        ("null", None),
        ("1e-3", 0.001),
        ("12", 12),
        ("[1, 2]", [1, 2]),
        ("(1, 12, 24)", (1, 12, 24)),
        ("{'kind': 'linear'}", {"kind": "linear"}),
        ("'quoted'", "quoted"),
        ("adam", "adam"),
        ("__import__('os')", "__import__('os')"),
        ("", ""),
    ],
)
def test_values_parse_as_a_python_user_expects(text: str, value: object) -> None:
    parsed = parse_value(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize("text", ["lr", "=3", "two words=1"])
def test_an_option_without_name_or_value_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected NAME=VALUE"):
        parse_option(text)


def test_an_option_may_hold_an_equals_sign() -> None:
    assert parse_option("name=a=b") == ("name", "a=b")
