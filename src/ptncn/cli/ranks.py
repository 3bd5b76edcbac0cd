"""`--ranks`: a command on several processes, started by the launcher of torchrun, and again after one was lost."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import typer

from ptncn import checkpoint
from ptncn.cli.common import note
from ptncn.distributed import DataParallel, Ranks, RanksError, connect
from ptncn.experiments.run import Crew, Reporter, RunContext
from ptncn.learner import Learner
from ptncn.network.ptncn import PTNCN
from ptncn.system import end_with_parent

LOST = 75
"""Exit code of a rank that lost another one: the same command may succeed if it is started again."""


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
    """Run this command again on `count` ranks, unless it already is one of them, and exit as they do.

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
        killed = [rank for rank, code in codes.items() if code < 0 and code != -signal.SIGTERM]  # which ends the others
        lost = f"rank {', '.join(map(str, killed))} was killed" if killed else "a rank was lost"
        if attempt < restarts:
            note(f"{lost}; all start again from the last checkpoint ({attempt + 1} of {restarts} times)")
        command = [*(part for part in command if part != "--resume"), "--resume"]
    raise RanksError(f"--ranks: {lost}, and --max-restarts={restarts} is used up; --resume continues")


@contextmanager
def together(context: RunContext, out: Path, split: str) -> Iterator[tuple[RunContext, Path, bool]]:
    """Context and folder for this rank, and whether it is the first, which alone reports and keeps its results."""
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        yield context, out, True
        return
    end_with_parent(LOST)
    if int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0)) > 0:
        context = replace(context, resume=True, fresh=False)
    with connect() as ranks, tempfile.TemporaryDirectory() as elsewhere:
        first = ranks.rank == 0
        if not first and context.resume and out.is_dir():  # what is finished is so for all ranks
            shutil.copytree(out, elsewhere, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.safetensors"))
        context = replace(context, crew=RankCrew(ranks, split), reporter=Reporter(quiet=not first))
        yield context, out if first else Path(elsewhere), first
        if ranks.lost:
            raise typer.Exit(LOST)
