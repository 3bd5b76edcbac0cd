"""`ptncn tune`: search the options of a learner."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ptncn.commands.reproduce import errors, one_line_errors, say_how_to_go_on
from ptncn.experiments.continual import SCALES as CONTINUAL
from ptncn.experiments.setting import SCALES, find_setting
from ptncn.experiments.tasks import NAMES, check_name
from ptncn.experiments.tuning import Study, write_config
from ptncn.experiments.tuning import tune as search
from ptncn.experiments.workshop import Interrupted, Reporter, Stop, Workshop
from ptncn.learners.registry import describe


def tune(
    model: Annotated[str, typer.Argument(help="A name of `ptncn learners`.")],
    data: Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}.")],
    minutes: Annotated[float, typer.Option(min=0, help="The budget: no trial begins after it.")] = 20.0,
    trials: Annotated[int | None, typer.Option(min=1, help="Trials at most, in this call.")] = None,
    scale: Annotated[str, typer.Option(help=f"Sizes of one trial: {', '.join(SCALES)}.")] = "laptop",
    sequences: Annotated[
        int | None, typer.Option(min=4, help="To learn from in one trial. Default: the scale's.")
    ] = None,
    valid: Annotated[int | None, typer.Option(min=1, help="To judge a trial by. Default: the scale's.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Sequences side by side. Default: the scale's.")] = None,
    configs: Annotated[Path, typer.Option(help="Folder for the values found.")] = Path("configs"),
    runs: Annotated[Path, typer.Option(help="Folder for the study.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Search the options of a learner with Optuna, by the validation error alone.

    A trial that lies behind the others is given up early. Called again, the study goes on where it was. What is
    found is written to CONFIGS/MODEL-DATA.json, with the study's summary; `ptncn reproduce` uses it from then on.
    With --batch-size 1 it is MODEL-continual.json, which serves continual learning alone.

    \b
    Examples:
      ptncn tune lstm-bptt mnist --minutes 30
      ptncn tune ptncn ptb --minutes 60 --sequences 5000
      ptncn tune lstm-sab mnist --batch-size 1 --sequences 500
    """
    stop = Stop()
    with one_line_errors(), stop.listen():
        describe(model)
        check_name(data)
        if scale not in SCALES:
            raise ValueError(f"unknown scale {scale!r}; choose one of: {', '.join(SCALES)}")
        setting = CONTINUAL[scale] if batch_size == 1 else find_setting(data, scale)
        setting = replace(
            setting,
            sequences=sequences or setting.sequences,
            valid=valid or setting.valid,
            batch_size=batch_size or setting.batch_size,
        )
        sizes = f"{setting.sequences}x{setting.batch_size}"  # errors of other sizes belong to another study
        study = Study(model, data, setting, minutes, trials, runs / "tune" / f"{model}-{data}-{scale}-{sizes}.db")
        workshop = Workshop(runs, every=float("inf"), reporter=Reporter(), stop=stop)
        try:
            found = search(study, workshop, lambda line: errors.print(line, markup=False, soft_wrap=True))
        except Interrupted:
            say_how_to_go_on(resume="")
            raise typer.Exit(130) from None
        path = write_config(found, configs, "continual" if setting.batch_size == 1 else data)
    if as_json:
        typer.echo(json.dumps(found))
        return
    typer.echo(f"{path}: validation error {found['validation']:.4g} with {json.dumps(found['options'])}")
