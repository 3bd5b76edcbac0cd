"""Learners by name: `make("lstm-uoro", input_size=…, hidden_size=…)`. Adding one is a file and a line."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, cast

from ptncn.learner import Learner


@dataclass(frozen=True)
class Entry:
    """One learner in the registry."""

    where: str
    """"module:Class", imported when it is first made."""
    about: str
    """What it is, in one line."""
    learns: str
    """"online", at each step; or "unrolled", through stored steps."""
    memory: str
    """What its state grows with: H hidden units, n inputs, B rows, P weights, T steps."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that the name settles."""


CELLS = ("lstm", "gru", "rnn", "rhn")

RULES = {
    "bptt": Entry("ptncn.learners.bptt:BPTT", "back-propagation through time", "unrolled", "B·n·T"),
    "tbptt": Entry("ptncn.learners.tbptt:TBPTT", "truncated BPTT, window 25", "unrolled", "B·(n + H)·window"),
    "sab": Entry("ptncn.learners.sab:SAB", "sparse attentive backtracking", "unrolled", "B·(n + H)·memory"),
    "rtrl": Entry("ptncn.learners.rtrl:RTRL", "real-time recurrent learning", "online", "B·H·P"),
    "uoro": Entry("ptncn.learners.uoro:UORO", "unbiased rank-one RTRL", "online", "B·P"),
    "kf-rtrl": Entry("ptncn.learners.kf_rtrl:KFRTRL", "Kronecker-factored RTRL", "online", "B·(H² + n)"),
}


def _with_cells(rule: str, entry: Entry) -> dict[str, Entry]:
    cells = ("lstm", "rnn") if rule == "sab" else CELLS
    return {
        f"{cell}-{rule}": replace(entry, about=f"{cell.upper()}, {entry.about}", options={"cell": cell})
        for cell in cells
    }


def _echo(readout: str, about: str) -> Entry:
    return Entry("ptncn.learners.esn:ESN", f"echo state network, {about}", "online", "B·H", {"readout": readout})


ENTRIES: dict[str, Entry] = {
    "ptncn": Entry("ptncn.network:PTNCN", "the paper's network, local rules", "online", "B·(n + H)"),
    **{name: entry for rule in RULES for name, entry in _with_cells(rule, RULES[rule]).items()},
    "esn-ridge": _echo("ridge", "ridge regression"),
    "esn-rls": _echo("rls", "RLS"),
    "esn-sgd": _echo("sgd", "gradient descent"),
    "copy": Entry("ptncn.learners.trivial:Copy", "the last observation again", "online", "B·n"),
    "mean": Entry("ptncn.learners.trivial:Mean", "the mean of all observations", "online", "B·n"),
}


def names() -> list[str]:
    """Every name that `make` knows."""
    return list(ENTRIES)


def describe(name: str) -> Entry:
    """What the registry knows of a learner without importing it."""
    if name not in ENTRIES:
        close = difflib.get_close_matches(str(name), ENTRIES, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(f"unknown learner {name!r}; {hint}There are: {', '.join(ENTRIES)}")
    return ENTRIES[name]


def make(name: str, *, input_size: int, **options: Any) -> Learner:
    """A learner by its registry name; `hidden_size` and all other options go to its class.

    For `ptncn`, `hidden_size` may be one number, or a list with one a layer; `hidden_sizes` says the same.

    >>> make("lstm-bptt", input_size=8, hidden_size=16).kind
    'lstm-bptt'
    """
    entry = describe(name)
    kind = _load(entry.where)
    given = {"input_size": input_size, **options}
    known = _parameters(kind)
    if "hidden_sizes" in known and "hidden_size" in given:
        size = given.pop("hidden_size")
        given["hidden_sizes"] = [size] if isinstance(size, int) else list(size)
    _check_options(name, given, {key: value for key, value in known.items() if key not in entry.options})
    return cast(Learner, kind(**given, **entry.options))


ANYTHING = "**"
"""Stands among the parameters of a class that looks at unknown arguments itself."""


def _parameters(kind: type) -> dict[str, bool]:
    """All arguments of a class and whether each must be given, following `**common` to the base that takes it."""
    known: dict[str, bool] = {}
    for base in kind.__mro__:
        if "__init__" not in vars(base):
            continue
        _, *parameters = inspect.signature(vars(base)["__init__"]).parameters.values()
        named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        known = {**{p.name: p.default is p.empty for p in named}, **known}
        if len(named) == len(parameters):
            return known
    return {**known, ANYTHING: False}


def _check_options(name: str, given: Mapping[str, Any], known: Mapping[str, bool]) -> None:
    for option in given:
        if option not in known and ANYTHING not in known:
            close = difflib.get_close_matches(option, known, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise ValueError(f"{name!r} has no option {option!r}; {hint}There are: {', '.join(known)}")
    for option, required in known.items():
        if required and option not in given:
            raise ValueError(f"{name!r} needs the option {option!r}")


def _load(where: str) -> type:
    module, _, attribute = where.partition(":")
    return cast(type, getattr(import_module(module), attribute))
