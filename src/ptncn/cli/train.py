"""`ptncn train`: train any learner on any data, and save the network."""

from __future__ import annotations

import json
import logging
import os
import shlex
import shutil
import signal
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from ptncn import checkpoint
from ptncn.cli.common import OPTION_HELP, note, one_line_errors, parse_options, print_resume_command
from ptncn.data.registry import trainable
from ptncn.distributed import DataParallel, Ranks, RanksError, connect
from ptncn.experiments.config import find_config
from ptncn.experiments.launcher import perform
from ptncn.experiments.run import Interrupted, ProcessGroup, Reporter, RunContext, RunSpec, Stop
from ptncn.experiments.runner import Result, train_and_test, trained_learner
from ptncn.learner import Learner
from ptncn.learners import describe
from ptncn.network.ptncn import PTNCN
from ptncn.system import end_with_parent

LOST = 75
"""Exit code of a rank that lost another one; the command may succeed if it is started again."""


def train(
    learner: Annotated[str, typer.Argument(help="Any name that `ptncn learners` lists.")],
    data: Annotated[str, typer.Argument(help=f"One of {', '.join(trainable())}; or a .npy file, a GIF or a folder.")],
    out: Annotated[Path, typer.Option(help="Folder for the trained network and its record.")] = Path("trained"),
    units: Annotated[int, typer.Option(min=1, help="Hidden units per layer.")] = 200,
    layers: Annotated[int, typer.Option(min=1, help="Layers of a P-TNCN.")] = 1,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training data.")] = 1,
    patience: Annotated[
        int | None, typer.Option(min=1, help="Stop when validation has not improved for this many epochs.")
    ] = None,
    sequences: Annotated[int, typer.Option(min=1, help="Sequences in an epoch.")] = 1000,
    batch_size: Annotated[int, typer.Option(min=1, help="Sequences per batch.")] = 20,
    decay: Annotated[
        float, typer.Option(min=0.001, max=1, help="Final share of the step size, which falls linearly.")
    ] = 1.0,
    canvas: Annotated[int, typer.Option(min=28, help="Pixels along the edge of a bouncing video.")] = 64,
    seed: Annotated[int, typer.Option(min=0, help="Seed for the initial weights and the order of the data.")] = 0,
    option: Annotated[list[str] | None, typer.Option("--option", "-o", help=OPTION_HELP)] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a stopped run.")] = False,
    runs: Annotated[Path, typer.Option(help="Folder for checkpoints.")] = Path("runs"),
    checkpoint_every: Annotated[float, typer.Option(min=0, help="Seconds between checkpoints.")] = 60.0,
    ranks: Annotated[int, typer.Option(min=1, help="Processes that share the network; torchrun starts them.")] = 1,
    split: Annotated[str, typer.Option(help="How ranks divide the work: by units or by rows of a batch.")] = "units",
    max_restarts: Annotated[int, typer.Option(min=0, help="How often lost ranks are restarted.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print the test errors as JSON.")] = False,
) -> None:
    """Train any learner on any data, test it, and save the network.

    After each epoch the network is validated; the best one is tested and saved as OUT/network.safetensors, next to the
    record of the run. Ctrl-C leaves a checkpoint; --resume continues.

    \b
    Examples:
      ptncn train ptncn digits --units 300 --layers 2
      ptncn train lstm-bptt ptb --units 256 --epochs 3 -o lr=0.002
      ptncn eval trained/network.safetensors letters
    """
    stop = Stop()
    with one_line_errors(), stop.listen():
        describe(learner)
        if ranks > 1 and learner != "ptncn":
            raise ValueError(f"--ranks: expected the learner ptncn, got {learner}")
        sizes: dict[str, Any] = {
            "canvas": canvas,
            "sequences": sequences,
            "epochs": epochs,
            "patience": patience,
            "batch_size": batch_size,
            "decay": decay,
        }
        spec = RunSpec(
            experiment="train",
            scale="own",
            row=learner,
            learner=learner,
            data=data,
            seed=seed,
            config=replace(find_config(data, "laptop").with_units(units, layers), **sizes),
            options=parse_options(option),
            tuned=None,
        )
        command = _command(learner, data, {"units": units, "layers": layers, **sizes, "seed": seed}, option)
        context = RunContext(runs, resume, not resume, checkpoint_every, Reporter(), stop)
        if ranks > 1:
            spec.make_learner()  # bad options fail here, not on each rank
            start_ranks(ranks, max_restarts)
        with join_ranks(context, out, split) as (context, out, first):
            try:
                record = perform(spec, partial(_train, out=out), spec.values(), context, out, command=command)
            except (Interrupted, KeyboardInterrupt):
                if first:
                    print_resume_command()
                raise typer.Exit(130) from None
        if record.status != "finished":
            if record.notes[-1].startswith("RanksError: "):  # all ranks report it; one per host prints it
                if int(os.environ.get("LOCAL_RANK", 0)) > 0:
                    raise typer.Exit(1)
                raise RanksError(record.notes[-1].removeprefix("RanksError: "))
            raise ValueError("; ".join(record.notes))
        if not first:
            return
    for line in record.notes:
        note(f"Note: {line}")
    if as_json:
        typer.echo(json.dumps(record.metrics["test"]))
        return
    for split in ("valid", "test"):
        typer.echo(f"{split}: " + ", ".join(f"{name} {value:.4g}" for name, value in record.metrics[split].items()))
    saved = out / "network.safetensors"
    typer.echo(f"Saved {saved}. Test it on any data with: ptncn eval {saved} {data}")


