"""Tables of results: the paper's numbers, ours, their ratio, and paired differences from the reference row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ptncn.experiments.config import LABELS
from ptncn.experiments.experiment import Experiment
from ptncn.learners.registry import LEARNERS
from ptncn.report.assessment import (
    TableCell,
    by_column,
    cells_of,
    differ,
    mark,
    metrics_of,
    number,
    place,
    reference_cell,
    run_config,
)
from ptncn.report.model import Table, data_label, metric_label, row_label
from ptncn.report.sources import RecordSource, relative

FEW, MANY = 2, 6
"""With at most FEW columns, or at least MANY rows, each column gets a separate table."""


def result_tables(experiment: Experiment, sources: Sequence[RecordSource]) -> list[Table]:
    """A table for each metric that the paper has or that can be compared by sequence, and one for the others."""
    tables, further, bounds = [], [], []
    for metric in metrics_of(sources):
        cells = cells_of(experiment, sources, metric)
        if experiment.page.bounds and metric in experiment.paper:
            bounds.append((metric, cells))
        elif metric in experiment.paper or any(experiment.page.errors(metric, cell.column) for cell in cells):
            columns = by_column(cells)
            split = len(columns) <= FEW or max(map(len, columns.values())) >= MANY
            tables += [_results(experiment, metric, group) for group in (columns.values() if split else [cells])]
        else:
            further.append((metric, cells))
    if bounds:
        tables.append(_bounds(experiment, bounds))
    if further:
        tables.append(_further(experiment, further))
    return tables


def _results(experiment: Experiment, metric: str, cells: Sequence[TableCell]) -> Table:
    columns, known = by_column(cells), metric in experiment.paper
    several, seeds = len(columns) > 1, any(cell.summary is not None and cell.summary.trials > 1 for cell in cells)
    differences = _differences(experiment, metric, cells)
    headings = ["learner", *(["on"] if several else []), *(["paper"] if known else []), "ours"]
    headings += ["± sd"] if seeds else []
    headings += ["ratio", "reached?"] if known else []
    headings += ["difference", "95 % from", "to", "significant?"] if differences else []
    rows = []
    for cell in cells:
        row = [_bold(experiment, cell.row), *([data_label(cell.column)] if several else [])]
        row += ["–" if cell.paper is None else f"{cell.paper:g}"] if known else []
        row += [number(cell.ours), *([number(cell.sd, cell.ours)] if seeds else [])]
        row += ["–" if cell.ratio is None else f"{cell.ratio:.2f}×", mark(cell, experiment)] if known else []
        row += differences.get((cell.row, cell.column), ["–", "–", "–", ""]) if differences else []
        rows.append([*row, str(cell.summary.trials if cell.summary else 0)])
    name = place(experiment, metric, "" if several else cells[0].column)
    paper = ", compared with the paper" if known else ""
    caption = f"**{name[:1].upper()}{name[1:]}**{paper}. Scale {_sizes(experiment, _used(cells))}."
    variants = dict.fromkeys(_variants(experiment, columns.values())) if differences else {}
    caption += f" Differences are from {', '.join(variants)}." if variants else ""
    return _table(experiment, caption, headings, rows, _used(cells))


def _differences(experiment: Experiment, metric: str, cells: Sequence[TableCell]) -> dict[tuple[str, str], list[str]]:
    """By row and column: the error of the reference row minus that of the row."""
    rows = {}
    for column, group in by_column(cells).items():
        reference = reference_cell(experiment, group)
        for cell in group:
            comparison = None if reference is None or cell is reference else differ(experiment, metric, reference, cell)
            if comparison is not None:
                values = [
                    _signed(value, cell.ours) for value in (comparison.difference, comparison.low, comparison.high)
                ]
                rows[cell.row, column] = [*values, "yes" if comparison.significant else "no"]
    return rows


def _variants(experiment: Experiment, groups: Iterable[Sequence[TableCell]]) -> list[str]:
    """Labels of the variants that stand for the reference row in some column."""
    references = [reference_cell(experiment, group) for group in groups]
    return [row_label(experiment, cell.row) for cell in references if cell and cell.row != experiment.reference]


def _bounds(experiment: Experiment, measured: Sequence[tuple[str, Sequence[TableCell]]]) -> Table:
    """A row per learner: each exponent with the paper's, and whether all are within the bounds."""
    by_metric = {(metric, cell.row): cell for metric, cells in measured for cell in cells if cell.summary}
    headings, rows = ["learner", "reached?"], []
    for metric, _ in measured:
        headings += [f"{metric_label(experiment, metric)}: paper", "ours", "ratio"]
    for name in dict.fromkeys(name for _, name in by_metric):
        cells = {metric: by_metric.get((metric, name)) for metric, _ in measured}
        beyond = [
            metric_label(experiment, metric)
            for metric, cell in cells.items()
            if cell and mark(cell, experiment)[:1] == "▲"
        ]
        known = any(cell and cell.paper is not None for cell in cells.values())
        row = [_bold(experiment, name), f"▲ {', '.join(beyond)}" if beyond else "● within all bounds" if known else ""]
        for cell in cells.values():
            paper, ratio = (cell.paper, cell.ratio) if cell else (None, None)
            row += ["–" if paper is None else f"{paper:g}", number(cell.ours if cell else None, 1.0)]
            row.append("–" if ratio is None else f"{ratio:.2f}×")
        rows.append([*row, str(max(cell.summary.trials for cell in cells.values() if cell and cell.summary))])
    used = _used(list(by_metric.values()))
    scale = used[0].record.scale
    caption = f"**Exponents**, compared with the paper’s bounds. Scale {scale}; ▲ names those that grow faster."
    return _table(experiment, caption, headings, rows, used)


