"""`ptncn reproduce`: the paper's tables and figures with our numbers beside them."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ptncn.checkpoint import CheckpointError
from ptncn.data import DataError
from ptncn.experiments import NAMES, find_experiment
from ptncn.experiments.base import Experiment, Job
from ptncn.experiments.reproduce import carry_out, choose_jobs, make_table, plan_works, read_jobs
from ptncn.experiments.setting import SCALES
from ptncn.experiments.tables import against_ptncn, draw_tables
from ptncn.experiments.workshop import Interrupted, Stop

errors = Console(stderr=True, highlight=False)


def reproduce(
    experiments: Annotated[list[str], typer.Argument(help=f"Any of {', '.join(NAMES)}; or all.")],
    scale: Annotated[
        str, typer.Option(help=f"One of {', '.join(SCALES)}: seconds, about an hour a table, or the paper's sizes.")
    ] = "laptop",
    models: Annotated[list[str] | None, typer.Option(help="Only these; several with commas or repeated.")] = None,
    data: Annotated[list[str] | None, typer.Option(help="Only these columns; several with commas or repeated.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Trials: seeds 0 to N − 1. Default: the scale's.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a run was stopped; skip finished ones.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Train anew what is kept in --runs.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Processes side by side; they share the cores.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the cells of the table as JSON.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for the records. Default: results/SCALE.")] = None,
    runs: Annotated[Path, typer.Option(help="Folder for checkpoints and trained networks.")] = Path("runs"),
    configs: Annotated[Path, typer.Option(help="Folder of tuned values; without it the defaults serve.")] = Path(
        "configs"
    ),
    checkpoint_every: Annotated[float, typer.Option(min=0, help="Seconds between two checkpoints.")] = 60.0,
) -> None:
    """Make a table or figure of the paper again, with our numbers beside the paper's.

    \b
    prediction     table I: bouncing MNIST and NotMNIST, Penn Treebank
    continual      table II: MNIST → NotMNIST → Fashion MNIST in one pass
    zero-shot      table III: objects never seen, with frozen weights
    one-shot       appendix: letters once with learning, then clothes without
    out-of-domain  appendix: one and three objects after a training on two
    discrete       appendix: signs and tanh on a noisy cosine
    complexity     appendix: time and memory against units, layers, length

    Each run writes one record under --out; tables are made from those. Where a dataset is not in the cache, an
    embedded one stands in for it, and the command says so. Ctrl-C leaves a checkpoint, and --resume goes on.

    \b
    Examples:
      ptncn reproduce discrete
      ptncn reproduce prediction --scale smoke --models ptncn,lstm-bptt --data mnist
      ptncn reproduce all --scale laptop --jobs 2 --resume
    """
    stop = Stop()
    with one_line_errors(), stop.listen():
        chosen = [
            (
                experiment,
                choose_jobs(
                    experiment,
                    scale,
                    models=split(models),
                    data=split(data),
                    seeds=seeds,
                    configs=configs if configs.is_dir() and scale != "smoke" else None,
                ),
            )
            for experiment in map(find_experiment, NAMES if experiments == ["all"] else experiments)
        ]
        place = out or Path("results") / scale
        everything = [job for _, each in chosen for job in each]
        works = plan_works(
            everything, out=place, runs=runs, resume=resume, fresh=fresh, every=checkpoint_every, jobs=jobs
        )
        try:
            carry_out(works, jobs, lambda line: errors.print(line, style="dim", markup=False), stop)
        except (Interrupted, KeyboardInterrupt):
            say_how_to_go_on()
            raise typer.Exit(130) from None
        complete = [_show(experiment, each, place, as_json=as_json) for experiment, each in chosen]
    raise typer.Exit(0 if all(complete) else 1)


def _show(experiment: Experiment, jobs: list[Job], out: Path, *, as_json: bool) -> bool:
    """Print an experiment's table; whether every run came to its end."""
    records, problems = read_jobs(jobs, out)
    if as_json:
        typer.echo(json.dumps(make_table(experiment, records)))
    else:
        console = Console(highlight=False)
        console.print(f"\n{experiment.name}: {experiment.about}", style="bold")
        for metric, table in draw_tables(experiment, records).items():
            console.print(f"\n{metric}: ours (the paper's)")
            console.print(table)
        for line in [*against_ptncn(experiment, records), f"Records: {out / experiment.name}"]:
            console.print(line, soft_wrap=True, markup=False)
    for line in dict.fromkeys(note for record in records for note in record.notes):
        errors.print(f"Note: {line}", markup=False, soft_wrap=True)
    for line in problems:
        errors.print(f"Not finished: {line}", style="red", markup=False, soft_wrap=True)
    return not problems


def split(values: list[str] | None) -> list[str] | None:
    """
    >>> split(["ptncn,copy", "mean"])
    ['ptncn', 'copy', 'mean']
    """
    return [part for value in values for part in value.split(",") if part] if values else None


def say_how_to_go_on(resume: str = " --resume") -> None:
    """The command that was given, with what makes it go on."""
    command = shlex.join(argument for argument in sys.argv[1:] if argument != "--resume")
    errors.print(
        f"\nStopped; what was done is kept. Go on with:\n  ptncn {command}{resume}", markup=False, soft_wrap=True
    )


@contextmanager
def one_line_errors() -> Iterator[None]:
    try:
        yield
    except (DataError, CheckpointError, ValueError, OSError, MemoryError) as error:
        errors.print(f"Error: {error}", style="red", soft_wrap=True, markup=False)
        raise typer.Exit(1) from error
