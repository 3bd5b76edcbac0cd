"""An experiment: rows of a table on some data, a record of each run, and the cells made from those records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ptncn.experiments.config import SCALES
from ptncn.experiments.context import Interrupted, RunContext
from ptncn.experiments.options import TUNED
from ptncn.experiments.page import Page
from ptncn.experiments.phases import stable
from ptncn.experiments.runner import Result
from ptncn.experiments.spec import RunSpec
from ptncn.learners.registry import describe
from ptncn.messages import unknown
from ptncn.records import Record, RecordError, read_record

Cells = dict[str, dict[str, float | None]]
"""{metric: {column: value}} of one row; the column is "" where a metric has only one."""


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
    """The options that make the variant."""
    label: str = ""
    """The name in reports; empty: the row's name."""
    inherit: bool = True
    """Start from the defaults and the tuned values of the learner; else only values tuned for this row serve."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or figure of the paper."""

    name: str
    about: str
    """One line for the command line."""
    rows: Mapping[str, Sequence[str]]
    """By data: the rows that are compared."""
    variants: Mapping[str, Row] = field(default_factory=dict)
    """Rows that are not simply a learner of the registry."""
    any_learner: bool = True
    """Any learner of the registry may take part, on any data."""
    config: Callable[[str, str], Any]
    """(data, scale) → the size of a run."""
    seeds: Mapping[str, int]
    """By scale: trials, unless the command says otherwise."""
    values: Callable[[RunSpec], dict[str, Any]]
    """Every value that decides the numbers of a run, for its record."""
    run: Callable[[RunSpec, RunContext], Result]
    cells: Callable[[Record], Cells]
    paper: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    """The paper's cells: metric, row, column."""
    trains: Callable[[RunSpec], list[RunSpec]] = lambda spec: []
    """Trainings that a run needs; several runs may share one."""
    single_thread: bool = False
    """Networks so small that a second thread slows them down."""
    compared_by: tuple[str, str] | None = None
    """Phase and metric of the errors by which rows are compared sequence by sequence."""
    reference: str = "ptncn"
    """The row with which the others are compared."""
    page: Page
    """Text and figures for the report."""

    def row(self, name: str) -> Row:
        """What a row of the table is."""
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
        """Every run of the experiment, or those asked for. Unknown names are errors before anything runs.

        `config` and `options` override fields of the run's config and options of the learner; `arguments` are those
        of the command that say so.
        """
        if scale not in SCALES:
            raise ValueError(unknown("scale", scale, SCALES))
        trials = list(range(self.seeds[scale]) if seeds is None else seeds)
        specs = []
        for column in data or self.rows:
            size = self._config(column, scale, config or {})
            for name in self._choose_rows(column, rows, asked=bool(data)):
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

    def _choose_rows(self, column: str, wanted: Sequence[str] | None, *, asked: bool) -> Sequence[str]:
        """The rows of a column. Where no column was asked for, a row that is listed elsewhere is left out here."""
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
        return [name for name in wanted if asked or name in listed or name not in everywhere]


def perform(experiment: Experiment, spec: RunSpec, context: RunContext, out: Path) -> Record:
    """Carry out a run and write its record; with `resume`, a finished run is not repeated."""
    config = json.loads(json.dumps(experiment.values(spec), default=str))
    if context.resume:
        known = read_result(spec, out)
        if isinstance(known, Record) and stable(known.config) == stable(config):
            return known
    record = Record(
        experiment=spec.experiment,
        model=spec.row,
        data=spec.data,
        scale=spec.scale,
        seed=spec.seed,
        config=config,
        command=spec.command(),
        started=_now(),
    )
    record.write(spec.path(out))
    try:
        for name, value in experiment.run(spec, context).fields().items():
            setattr(record, name, value)
        record.status = "finished"
    except (Interrupted, KeyboardInterrupt):
        raise
    except Exception as error:
        record.status = "failed"
        record.notes.append(f"{type(error).__name__}: {error}")
    record.finished = _now()
    record.write(spec.path(out))
    return record


def read_result(spec: RunSpec, out: Path) -> Record | str:
    """The record of a finished run, or why there is none."""
    try:
        record = read_record(spec.path(out))
    except RecordError as error:
        return str(error)
    if record.status == "finished":
        return record
    return f"{spec}: {record.status}: {'; '.join(record.notes) or 'it did not finish'}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