def _further(experiment: Experiment, measured: Sequence[tuple[str, Sequence[TableCell]]]) -> Table:
    """Metrics that are not in the paper: a row per learner, a column per metric."""
    columns = [(metric, column) for metric, cells in measured for column in by_column(cells)]
    by_place = {(metric, cell.column, cell.row): cell for metric, cells in measured for cell in cells}
    headings = ["learner"]
    for metric, column in columns:
        name = metric_label(experiment, metric)
        headings += [f"{name}, {column}" if column else name, "± sd"]
    rows = []
    for name in dict.fromkeys(cell.row for _, cells in measured for cell in cells):
        row, seeds = [_bold(experiment, name)], 0
        for metric, column in columns:
            cell = by_place.get((metric, column, name))
            summary = cell.summary if cell else None
            row += [number(summary.mean), number(summary.sd, summary.mean)] if summary else ["–", "–"]
            seeds = max(seeds, summary.trials if summary else 0)
        rows.append([*row, str(seeds)])
    empty = [at for at, heading in enumerate(headings) if heading == "± sd" and all(row[at] == "–" for row in rows)]
    rows = [[cell for at, cell in enumerate(row) if at not in empty] for row in rows]
    headings = [heading for at, heading in enumerate(headings) if at not in empty]
    used = _used(list(by_place.values()))
    caption = f"**Further metrics**, not in the paper. Scale {_sizes(experiment, used)}."
    return _table(experiment, caption, headings, rows, used)


def _table(
    experiment: Experiment,
    caption: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    used: Sequence[RecordSource],
) -> Table:
    return Table(caption, [*headings, "seeds"], rows, origin(used), command(experiment, used))


def _used(cells: Sequence[TableCell]) -> list[RecordSource]:
    return [source for cell in cells for source in cell.sources]


def _sizes(experiment: Experiment, sources: Sequence[RecordSource]) -> str:
    """Every size of these runs; where they differ, with the learners that have it."""
    learners: dict[str, dict[str, None]] = {}
    for source in sources:
        label = row_label(experiment, source.record.row)
        learners.setdefault(size_in_words(experiment, source), {})[label] = None
    if len(learners) == 1:
        return next(iter(learners))
    return "; ".join(f"{size}: {', '.join(labels)}" for size, labels in learners.items())


def _signed(value: float, like: float | None) -> str:
    return f"{'+' if value > 0 else ''}{number(value, like)}"


def _bold(experiment: Experiment, row: str) -> str:
    label = row_label(experiment, row)
    return f"**{label}**" if row == experiment.reference else label


def origin(sources: Sequence[RecordSource]) -> str:
    """The number of records per folder, as a sentence."""
    folders: dict[str, set[Path]] = {}
    for source in sources:
        folders.setdefault(relative(source.file.parent), set()).add(source.file)
    counts = [f"{len(files)} record{'s' * (len(files) > 1)} in `{folder}`" for folder, files in folders.items()]
    return f"From {', '.join(counts)}." if counts else ""


def command(experiment: Experiment, sources: Sequence[RecordSource]) -> str:
    """The command that makes these records, with options for rows and data that are not in the paper."""
    if not sources:
        return ""
    records = [source.record for source in sources]
    scale, seeds = records[0].scale, max(record.seed for record in records) + 1
    line = f"ptncn reproduce {experiment.name} --scale {scale}"
    if {record.row for record in records} - set(experiment.all_rows()):
        line += f" --learners {','.join(dict.fromkeys(record.row for record in records))}"
    if {record.data for record in records} - set(experiment.rows):
        line += f" --data {','.join(dict.fromkeys(record.data for record in records))}"
    return line if seeds == experiment.seeds.get(scale) else f"{line} --seeds {seeds}"


