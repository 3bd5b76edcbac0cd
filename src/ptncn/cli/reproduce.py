"""`ptncn reproduce`: run the paper's experiments and print their tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ptncn.cli.common import OPTION_HELP, note, one_line_errors, parse_options, say_how_to_continue, split_names
from ptncn.experiments import EXPERIMENTS
from ptncn.experiments.config import SCALES
from ptncn.experiments.experiment import Experiment
from ptncn.experiments.launcher import LaunchOptions, comparison_lines, draw_tables, launch, mean_cells, read_results
from ptncn.experiments.run import TUNED, Interrupted, RunSpec, Stop


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
        typer.Option("--learners", "--models", help="Only these learners or rows, separated by commas."),
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
    jobs: Annotated[int, typer.Option(min=1, help="Runs in parallel, each in a process of its own.")] = 1,
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

    Each run writes a record to --out, and tables are made from records. Where a dataset has not been downloaded
    (`ptncn data fetch`), a small embedded one replaces it, and a note says so. Ctrl-C leaves a checkpoint; --resume
    continues.

    \b
    Examples:
      ptncn reproduce discrete
      ptncn reproduce prediction --scale smoke --learners ptncn,lstm-bptt --data mnist
      ptncn reproduce prediction --scale paper --learners ptncn --epochs 4 --option lr=0.001
      ptncn reproduce all --scale laptop --jobs 2 --resume
    """
    stop = Stop()
    with one_line_errors(), stop.listen():
        given = {"epochs": epochs, "sequences": sequences, "patience": patience}
        changes = {name: value for name, value in given.items() if value is not None}
        common: dict[str, Any] = {
            "rows": split_names(learners),
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
            every = [spec for _, specs in chosen for spec in specs]
            launch(every, options, lambda line: note(line, style="dim"), stop)
        except (Interrupted, KeyboardInterrupt):
            say_how_to_continue()
            raise typer.Exit(130) from None
        complete = [_show(each, specs, options.out, as_json=as_json) for each, specs in chosen]
    raise typer.Exit(0 if all(complete) else 1)


reproduce.__doc__ = (reproduce.__doc__ or "").replace(
    "EXPERIMENTS", "\n    ".join(f"{name:14} {each.about}" for name, each in EXPERIMENTS.items())
)


def _arguments(changes: dict[str, int], option: list[str] | None, configs: Path | None) -> tuple[str, ...]:
    """The arguments that records repeat, so that their commands make the same run."""
    arguments = [part for name, value in changes.items() for part in (f"--{name}", str(value))]
    arguments += [part for pair in option or [] for part in ("--option", pair)]
    return (*arguments, *(("--configs", str(configs)) if configs else ()))


def _show(experiment: Experiment, specs: Sequence[RunSpec], out: Path, *, as_json: bool) -> bool:
    """Print an experiment's table; returns whether every run has finished."""
    records, problems = read_results(specs, out)
    if as_json:
        typer.echo(json.dumps(mean_cells(experiment, records)))
    else:
        console = Console(highlight=False)
        console.print(f"\n{experiment.name}: {experiment.about}", style="bold")
        for metric, table in draw_tables(experiment, records).items():
            console.print(f"\n{metric}: ours (the paper's)")
            console.print(table)
        for line in [*comparison_lines(experiment, records), f"Records: {out / experiment.name}"]:
            console.print(line, soft_wrap=True, markup=False)
    for line in dict.fromkeys(line for record in records for line in record.notes):
        note(f"Note: {line}")
    for line in problems:
        note(f"Not finished: {line}", style="red")
    return not problems
