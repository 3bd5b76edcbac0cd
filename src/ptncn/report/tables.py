"""Tables of results: the paper's number, ours, the ratio, and whether models differ beyond chance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ptncn.experiments.experiment import Experiment
from ptncn.report.cells import Cell, cells_of, differ, metrics_of, number
from ptncn.report.labels import label
from ptncn.report.model import Table
from ptncn.report.scale import scale_in_words
from ptncn.report.sources import Source, relative
from ptncn.report.subjects import Subject
from ptncn.report.verdicts import HEROES, by_column, mark, place

FEW, MANY = 2, 6
"""So few columns, or so many models, have a table for each column."""


def result_tables(experiment: Experiment, subject: Subject, sources: Sequence[Source]) -> list[Table]:
    """One for each metric that the paper has, or whose errors can be compared; then one with all that remains.

    Where there are few columns or many models, each column of the paper has a table of its own.
    """
    tables, remaining, bounds = [], [], []
    for metric in metrics_of(sources):
        cells = cells_of(experiment, sources, metric)
        if subject.bounds and metric in experiment.paper:
            bounds.append((metric, cells))
            continue
        if metric not in experiment.paper and not any(subject.errors(metric, cell.column) for cell in cells):
            remaining.append((metric, cells))
            continue
        columns = by_column(cells)
        apart = len(columns) <= FEW or max(map(len, columns.values())) >= MANY
        tables += [_results(experiment, subject, metric, group) for group in (columns.values() if apart else [cells])]
    if bounds:
        tables.append(_bounds(experiment, subject, bounds))
    if remaining:
        tables.append(_further(experiment, subject, remaining))
    return tables


def _results(experiment: Experiment, subject: Subject, metric: str, cells: Sequence[Cell]) -> Table:
    columns, known = by_column(cells), metric in experiment.paper
    several, trials = len(columns) > 1, any(cell.summary is not None and cell.summary.trials > 1 for cell in cells)
    differences = _differences(subject, metric, cells)
    headings = ["model", *(["on"] if several else []), *(["paper"] if known else []), "ours"]
    headings += ["± sd"] if trials else []
    headings += ["ratio", "reached?"] if known else []
    headings += ["P-TNCN − it", "95 % from", "to", "beyond chance?"] if differences else []
    rows = []
    for cell in cells:
        row = [_named(cell.model), *([label(cell.column)] if several else [])]
        row += ["–" if cell.paper is None else f"{cell.paper:g}"] if known else []
        row += [number(cell.ours), *([number(cell.sd, cell.ours)] if trials else [])]
        row += ["–" if cell.ratio is None else f"{cell.ratio:.2f}×", mark(cell, subject)] if known else []
        row += differences.get((cell.model, cell.column), ["–", "–", "–", ""]) if differences else []
        rows.append([*row, str(cell.summary.trials if cell.summary else 0)])
    used = [source for cell in cells for source in cell.sources]
    name = place(subject, metric, "" if several else cells[0].column)
    beside = ", beside the paper’s" if known else ""
    caption = f"**{name[:1].upper()}{name[1:]}**{beside}. Scale {_sizes(subject, used)}."
    return Table(caption, [*headings, "seeds"], rows, origin(used), command(experiment, used))


def _sizes(subject: Subject, sources: Sequence[Source]) -> str:
    return "; ".join(dict.fromkeys(scale_in_words(subject, source.record) for source in sources))


def _signed(value: float, like: float | None) -> str:
    return f"{'+' if value > 0 else ''}{number(value, like)}"


def _named(model: str) -> str:
    return f"**{label(model)}**" if model in HEROES else label(model)


def _differences(subject: Subject, metric: str, cells: Sequence[Cell]) -> dict[tuple[str, str], list[str]]:
    """By model and column: the P-TNCN's error minus that of the model."""
    rows = {}
    for column, group in by_column(cells).items():
        ours = next((cell for cell in group if cell.model == "ptncn" and cell.sources), None)
        for cell in group:
            found = None if ours is None or cell is ours else differ(subject, metric, ours, cell)
            if found is not None:
                told = [_signed(value, cell.ours) for value in (found.difference, found.low, found.high)]
                rows[cell.model, column] = [*told, "yes" if found.beyond_chance else "no"]
    return rows