HIDDEN = ("embedded", "seeds", "seed", "options", "chunk", "row", "data", "source", "tuned")


def choices_table(experiment: Experiment, sources: Sequence[RecordSource]) -> Table:
    """How the relevant choices were made, from the options in the records."""
    learners = [source.record.learner for source in sources]
    known = {**experiment.page.own_choices}
    for entry in LEARNERS.values():
        known |= entry.choices
    rows = []
    for choice in sorted(experiment.page.choices):
        values = [f"`{name}={value}`" for name in known[choice].options if (value := _values(learners, name))]
        answer = known[choice].answer or ", ".join(values) or "not in these records"
        rows.append((str(choice), known[choice].about, answer))
    caption = "Choices where the paper is silent or ambiguous; numbers and reasons: [docs/choices.md](../choices.md)."
    return Table(caption, ("#", "choice", "here"), rows)


def _values(learners: Sequence[Mapping[str, Any]], name: str) -> str:
    values = dict.fromkeys(json.dumps(learner[name]).strip('"') for learner in learners if name in learner)
    return " or ".join(values).replace("true", "True").replace("false", "False")


def size_tables(experiment: Experiment, sources: Sequence[RecordSource]) -> list[Table]:
    """For each group of runs with the same config: the values here and at the paper's scale."""
    groups: dict[tuple[tuple[str, str, str], ...], list[RecordSource]] = {}
    for source in sources:
        here, paper = run_config(source), experiment.page.paper_config(source.record)
        names = [name for name in here if name not in HIDDEN and name in paper]
        rows = tuple((_label(name, paper[name]), _show(here[name]), _show(paper[name])) for name in names)
        groups.setdefault(rows, []).append(source)
    tables = []
    for rows, group in groups.items():
        on = ", ".join(dict.fromkeys(data_label(source.record.data) for source in group))
        scale = group[0].record.scale
        if rows:
            caption = f"Sizes at scale `{scale}` and at the paper’s scale: {on}."
            tables.append(Table(caption, ("", scale, "paper"), rows))
    return tables


def size_in_words(experiment: Experiment, source: RecordSource) -> str:
    """The size of a run and that of the paper, in one line."""
    scale = source.record.scale
    here, paper = _size(run_config(source)), _size(experiment.page.paper_config(source.record))
    if not here:
        return scale
    return f"{scale}: {here}" + (f" (paper: {paper})" if here != paper else ", as in the paper")


def _size(config: Mapping[str, Any]) -> str:
    parts = []
    if isinstance(config.get("units"), int):
        parts.append(f"{config.get('layers', 1)} × {config['units']:,} units")
    for name in ("sequences", "epochs", "steps"):
        if isinstance(count := config.get(name), int):
            parts.append(f"{count:,} {name if count != 1 else name[:-1]}")
    if config.get("canvas", 64) != 64:
        parts.append(f"{config['canvas']} × {config['canvas']} pixels")
    return ", ".join(parts)


def learners_table(experiment: Experiment, sources: Sequence[RecordSource]) -> Table | None:
    """A row for each learner and its options; None if the records do not have them."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for source in sources:
        if source.record.learner:
            key = (row_label(experiment, source.record.row), *_learner_values(source))
            rows.setdefault(key, []).append(data_label(str(_training(source).get("data", source.record.data))))
    if not rows:
        return None
    cells = [(label, ", ".join(dict.fromkeys(data)), *values) for (label, *values), data in rows.items()]
    headings = ("learner", "trained on", "units", "optimiser", "first step size", "tuned values")
    return Table("Learners and their options, from the records.", headings, cells)


def _learner_values(source: RecordSource) -> tuple[str, ...]:
    options, training = source.record.learner, _training(source)
    chosen: Any = training.get("options", {})
    chosen = chosen if isinstance(chosen, Mapping) else {}
    sizes: Any = options.get("hidden_sizes", options.get("hidden_size"))
    if isinstance(sizes, list) and sizes and len(set(map(str, sizes))) == 1:
        sizes = f"{len(sizes)} × {sizes[0]}"
    entry = LEARNERS.get(source.record.row)
    values = (
        None if entry is not None and entry.size_class == "none" else sizes,
        chosen.get("optimizer", options.get("optimizer")),
        chosen.get("lr", options.get("lr")),
        training.get("tuned"),
    )
    return tuple("–" if value is None else str(value) for value in values)


def _training(source: RecordSource) -> Mapping[str, Any]:
    training: Any = source.record.config.get("training", source.record.config)
    return training if isinstance(training, Mapping) else {}


def _label(name: str, value: Any) -> str:
    own = name.replace("_", " ")
    return own if isinstance(value, list | tuple) else LABELS.get(name, own)


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(_show(each) for each in value)
    return str(value)
