"""`--ranks`: run a command on several processes with torchrun's launcher, and restart them if one is lost."""

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
from ptncn.experiments.run import ProcessGroup, Reporter, RunContext
from ptncn.learner import Learner
from ptncn.network.ptncn import PTNCN
from ptncn.system import end_with_parent

LOST = 75
"""Exit code of a rank that lost another one; the command may succeed when it is started again."""


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
            note(f"{lost}; all start again from the last checkpoint ({attempt + 1} of {restarts} times)")
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
    with connect() as ranks, tempfile.TemporaryDirectory() as elsewhere:
        first = ranks.rank == 0
        if not first and context.resume and out.is_dir():  # all ranks must agree on what is finished
            shutil.copytree(out, elsewhere, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.safetensors"))
        context = replace(context, group=RankGroup(ranks, split), reporter=Reporter(quiet=not first))
        yield context, out if first else Path(elsewhere), first
        if ranks.lost:
            raise typer.Exit(LOST)
