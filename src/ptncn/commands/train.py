"""`ptncn train`: one's own combination of learner and data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ptncn import checkpoint
from ptncn.commands.reproduce import errors, one_line_errors, say_how_to_go_on
from ptncn.experiments.base import Job, perform
from ptncn.experiments.own import own_experiment
from ptncn.experiments.setting import find_setting
from ptncn.experiments.tasks import NAMES
from ptncn.experiments.training import Training
from ptncn.experiments.workshop import Interrupted, Reporter, Stop, Workshop


def train(
    learner: Annotated[str, typer.Argument(help="A name of `ptncn learners`.")],
    data: Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}; or a .npy file, a GIF or a folder.")],
    out: Annotated[Path, typer.Option(help="Folder for the network and the record.")] = Path("trained"),
    units: Annotated[int, typer.Option(min=1, help="Hidden units, in each layer.")] = 200,
    layers: Annotated[int, typer.Option(min=1, help="Layers of a P-TNCN.")] = 1,
    epochs: Annotated[int, typer.Option(min=1, help="Times that the data is gone through.")] = 1,
    sequences: Annotated[int, typer.Option(min=1, help="Sequences to learn from in an epoch.")] = 1000,
    batch_size: Annotated[int, typer.Option(min=1, help="Sequences side by side.")] = 20,
    decay: Annotated[float, typer.Option(min=0.001, max=1, help="The step size falls to this share.")] = 1.0,
    canvas: Annotated[int, typer.Option(min=28, help="Pixels along the edge of a bouncing video.")] = 64,
    seed: Annotated[int, typer.Option(min=0, help="Of initial weights and of the order of the data.")] = 0,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="An option of the learner, NAME=VALUE; repeatable.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where it was stopped.")] = False,
    runs: Annotated[Path, typer.Option(help="Folder for checkpoints on the way.")] = Path("runs"),
    checkpoint_every: Annotated[float, typer.Option(min=0, help="Seconds between two checkpoints.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the errors as JSON.")] = False,
) -> None:
    """Train any learner on any data, test it, and keep the network.

    After each epoch the validation error is taken, and the best network is kept: OUT/network.safetensors, beside
    the record of the run. Ctrl-C leaves a checkpoint, and --resume goes on.

    \b
    Examples:
      ptncn train ptncn digits --units 300 --layers 2
      ptncn train lstm-bptt ptb --units 256 --epochs 3 -o lr=0.002
      ptncn eval trained/network.safetensors letters
    """
    stop = Stop()
    with one_line_errors(), stop.listen():
        setting = replace(
            find_setting(data, "laptop"),
            canvas=canvas,
            sequences=sequences,
            epochs=epochs,
            batch_size=batch_size,
            decay=decay,
            layers=layers,
            units=units,
            gated_units=units,
            plain_units=units,
            rank_one_units=units,
            exact_units=units,
        )
        wanted = Training(learner, data, seed, setting, options=read_options(option or []))
        workshop = Workshop(runs, resume, not resume, checkpoint_every, Reporter(), stop)
        experiment = own_experiment(wanted, lambda found: _keep(wanted, workshop, out))
        try:
            record = perform(experiment, Job("train", "own", learner, Path(data).name, seed), workshop, out)
        except (Interrupted, KeyboardInterrupt):
            say_how_to_go_on()
            raise typer.Exit(130) from None
        if record.status != "finished":
            raise ValueError("; ".join(record.notes))
    for note in record.notes:
        errors.print(f"Note: {note}", markup=False, soft_wrap=True)
    if as_json:
        typer.echo(json.dumps(record.metrics["test"]))
        return
    for split in ("valid", "test"):
        typer.echo(f"{split}: " + ", ".join(f"{name} {value:.4g}" for name, value in record.metrics[split].items()))
    kept = out / "network.safetensors"
    typer.echo(f"The network is {kept}; test it on anything with: ptncn eval {kept} {data}")


def _keep(wanted: Training, workshop: Workshop, out: Path) -> None:
    """Put the network, which was trained a moment ago, beside its record."""
    learner = wanted.make(replace(workshop, fresh=False)).learner
    checkpoint.save(out / "network.safetensors", learner, None, {"canvas": wanted.setting.canvas})


def read_options(pairs: list[str]) -> dict[str, Any]:
    """
    >>> read_options(["lr=0.01", "error_rule=fixed", "biases=false"])
    {'lr': 0.01, 'error_rule': 'fixed', 'biases': False}
    """
    options: dict[str, Any] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign:
            raise ValueError(f"--option {pair}: NAME=VALUE would be right, such as lr=0.01")
        try:
            options[name] = json.loads(value)
        except json.JSONDecodeError:
            options[name] = value
    return options