def _bounds(experiment: Experiment, subject: Subject, measured: Sequence[tuple[str, Sequence[Cell]]]) -> Table:
    """A row a model: each exponent beside the paper's, and whether all lie within the bounds."""
    found = {(metric, cell.model): cell for metric, cells in measured for cell in cells if cell.summary}
    headings, rows = ["model", "reached?"], []
    for metric, _ in measured:
        headings += [f"{subject.names.get(metric, metric)}: paper", "ours", "ratio"]
    for model in dict.fromkeys(model for _, model in found):
        cells = {metric: found.get((metric, model)) for metric, _ in measured}
        beyond = [subject.names[metric] for metric, cell in cells.items() if cell and mark(cell, subject)[:1] == "▲"]
        known = any(cell and cell.paper is not None for cell in cells.values())
        row = [_named(model), f"▲ {', '.join(beyond)}" if beyond else "● within all bounds" if known else ""]
        for cell in cells.values():
            paper, ratio = (cell.paper, cell.ratio) if cell else (None, None)
            row += ["–" if paper is None else f"{paper:g}", number(cell.ours if cell else None, 1.0)]
            row.append("–" if ratio is None else f"{ratio:.2f}×")
        rows.append([*row, str(max(cell.summary.trials for cell in cells.values() if cell and cell.summary))])
    used = [source for cell in found.values() for source in cell.sources]
    caption = f"**Exponents**, beside the paper’s bounds. Scale {used[0].record.scale}; ▲ names those that grow faster."
    return Table(caption, [*headings, "seeds"], rows, origin(used), command(experiment, used))


def _further(experiment: Experiment, subject: Subject, measured: Sequence[tuple[str, Sequence[Cell]]]) -> Table:
    """What the paper has no numbers of: a row a model, and a column for each measure."""
    columns = [(metric, column) for metric, cells in measured for column in by_column(cells)]
    found = {(metric, cell.column, cell.model): cell for metric, cells in measured for cell in cells}
    models = dict.fromkeys(cell.model for _, cells in measured for cell in cells)
    headings = ["model"]
    for metric, column in columns:
        name = subject.names.get(metric, metric)
        headings += [f"{name}, {column}" if column else name, "± sd"]
    rows = []
    for model in models:
        row, trials = [_named(model)], 0
        for metric, column in columns:
            cell = found.get((metric, column, model))
            summary = cell.summary if cell else None
            row += [number(summary.mean), number(summary.sd, summary.mean)] if summary else ["–", "–"]
            trials = max(trials, summary.trials if summary else 0)
        rows.append([*row, str(trials)])
    used = [source for cell in found.values() for source in cell.sources]
    alone = [at for at, heading in enumerate(headings) if heading == "± sd" and all(r[at] == "–" for r in rows)]
    rows = [[cell for at, cell in enumerate(row) if at not in alone] for row in rows]
    headings = [heading for at, heading in enumerate(headings) if at not in alone]
    caption = f"**Further measures**, of which the paper has no numbers. Scale {_sizes(subject, used)}."
    return Table(caption, [*headings, "seeds"], rows, origin(used), command(experiment, used))


def origin(sources: Sequence[Source]) -> str:
    """Which records, by their folders."""
    folders: dict[str, set[Path]] = {}
    for source in sources:
        folders.setdefault(relative(source.file.parent), set()).add(source.file)
    told = [f"{len(files)} record{'s' * (len(files) > 1)} in `{folder}`" for folder, files in folders.items()]
    return f"From {', '.join(told)}." if told else ""


def command(experiment: Experiment, sources: Sequence[Source]) -> str:
    """What makes these records again: all models and data of the experiment, and those that are not in the paper."""
    if not sources:
        return ""
    records = [source.record for source in sources]
    scale, trials = records[0].scale, max(record.seed for record in records) + 1
    line = f"ptncn reproduce {experiment.name} --scale {scale}"
    roster = {model for models in experiment.rows.values() for model in models}
    strangers = {record.model for record in records} - roster
    if strangers:
        line += f" --models {','.join(dict.fromkeys(record.model for record in records))}"
    elsewhere = {record.data for record in records} - set(experiment.rows)
    if elsewhere:
        line += f" --data {','.join(dict.fromkeys(record.data for record in records))}"
    return line if trials == experiment.seeds.get(scale) else f"{line} --seeds {trials}"
