"""`ptncn eval`: test a trained network on any data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ptncn import checkpoint
from ptncn.cli.common import one_line_errors
from ptncn.data.registry import SPLITS, open_splits, trainable
from ptncn.experiments.phases import Phase, PhasedRun
from ptncn.experiments.run import Interrupted, Reporter, RunContext, Stop
from ptncn.experiments.runner import execute, tidy
from ptncn.registry import unknown


def evaluate(
    network: Annotated[Path, typer.Argument(metavar="CHECKPOINT", help="A network that `ptncn train` saved.")],
    data: Annotated[str, typer.Argument(help=f"One of {', '.join(trainable())}; or a .npy file, a GIF or a folder.")],
    split: Annotated[str, typer.Option(help=f"One of {', '.join(SPLITS)}.")] = "test",
    sequences: Annotated[int, typer.Option(min=1, help="Number of sequences, at most.")] = 500,
    objects: Annotated[int, typer.Option(min=1, help="Number of objects in a bouncing video.")] = 2,
    learn: Annotated[bool, typer.Option("--learn", help="Test, then train: keep learning from each sequence.")] = False,
    batch_size: Annotated[int, typer.Option(min=1, help="Sequences per batch.")] = 20,
    runs: Annotated[Path, typer.Option(help="Folder for temporary files.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Test a trained network, with frozen weights unless --learn is given. The file itself is not changed.

    \b
    Examples:
      ptncn eval trained/network.safetensors digits
      ptncn eval trained/network.safetensors letters --objects 3 --json
    """
    stop = Stop()
    with one_line_errors(), stop.listen():
        if split not in SPLITS:
            raise ValueError(unknown("split", split, SPLITS))
        learner, _, extra = checkpoint.load(network)
        canvas = extra.get("canvas", 64) if isinstance(extra, dict) else 64
        splits = open_splits(data, canvas=canvas, objects=objects, sequences=sequences, valid=sequences, test=sequences)
        chosen = getattr(splits, split)
        if chosen.input_size != learner.input_size:
            raise ValueError(
                f"{network}: expected observations of {learner.input_size} numbers, got {chosen.input_size} from {data}"
            )
        phase = Phase(
            name=split, data=chosen, metrics=splits.metrics, batch_size=batch_size, learn=learn, limit=sequences
        )
        phased = PhasedRun(
            name=f"eval/{learner.registry_name}/{Path(data).name}",
            config={"network": str(network), "learn": learn, "batch_size": batch_size},
            start=lambda: learner,
            phases=(phase,),
            curve_metric=splits.metrics[0],
        )
        context = RunContext(runs, every=float("inf"), reporter=Reporter(), stop=stop)
        try:
            result = execute(phased, context)
        except (Interrupted, KeyboardInterrupt):
            raise typer.Exit(130) from None
        finally:
            tidy(phased, context)
    metrics = result.phases[split]["metrics"]
    if as_json:
        typer.echo(json.dumps(metrics))
        return
    source = splits.source if splits.source == data else f"{splits.source}, in place of {data},"
    typer.echo(f"{learner.registry_name} on {source} {split}: " + ", ".join(f"{k} {v:.4g}" for k, v in metrics.items()))
