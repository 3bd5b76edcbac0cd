"""`ptncn tune`: search for good options of a learner by validation error."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ptncn.cli.common import note, one_line_errors, parse_options, print_resume_command
from ptncn.data.registry import trainable
from ptncn.experiments import EXPERIMENTS
from ptncn.experiments.config import SCALES
from ptncn.experiments.run import Interrupted, Reporter, RunContext, Stop
from ptncn.experiments.tuning import Study, write_tuned
from ptncn.experiments.tuning import tune as search


def tune(
    learner: Annotated[str, typer.Argument(help="A name from `ptncn learners`, or a row of table I.")],
    data: Annotated[str, typer.Argument(help=f"One of {', '.join(trainable())}.")],
    minutes: Annotated[float, typer.Option(min=0, help="Time budget; no trial starts after it.")] = 20.0,
    trials: Annotated[int | None, typer.Option(min=1, help="Maximum number of trials in this call.")] = None,
    scale: Annotated[str, typer.Option(help=f"Sizes of one trial: {', '.join(SCALES)}.")] = "laptop",
    sequences: Annotated[int | None, typer.Option(min=4, help="Training sequences. Default: the scale's.")] = None,
    valid: Annotated[int | None, typer.Option(min=1, help="Validation sequences. Default: the scale's.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Sequences per batch. Default: the scale's.")] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="An option to keep fixed in all trials, NAME=VALUE.")
    ] = None,
    configs: Annotated[Path, typer.Option(help="Folder for the values found.")] = Path("configs"),
    runs: Annotated[Path, typer.Option(help="Folder for the study.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the values found as JSON.")] = False,
) -> None:
    """Search for good options of a learner with Optuna, by validation error alone.

    Trials that fall behind are pruned. Calling the command again continues the study. The values found are written
    to CONFIGS/LEARNER-DATA.json with a summary of the study; `ptncn reproduce --configs CONFIGS` uses them. With
    --batch-size 1 the file is LEARNER-continual.json, which is used for continual learning only.

    \b
    Examples:
      ptncn tune lstm-bptt mnist --minutes 30
      ptncn tune ptncn ptb --minutes 60 --sequences 5000
      ptncn tune lstm-sab mnist --batch-size 1 --sequences 500
    """
    stop = Stop()
    with one_line_errors(), stop.listen():
        online = batch_size == 1
        experiment = EXPERIMENTS.find("continual" if online else "prediction")
        sizes = {"sequences": sequences, "valid": valid, "batch_size": batch_size}
        changes = {name: value for name, value in sizes.items() if value is not None}
        (spec,) = experiment.specs(
            scale, rows=[learner], data=[data], seeds=[0], config=changes, options=parse_options(option)
        )
        spec = replace(spec, tuned=None)  # trials start from the defaults
        used = f"{spec.config.sequences}x{spec.config.batch_size}"  # other sizes are another study
        study = Study(spec, minutes, trials, runs / "tune" / f"{learner}-{data}-{scale}-{used}.db")
        context = RunContext(runs, every=float("inf"), reporter=Reporter(), stop=stop)
        try:
            tuned = search(study, context, note)
        except Interrupted:
            print_resume_command(resume="")
            raise typer.Exit(130) from None
        path = write_tuned(tuned, configs, online=online)
    if as_json:
        typer.echo(json.dumps(tuned))
        return
    typer.echo(f"{path}: validation error {tuned['validation']:.4g} with {json.dumps(tuned['options'])}")
