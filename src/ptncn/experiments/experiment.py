"""An experiment: the rows of a table, the runs behind them, the cells made from records, and the page about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ptncn.experiments.config import SCALES, VIDEO
from ptncn.experiments.run import TUNED, RunContext, RunSpec
from ptncn.experiments.runner import Result
from ptncn.learners.registry import Choice, describe
from ptncn.records import Record
from ptncn.registry import unknown

SE = "**SE**: squared error, summed over pixels and averaged over frames and sequences. Lower is better."
CE = "**CE**: cross-entropy in nats, summed over pixels and averaged over frames and sequences. Lower is better."
NETWORK = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13)
"""The numbers in docs/choices.md that concern the P-TNCN."""

OWN_CHOICES = {
    12: Choice("how CE and SE are counted", answer="sums over pixels, means over frames and sequences, nats"),
    14: Choice("exact RTRL with 1,000 units", answer="as many units as fit: see the sizes below"),
}
"""Choices about the experiments that are not options of a learner."""

ErrorKey = tuple[str, str] | None
"""Phase and metric under which a record keeps the error of each sequence."""


@dataclass(frozen=True)
class FigureSpec:
    """A figure that the report draws from the records of an experiment."""

    kind: str
    """"curves", "matrices", "films" or "growth": a drawing function of the report."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Its arguments."""


LEARNING_CURVES = FigureSpec("curves", {"what": "learning"})
PREQUENTIAL_CURVES = FigureSpec("curves", {"what": "prequential"})
FILMS = FigureSpec("films", {"rows": ("ptncn", "lstm-bptt")})
"""The true frames, then the predictions of these rows, as in the figures of the paper."""
FILMS_AND_SURPRISE = FigureSpec("films", {"rows": ("ptncn", "lstm-bptt"), "surprise": "ptncn"})


@dataclass(frozen=True, kw_only=True)
class PageSpec:
    """The page about an experiment in a report."""

    title: str
    question: str
    metrics: tuple[str, ...] = (CE, SE)
    """An explanation of each metric."""
    metric_labels: Mapping[str, str] = field(default_factory=lambda: {"ce": "CE", "se": "SE"})
    """Labels of the metrics in tables."""
    choices: tuple[int, ...] = (*NETWORK, 12, 14)
    """The relevant numbers in docs/choices.md."""
    own_choices: Mapping[int, Choice] = field(default_factory=lambda: OWN_CHOICES)
    """The ones that are not described by a learner's registry entry."""
    unstated: tuple[str, ...] = ()
    """Other points that the paper leaves open, and how they are handled here."""
    errors: Callable[[str, str], ErrorKey] = lambda metric, column: None
    """(metric, column) → where a record keeps the error of each sequence."""
    paper_config: Callable[[Record], dict[str, Any]] = lambda record: VIDEO["paper"].values()
    """The same values as the record's config, at the paper's scale."""
    references: tuple[str, ...] = ()
    """Rows that are shown for reference only."""
    bounds: bool = False
    """Whether the paper's numbers are bounds on growth instead of losses."""
    figures: tuple[FigureSpec, ...] = ()


Cells = dict[str, dict[str, float | None]]
"""{metric: {column: value}} of one row; the column is "" if a metric has only one."""


def paper_cells(
    columns: tuple[str, ...], metrics: tuple[str, ...], *rows: tuple[Any, ...]
) -> dict[str, dict[str, dict[str, float]]]:
    """The paper's numbers by metric, row and column, from rows as it prints them: all metrics of a column in turn.

    >>> paper_cells(("left", "right"), ("ce", "se"), ("esn", 1.0, 2.0, 3.0, 4.0))["se"]
    {'esn': {'left': 2.0, 'right': 4.0}}
    """
    return {
        metric: {row: dict(zip(columns, values[place :: len(metrics)], strict=True)) for row, *values in rows}
        for place, metric in enumerate(metrics)
    }


