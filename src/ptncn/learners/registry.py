"""Learners by name: `make("lstm-uoro", input_size=…, hidden_size=…)`.

An entry holds everything that experiments, tuning, reports and benchmarks need to know about a learner, so none of
them branches on a name. The entries of this package are in `entries.py`; other packages add theirs through the
entry-point group `ptncn.learners`, or at run time with `LEARNERS.add(name, Entry(…))`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from ptncn.registry import Registry, load_object, suggest

if TYPE_CHECKING:
    from ptncn.learner import Learner

Options = Mapping[str, Any]
Dashes = str | tuple[float, tuple[float, ...]]
"""A line style of matplotlib."""

LEARNS = {"online": "at each step", "unrolled": "through stored steps", "nothing": "never"}
"""When a learner learns, in words."""

SIZE_CLASSES = {
    "layers": "units per layer of the P-TNCN",
    "gated": "units of LSTM, GRU, RHN",
    "plain": "units of RNN, ESN",
    "rank_one": "units with UORO and KF-RTRL",
    "factored": "units with UORO and KF-RTRL",
    "exact": "units with exact RTRL",
    "none": "",
}
"""Which learners share a number of hidden units, and what tables call that number."""


@dataclass(frozen=True)
class Choice:
    """A choice that the paper leaves open."""

    about: str
    options: tuple[str, ...] = ()
    """The options that settle it."""
    answer: str = ""
    """How it was settled, where no option does."""


@dataclass(frozen=True)
class Style:
    """How a learner's line looks, the same in every figure."""

    colour: str
    """Which network it is, as #rrggbb."""
    dashes: Dashes = "-"
    """How it learns."""
    emphasis: bool = False
    """Whether the line is drawn thick and on top."""


@dataclass(frozen=True)
class Entry:
    """One learner in the registry."""

    where: str
    """"module:Class", imported on first use."""
    about: str
    """One-line description."""
    learns: str
    """One of `LEARNS`."""
    memory: str
    """How its state grows, in H hidden units, n inputs, B rows, P weights, T steps."""
    options: Options = field(default_factory=dict)
    """Arguments that are fixed by the name."""
    defaults: Mapping[str, Options] = field(default_factory=dict)
    """Default options by kind of data: "video", "text", "other", and "online" for videos one at a time."""
    search: Callable[[Any], dict[str, Any]] | None = None
    """The search space: an Optuna trial → options to try; None: nothing to tune."""
    first_points: Callable[[Options], list[dict[str, Any]]] | None = None
    """Default options → the trial parameters to try before the search samples any."""
    size_class: str = "none"
    """Which of an experiment's sizes it takes, one of `SIZE_CLASSES`: "layers" is a list, "gated" and "plain" are wide,
    the state of "rank_one" is as large as the weights, a step of "factored" takes H³ operations, the state of "exact"
    is larger than the weights; "none" has no hidden units."""
    label: str = ""
    """What tables and figures call it; empty: its name."""
    style: Style | None = None
    """Its line in figures; None: a thin grey one."""
    tuned_like: str | None = None
    """The learner whose tuned values are used if this one has none."""
    choices: Mapping[int, Choice] = field(default_factory=dict)
    """The numbered choices of docs/choices.md that its options decide."""

    def __post_init__(self) -> None:
        for field_name, value, known in (
            ("learns", self.learns, LEARNS),
            ("size_class", self.size_class, SIZE_CLASSES),
        ):
            if value not in known:
                raise ValueError(f"{field_name}: expected one of {', '.join(known)}, got {value!r}")

    def default_options(self, kind: str, *, online: bool = False) -> dict[str, Any]:
        """The options for one kind of data; `online` where sequences are learnt one at a time."""
        if online and kind == "video" and "online" in self.defaults:
            kind = "online"
        return dict(self.defaults.get(kind, {}))


LEARNERS: Registry[Entry] = Registry("learner", "ptncn.learners")
"""Every learner that `make` knows."""


def names() -> list[str]:
    """Every name that `make` knows."""
    return LEARNERS.names()


def describe(name: str) -> Entry:
    """The registry entry of a learner; its class is not imported."""
    return LEARNERS.find(name)


def make(name: str, *, input_size: int, **options: Any) -> Learner:
    """Build a learner by its registry name; `ptncn.learners.names()` lists the names.

    All options, such as `hidden_size`, `output`, `lr` and `seed`, are arguments of the learner's class. For "ptncn",
    `hidden_size` is a number or a list with one per layer (`hidden_sizes` is the same option).

    >>> make("lstm-bptt", input_size=8, hidden_size=16).registry_name
    'lstm-bptt'
    >>> make("ptncn", input_size=8, hidden_size=[16, 4], output="gaussian").sizes
    (8, 16, 4)
    >>> make("lstm-bptt", input_size=8, hidden_siz=16)
    Traceback (most recent call last):
    ValueError: 'lstm-bptt' has no option 'hidden_siz'; did you mean 'hidden_size'? ...
    """
    entry = describe(name)
    learner_class = load_object(entry.where)
    arguments = {"input_size": input_size, **options}
    known = _parameters(learner_class)
    if "hidden_sizes" in known and "hidden_size" in arguments:
        size = arguments.pop("hidden_size")
        arguments["hidden_sizes"] = [size] if isinstance(size, int) else list(size)
    _check_options(name, arguments, {key: value for key, value in known.items() if key not in entry.options})
    return cast("Learner", learner_class(**arguments, **entry.options))


def option_names(name: str) -> set[str]:
    """The options that a learner takes, apart from those that its name fixes.

    >>> "window" in option_names("lstm-tbptt")
    True
    """
    entry = describe(name)
    return set(_parameters(load_object(entry.where))) - set(entry.options)


ANYTHING = "**"
"""Listed among the parameters of a class that checks unknown arguments itself."""


def _parameters(learner_class: type) -> dict[str, bool]:
    """All arguments of a class and whether each must be given, following `**common` to the base that takes it."""
    known: dict[str, bool] = {}
    for base in learner_class.__mro__:
        if "__init__" not in vars(base):
            continue
        _, *parameters = inspect.signature(vars(base)["__init__"]).parameters.values()
        named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        known = {**{p.name: p.default is p.empty for p in named}, **known}
        if len(named) == len(parameters):
            return known
    return {**known, ANYTHING: False}


def _check_options(name: str, arguments: Mapping[str, Any], known: Mapping[str, bool]) -> None:
    for option in arguments:
        if option not in known and ANYTHING not in known:
            raise ValueError(f"{name!r} has no option {option!r}; {suggest(option, known)}")
    for option, required in known.items():
        if required and option not in arguments:
            raise ValueError(f"{name!r} needs the option {option!r}")
