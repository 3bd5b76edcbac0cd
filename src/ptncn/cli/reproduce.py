"""`ptncn reproduce`: run the paper's experiments and print their tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ptncn.cli.common import OPTION_HELP, note, one_line_errors, parse_options, print_resume_command, split_names
from ptncn.experiments import EXPERIMENTS
from ptncn.experiments.config import SCALES
from ptncn.experiments.experiment import Experiment
from ptncn.experiments.launcher import LaunchOptions, launch, read_result
from ptncn.experiments.run import TUNED, Interrupted, RunSpec, Stop
from ptncn.records import Comparison, Record, RecordError, compare, summarise


def reproduce(
    experiments: Annotated[list[str], typer.Argument(help="Names from the list above, or all.")],
    scale: Annotated[
        str,
        typer.Option(
            help=f"Size of the runs: {', '.join(SCALES)}. Seconds, about an hour per table, or the paper's sizes."
        ),
    ] = "laptop",
    learners: Annotated[
        list[str] | None,
        typer.Option(help="Only these learners or rows, separated by commas."),
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option(hidden=True, help="Former name of --learners, used in old records.")
    ] = None,
    data: Annotated[list[str] | None, typer.Option(help="Only these datasets or columns, separated by commas.")] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Repeat each run with seeds 0 to N − 1. Default: the scale's.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Run only this seed.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs of training. Default: the scale's.")] = None,
    sequences: Annotated[int | None, typer.Option(min=1, help="Sequences in an epoch. Default: the scale's.")] = None,
    patience: Annotated[
        int | None, typer.Option(min=1, help="Stop when validation has not improved for this many epochs.")
    ] = None,
    option: Annotated[list[str] | None, typer.Option("--option", "-o", help=OPTION_HELP)] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue stopped runs; skip finished ones.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Train again, even where --runs has a trained network.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Number of parallel processes, one run each.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the tables as JSON.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for the records. Default: results/SCALE.")] = None,
    runs: Annotated[Path, typer.Option(help="Folder for checkpoints and trained networks.")] = Path("runs"),
    configs: Annotated[
        Path | None, typer.Option(help="Folder of tuned values from `ptncn tune`. Default: those of the package.")
    ] = None,
    checkpoint_every: Annotated[float, typer.Option(min=0, help="Seconds between checkpoints.")] = 60.0,
) -> None:
    """Run the paper's experiments and print their tables, our numbers next to the paper's.

    \b
    EXPERIMENTS

    Each run writes a record to --out, and tables are made from records. If a dataset has not been downloaded
    (`ptncn data fetch`), a small embedded one replaces it, and a note says so. Ctrl-C leaves a checkpoint; --resume
    continues.

    \b
    Examples:
      ptncn reproduce discrete
      ptncn reproduce prediction --scale smoke --learners ptncn,lstm-bptt
      ptncn reproduce prediction --scale paper --data mnist -o lr=0.001
      ptncn reproduce all --scale laptop --jobs 2 --resume
    """
    stop = Stop()
    with one_line_errors(), stop.listen():
        sizes = {"epochs": epochs, "sequences": sequences, "patience": patience}
        changes = {name: value for name, value in sizes.items() if value is not None}
        common: dict[str, Any] = {
            "rows": split_names([*(learners or []), *(models or [])]),
            "data": split_names(data),
            "seeds": [seed] if seed is not None else None if seeds is None else range(seeds),
            "tuned": configs or TUNED,
            "config": changes,
            "options": parse_options(option),
            "arguments": _arguments(changes, option, configs),
        }
        names = EXPERIMENTS.names() if experiments == ["all"] else experiments
        chosen = [(each, each.specs(scale, **common)) for each in map(EXPERIMENTS.find, names)]
        options = LaunchOptions(out or Path("results") / scale, runs, resume, fresh, checkpoint_every, jobs)
        try:
            all_specs = [spec for _, specs in chosen for spec in specs]
            launch(all_specs, options, lambda line: note(line, style="dim"), stop)
        except (Interrupted, KeyboardInterrupt):
            print_resume_command()
            raise typer.Exit(130) from None
        complete = [_print_results(each, specs, options.out, as_json=as_json) for each, specs in chosen]
    raise typer.Exit(0 if all(complete) else 1)


reproduce.__doc__ = (reproduce.__doc__ or "").replace(
    "EXPERIMENTS", "\n    ".join(f"{name:14} {each.about}" for name, each in EXPERIMENTS.items())
)


def _arguments(changes: dict[str, int], option: list[str] | None, configs: Path | None) -> tuple[str, ...]:
    """The arguments to keep in records, so that their commands repeat the run."""
    arguments = [part for name, value in changes.items() for part in (f"--{name}", str(value))]
    arguments += [part for pair in option or [] for part in ("--option", pair)]
    return (*arguments, *(("--configs", str(configs)) if configs else ()))


def _print_results(experiment: Experiment, specs: Sequence[RunSpec], out: Path, *, as_json: bool) -> bool:
    """Print an experiment's table; returns whether every run has finished."""
    results = [read_result(spec, out) for spec in specs]
    records = [each for each in results if isinstance(each, Record)]
    if as_json:
        typer.echo(json.dumps(mean_cells(experiment, records)))
    else:
        console = Console(highlight=False)
        console.print(f"\n{experiment.name}: {experiment.about}", style="bold")
        for metric, table in _draw_tables(experiment, records).items():
            console.print(f"\n{metric}: ours (the paper's)")
            console.print(table)
        for line in [*_comparison_lines(experiment, records), f"Records: {out / experiment.name}"]:
            console.print(line, soft_wrap=True, markup=False)
    for line in dict.fromkeys(line for record in records for line in record.notes):
        note(f"Note: {line}")
    for problem in results:
        if isinstance(problem, str):
            note(f"Not finished: {problem}", style="red")
    return len(records) == len(specs)


