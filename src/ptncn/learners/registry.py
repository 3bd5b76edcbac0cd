"""Learners by name: `make("lstm-uoro", input_size=…, hidden_size=…)`. Adding one is a file and a line."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
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


CELL_NAMES = {"lstm": "LSTM", "gru": "GRU", "rnn": "Elman RNN", "rhn": "recurrent highway network"}

RULES = {
    "bptt": Entry(
        "ptncn.learners.bptt:BPTT", "back-propagation through the whole sequence", "unrolled", "B·n·T"
    ),
    "tbptt": Entry(
        "ptncn.learners.tbptt:TBPTT",
        "truncated back-propagation, window 25, stride 25",
        "unrolled",
        "B·(n + H)·window",
    ),
    "sab": Entry(
        "ptncn.learners.sab:SAB", "sparse attentive backtracking", "unrolled", "B·(n·k_attn + H)·memory"
    ),
    "rtrl": Entry("ptncn.learners.rtrl:RTRL", "real-time recurrent learning, exact", "online", "B·H·P"),
    "uoro": Entry(
        "ptncn.learners.uoro:UORO", "unbiased online recurrent optimisation, rank one", "online", "B·P"
    ),
    "kf-rtrl": Entry(
        "ptncn.learners.kf_rtrl:KFRTRL",
        "Kronecker-factored real-time recurrent learning",
        "online",
        "B·(H² + n)",
    ),
}
RULE_CELLS = {
    "bptt": ("lstm", "gru", "rnn", "rhn"),
    "tbptt": ("lstm", "gru", "rnn", "rhn"),
    "sab": ("lstm", "rnn"),
    "rtrl": ("lstm", "gru", "rnn", "rhn"),
    "uoro": ("lstm", "gru", "rnn", "rhn"),
    "kf-rtrl": ("rnn", "rhn"),
}

ENTRIES: dict[str, Entry] = {
    "ptncn": Entry(
        "ptncn.network:PTNCN", "parallel temporal neural coding network, local rules", "online", "B·(n + ΣH)"
    ),
    **{
        f"{cell}-{rule}": Entry(
            entry.where, f"{CELL_NAMES[cell]}: {entry.about}", entry.learns, entry.memory, {"cell": cell}
        )
        for rule, entry in RULES.items()
        for cell in RULE_CELLS[rule]
    },
    "esn-ridge": Entry(
        "ptncn.learners.esn:RidgeESN", "echo state network, ridge regression", "online", "B·H"
    ),
    "esn-rls": Entry(
        "ptncn.learners.esn:RLSESN", "echo state network, recursive least squares", "online", "B·H"
    ),
    "esn-sgd": Entry("ptncn.learners.esn:SGDESN", "echo state network, gradient descent", "online", "B·H"),
    "copy": Entry("ptncn.learners.trivial:Copy", "the last observation again", "online", "B·n"),
    "mean": Entry("ptncn.learners.trivial:Mean", "the running mean of all observations", "online", "none"),
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
    """
    entry = describe(name)
    kind = _load(entry.where)
    options = {**options, "input_size": input_size}
    accepted = _accepted(kind)
    if "hidden_sizes" in accepted and "hidden_size" in options:
        size = options.pop("hidden_size")
        options["hidden_sizes"] = [size] if isinstance(size, int) else list(size)
    _check_options(name, options, accepted - set(entry.options))
    return cast(Learner, kind(**options, **entry.options))


ANYTHING = "**"
"""Stands in `_accepted` for a class that looks at unknown arguments itself."""


def _accepted(kind: type) -> set[str]:
    """Names of all arguments of a class, following `**common` up to the base that takes them."""
    accepted: set[str] = set()
    for base in kind.__mro__:
        if "__init__" not in vars(base):
            continue
        parameters = inspect.signature(vars(base)["__init__"]).parameters.values()
        accepted |= {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)} - {
            "self"
        }
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            return accepted
    return accepted | {ANYTHING}


def _check_options(name: str, options: Mapping[str, Any], accepted: set[str]) -> None:
    unknown = sorted(set(options) - accepted)
    if unknown and ANYTHING not in accepted:
        close = difflib.get_close_matches(unknown[0], accepted, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(
            f"{name!r} has no option {unknown[0]!r}; {hint}There are: {', '.join(sorted(accepted))}"
        )


def _load(where: str) -> type:
    module, _, attribute = where.partition(":")
    return cast(type, getattr(import_module(module), attribute))
