"""`ptncn eval`: how well a trained network does on data, its own or another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from ptncn import checkpoint
from ptncn.commands.reproduce import one_line_errors
from ptncn.data.corpora import TextSplit
from ptncn.experiments.plan import Pass, Plan
from ptncn.experiments.runner import execute, tidy
from ptncn.experiments.setting import LAPTOP_VIDEO
from ptncn.experiments.tasks import NAMES, open_task
from ptncn.experiments.workshop import Interrupted, Reporter, Stop, Workshop


def evaluate(
    network: Annotated[Path, typer.Argument(metavar="CHECKPOINT", help="A network that `ptncn train` has kept.")],
    data: Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}; or a .npy file, a GIF or a folder.")],
    split: Annotated[str, typer.Option(help=f"One of {', '.join(get_args(TextSplit))}.")] = "test",
    sequences: Annotated[int, typer.Option(min=1, help="How many, at most.")] = LAPTOP_VIDEO.test,
    objects: Annotated[int, typer.Option(min=1, help="How many objects bounce about in a video.")] = 2,
    learn: Annotated[bool, typer.Option("--learn", help="Test, then train: the weights go on learning.")] = False,
    batch_size: Annotated[int, typer.Option(min=1, help="Sequences side by side.")] = 20,
    runs: Annotated[Path, typer.Option(help="Folder for a checkpoint if it is stopped.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Test a trained network, with frozen weights unless told otherwise. The file itself is not changed.

    \b
    Examples:
      ptncn eval trained/network.safetensors digits
      ptncn eval trained/network.safetensors letters --objects 3 --json
    """
    stop = Stop()
    with one_line_errors(), stop.listen():
        if split not in get_args(TextSplit):
            raise ValueError(f"unknown split {split!r}; choose one of: {', '.join(get_args(TextSplit))}")
        learner, _, extra = checkpoint.load(network)
        canvas = extra.get("canvas", 64) if isinstance(extra, dict) else 64
        task = open_task(data, canvas=canvas, objects=objects, sequences=sequences, valid=sequences, test=sequences)
        chosen = getattr(task, cast(TextSplit, split))
        if chosen.input_size != learner.input_size:
            raise ValueError(
                f"{network}: made for observations of {learner.input_size} numbers, but {data} has {chosen.input_size}"
            )
        plan = Plan(
            name=f"eval/{learner.kind}/{Path(data).name}",
            config={"network": str(network), "learn": learn, "batch_size": batch_size},
            start=lambda: learner,
            passes=(
                Pass(
                    name=split, data=chosen, metrics=task.metrics, batch_size=batch_size, learn=learn, limit=sequences
                ),
            ),
            curve_metric=task.metrics[0],
        )
        workshop = Workshop(runs, every=float("inf"), reporter=Reporter(), stop=stop)
        try:
            outcome = execute(plan, workshop)
        except (Interrupted, KeyboardInterrupt):
            tidy(plan, workshop)
            raise typer.Exit(130) from None
        tidy(plan, workshop)
    metrics = outcome.results[split]["metrics"]
    if as_json:
        typer.echo(json.dumps(metrics))
        return
    source = task.source if task.source == data else f"{task.source}, in place of {data},"
    typer.echo(f"{learner.kind} on {source} {split}: " + ", ".join(f"{k} {v:.4g}" for k, v in metrics.items()))
