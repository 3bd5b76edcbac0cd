"""`--ranks`: a command on several processes, which torchrun starts, and starts again after a failure."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import typer

from ptncn import checkpoint
from ptncn.distributed import DataParallel, Ranks, RanksError, connect
from ptncn.experiments.run import Crew, Reporter, RunContext
from ptncn.learner import Learner
from ptncn.network.ptncn import PTNCN


class RankCrew(Crew):
    """All ranks learn together; the first one writes."""

    def __init__(self, ranks: Ranks, split: str) -> None:
        self.ranks, self.split = ranks, split

    def share(self, learner: Learner, key: str) -> Learner:
        net = learner.net if isinstance(learner, DataParallel) else learner
        if not isinstance(net, PTNCN):
            raise RanksError(f"--ranks: expected the learner ptncn, got {learner.kind}")
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
            learner.snapshot()  # of which the first rank gathers its parts
        self.ranks.any(True)


def launch(count: int, restarts: int) -> None:
    """Run this command again on `count` ranks, unless it already is one of them."""
    if "RANK" in os.environ or count == 1:
        return
    torchrun = [
        "-m",
        "torch.distributed.run",
        "--standalone",
        f"--nproc-per-node={count}",
        f"--max-restarts={restarts}",
    ]
    command = [sys.executable, *torchrun, "-m", "ptncn", *sys.argv[1:]]
    raise typer.Exit(subprocess.call(command, env={"OMP_NUM_THREADS": "1", **os.environ}))


@contextmanager
def together(context: RunContext, out: Path, split: str) -> Iterator[tuple[RunContext, Path, bool]]:
    """Context and folder for this rank, and whether it is the first, which alone reports and keeps its results."""
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        yield context, out, True
        return
    again = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0)) > 0
    with connect() as ranks, tempfile.TemporaryDirectory() as elsewhere:
        first = ranks.rank == 0
        crew = RankCrew(ranks, split)
        context = replace(context, crew=crew, reporter=Reporter(quiet=not first))
        context = replace(context, resume=True, fresh=False) if again else context
        yield context, out if first else Path(elsewhere), first