@dataclass(frozen=True)
class Row:
    """A row of a table that is a variant of a learner."""

    learner: str
    """Its name in the registry."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options that define the variant."""
    label: str = ""
    """The name in reports; empty: the row's name."""
    inherit: bool = True
    """Start from the defaults and tuned values of the learner; otherwise use only values tuned for this row."""
    compared_with: str = ""
    """The row of the paper to compare it with; empty: none."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or figure of the paper."""

    name: str
    about: str
    """One line for the command line."""
    rows: Mapping[str, Sequence[str]]
    """{data: rows to compare}."""
    variants: Mapping[str, Row] = field(default_factory=dict)
    """Rows that are not simply a learner of the registry."""
    any_learner: bool = True
    """Whether any learner of the registry may be added as a row, on any data."""
    config: Callable[[str, str], Any] = lambda data, scale: VIDEO[scale]
    """(data, scale) → the size of a run."""
    seeds: Mapping[str, int] = field(default_factory=lambda: {scale: VIDEO[scale].seeds for scale in VIDEO})
    """{scale: default number of trials}."""
    values: Callable[[RunSpec], dict[str, Any]] = lambda spec: spec.values()
    """Every value that determines the results of a run, for its record."""
    run: Callable[[RunSpec, RunContext], Result]
    cells: Callable[[Record], Cells]
    paper: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    """The paper's cells by metric, row and column."""
    trains: Callable[[RunSpec], list[RunSpec]] = lambda spec: []
    """Trainings that a run needs; several runs may share one."""
    single_thread: bool = False
    """Whether the networks are so small that a second thread slows them down."""
    compared_by: tuple[str, str] | None = None
    """Phase and metric by which rows are compared, sequence by sequence."""
    reference: str = "ptncn"
    """The row that the others are compared with."""
    page: PageSpec
    """Text and figures for the report."""

    def row(self, name: str) -> Row:
        """The definition of a row of the table."""
        return self.variants.get(name) or Row(name, label=describe(name).label)

    def all_rows(self) -> list[str]:
        """Every row, in the order of the table."""
        return list(dict.fromkeys(row for rows in self.rows.values() for row in rows))

    def specs(
        self,
        scale: str,
        *,
        rows: Sequence[str] | None = None,
        data: Sequence[str] | None = None,
        seeds: Iterable[int] | None = None,
        tuned: Path | None = TUNED,
        config: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        arguments: tuple[str, ...] = (),
    ) -> list[RunSpec]:
        """All runs of the experiment, or the selected ones. Unknown names raise an error before anything runs.

        `config` and `options` override fields of the run's config and options of the learner; `arguments` are the
        command-line arguments that set them.
        """
        if scale not in SCALES:
            raise ValueError(unknown("scale", scale, SCALES))
        trials = list(range(self.seeds[scale]) if seeds is None else seeds)
        specs = []
        for column in data or self.rows:
            size = self._config(column, scale, config or {})
            for name in self._choose_rows(column, rows, selected=bool(data)):
                row = self.row(name)
                spec = RunSpec(
                    experiment=self.name,
                    scale=scale,
                    row=name,
                    learner=row.learner,
                    data=column,
                    seed=0,
                    config=size,
                    options={**row.options, **(options or {})},
                    inherit=row.inherit,
                    tuned=None if scale == "smoke" else tuned,
                    arguments=arguments,
                )
                self.values(spec)  # finds unknown data and options
                specs += [replace(spec, seed=seed) for seed in trials]
        return specs

    def _config(self, column: str, scale: str, changes: Mapping[str, Any]) -> Any:
        if column not in self.rows and not self.any_learner:
            raise ValueError(unknown(f"data of {self.name}", column, self.rows))
        size = self.config(column, scale)
        for name in changes:
            if not hasattr(size, name):
                raise ValueError(f"--{name.replace('_', '-')} does not apply to {self.name}")
        return replace(size, **changes) if changes else size

    def _choose_rows(self, column: str, wanted: Sequence[str] | None, *, selected: bool) -> Sequence[str]:
        """The rows of a column. If no column was selected, a row that is only listed for another one is left out."""
        listed = self.rows.get(column) or next(iter(self.rows.values()))
        everywhere = self.all_rows()
        for name in wanted or ():
            if name in everywhere or name in self.variants:
                continue
            if not self.any_learner:
                raise ValueError(unknown(f"row of {self.name}", name, everywhere))
            describe(name)
        if wanted is None:
            return listed
        return [name for name in wanted if selected or name in listed or name not in everywhere]


# Rows of several tables: the P-TNCN with settings beyond the paper. The row `ptncn` is the paper's network.
BEST = Row("ptncn", {"preset": "best"}, "P-TNCN (best)", inherit=False, compared_with="ptncn")
"""The settings with the best result on validation videos."""

MEMORY = Row(
    "ptncn",
    {"preset": "best", "memory": 256},
    "P-TNCN with memory",
    inherit=False,
    compared_with="ptncn",
)
"""For text: layers with a trace memory, which assigns credit through time without unrolling."""

VARIANTS = {"ptncn-best": BEST, "ptncn-memory": MEMORY}

TRANSFER_ROWS = ("lstm-bptt", "lstm-sab", "lstm-rtrl", "ptncn", "ptncn-best")
"""The rows of the tables on continual, one-shot and zero-shot learning."""
TASKS = "mnist+notmnist+fashion-mnist"
"""The tasks of continual and one-shot learning, in order."""