def _train(spec: RunSpec, context: RunContext, out: Path) -> Result:
    """Train, test, and save the network next to its record."""
    result = train_and_test(spec, context)
    learner = trained_learner(spec, replace(context, fresh=False))
    checkpoint.save(out / "network.safetensors", learner, None, {"canvas": spec.config.canvas})
    return result


def _command(learner: str, data: str, sizes: dict[str, Any], option: list[str] | None) -> str:
    """The command that repeats the training."""
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in sizes.items() if value is not None]
    return shlex.join(["ptncn", "train", learner, data, *flags, *(f"--option={pair}" for pair in option or [])])


class RankGroup(ProcessGroup):
    """All ranks learn together; the first one writes."""

    def __init__(self, ranks: Ranks, split: str) -> None:
        self.ranks, self.split = ranks, split

    def share(self, learner: Learner, key: str) -> Learner:
        net = learner.net if isinstance(learner, DataParallel) else learner
        if not isinstance(net, PTNCN):
            raise RanksError(f"--ranks: expected the learner ptncn, got {learner.registry_name}")
        self.ranks.check_same({"data and settings": key})
        if isinstance(learner, DataParallel):
            return cast(Learner, learner)
        return cast(Learner, DataParallel(net, self.ranks, split=self.split, whole=True))

    def agree(self, due: bool, stopping: bool) -> tuple[bool, bool]:
        due, stopping = self.ranks.any(due and self.ranks.rank == 0, stopping)
        return due, stopping

    def save(self, path: Path, learner: Learner, state: Any = None, extra: Any = None) -> None:
        if self.ranks.rank == 0:
            checkpoint.save(path, learner, state, extra)
        elif isinstance(learner, DataParallel):
            learner.snapshot()  # the first rank gathers the parts of this snapshot
        self.ranks.any(True)


def start_ranks(count: int, restarts: int) -> None:
    """Start this command on `count` ranks and exit with their exit code; in a rank, do nothing.

    If a rank is lost, all of them start again from the last checkpoint.
    """
    if "RANK" in os.environ or count == 1:
        return
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    command = ["-m", "ptncn", *sys.argv[1:]]
    for attempt in range(restarts + 1):
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=count,
            run_id=uuid.uuid4().hex,
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            max_restarts=0,
        )
        try:
            elastic_launch(config, sys.executable)(*command)
        except SignalException:
            raise typer.Exit(130) from None
        except ChildFailedError as error:
            codes = {rank: failure.exitcode for rank, failure in sorted(error.failures.items())}
            if min(codes.values()) >= 0 and LOST not in codes.values():
                raise typer.Exit(max(codes.values())) from None
        else:
            raise typer.Exit(0)
        # torchrun ends the other ranks by SIGTERM
        killed = [rank for rank, code in codes.items() if code < 0 and code != -signal.SIGTERM]
        lost = f"rank {', '.join(map(str, killed))} was killed" if killed else "a rank was lost"
        if attempt < restarts:
            note(f"{lost}; restarting all ranks from the last checkpoint ({attempt + 1} of {restarts} times)")
        command = [*(part for part in command if part != "--resume"), "--resume"]
    raise RanksError(f"--ranks: {lost}, and --max-restarts={restarts} is used up; --resume continues")


@contextmanager
def join_ranks(context: RunContext, out: Path, split: str) -> Iterator[tuple[RunContext, Path, bool]]:
    """Context and folder for this rank, and whether it is the first; only the first reports and keeps results."""
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        yield context, out, True
        return
    end_with_parent(LOST)
    if int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0)) > 0:
        context = replace(context, resume=True, fresh=False)
    with connect() as ranks, tempfile.TemporaryDirectory() as temporary:
        first = ranks.rank == 0
        if not first and context.resume and out.is_dir():  # all ranks must agree on what is finished
            shutil.copytree(out, temporary, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.safetensors"))
        context = replace(context, group=RankGroup(ranks, split), reporter=Reporter(quiet=not first))
        yield context, out if first else Path(temporary), first
        if ranks.lost:
            raise typer.Exit(LOST)