Means = dict[str, dict[str, Any]]
"""{metric: {row: {column: value}}}; without columns {metric: {row: value}}."""


def mean_cells(experiment: Experiment, records: Sequence[Record]) -> Means:
    """The mean of every cell over trials."""
    values: dict[str, dict[str, dict[str, list[float]]]] = {}
    for record in records:
        for metric, row in experiment.cells(record).items():
            for column, value in row.items():
                if value is not None:
                    cells = values.setdefault(metric, {}).setdefault(record.row, {})
                    cells.setdefault(column, []).append(value)
    return {
        metric: {row: _collapse({column: fmean(each) for column, each in cells.items()}) for row, cells in rows.items()}
        for metric, rows in values.items()
    }


def _collapse(row: dict[str, float]) -> Any:
    return row[""] if set(row) == {""} else row


def _draw_tables(experiment: Experiment, records: Sequence[Record]) -> dict[str, Table]:
    """A table for each metric: our numbers, with the paper's in brackets."""
    metrics: dict[str, dict[str, None]] = {}
    for record in records:
        for metric, row in experiment.cells(record).items():
            metrics.setdefault(metric, {}).update(dict.fromkeys(row))
    return {metric: _draw_table(experiment, records, metric, list(columns)) for metric, columns in metrics.items()}


def _draw_table(experiment: Experiment, records: Sequence[Record], metric: str, columns: list[str]) -> Table:
    table = Table("learner", *(column or metric for column in columns), box=None)
    known = experiment.paper.get(metric, {})
    for row in dict.fromkeys([*known, *(record.row for record in records)]):
        cells = []
        for column in columns:
            ours = _spread(experiment, records, metric, row, column)
            paper = known.get(row, {}).get(column)
            cells.append(f"{ours or '–'}{f' ({paper:g})' if paper is not None else ''}")
        if any(not cell.startswith("–") for cell in cells):
            table.add_row(row, *cells)
    return table


def _spread(experiment: Experiment, records: Sequence[Record], metric: str, row: str, column: str) -> str | None:
    """Mean and standard deviation over trials, or None without any."""
    values = [
        value
        for record in records
        if record.row == row and (value := experiment.cells(record).get(metric, {}).get(column)) is not None
    ]
    if not values:
        return None
    summary = summarise(values)
    digits = 4 if abs(summary.mean) < 10 else 2
    text = f"{summary.mean:.{digits}f}"
    return f"{text} ± {summary.sd:.{digits}f}" if summary.trials > 1 else text


def _comparison_lines(experiment: Experiment, records: Sequence[Record]) -> list[str]:
    """A line for each row about its difference from the reference row, over the sequences of the same trial."""
    if experiment.compared_by is None:
        return []
    lines, ours = [], experiment.reference
    references = {(record.data, record.seed): record for record in records if record.row == ours}
    for record in records:
        reference = references.get((record.data, record.seed))
        if record.row == ours or reference is None:
            continue
        comparison = _compare(reference, record, *experiment.compared_by)
        if comparison is not None:
            verdict = "significant" if comparison.significant else "not significant"
            lines.append(
                f"{ours} − {record.row} on {record.data}, seed {record.seed}, {' '.join(experiment.compared_by)}: "
                f"{comparison.difference:+.3f} [{comparison.low:+.3f}, {comparison.high:+.3f}] over {comparison.pairs} "
                f"sequences, {verdict}"
            )
    return lines


def _compare(ours: Record, theirs: Record, phase: str, metric: str) -> Comparison | None:
    """A paired comparison over sequences, by BPC for text; None if either record lacks these errors."""
    metric = "bpc" if "bpc" in ours.errors.get(phase, {}) else metric
    try:
        return compare(ours.sequence_errors(phase, metric), theirs.sequence_errors(phase, metric))
    except (RecordError, ValueError):
        return None
