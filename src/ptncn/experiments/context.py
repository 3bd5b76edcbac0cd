"""Where a run happens: its folder of checkpoints, the progress bar, and requests to stop."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ptncn import checkpoint
from ptncn.learner import Learner
from ptncn.system import ENDINGS


class Interrupted(Exception):  # noqa: N818 (not an error)
    """The run was asked to stop, and wrote a checkpoint first."""


class Stop:
    """Ctrl-C and SIGTERM, acted on at the end of a batch; a second Ctrl-C acts at once."""

    def __init__(self) -> None:
        self.requested = False

    @contextmanager
    def listen(self) -> Iterator[Stop]:
        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        before = {number: signal.signal(number, self._request) for number in ENDINGS}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self.requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.requested = True


class Crew:
    """The processes that carry out a run: here, this one alone."""

    def share(self, learner: Learner, key: str) -> Learner:
        """The learner as all of them use it; `key` is that of the run."""
        return learner

    def agree(self, due: bool, stopping: bool) -> tuple[bool, bool]:
        """Whether all of them save, and stop, after this batch."""
        return due, stopping

    def save(self, path: Path, learner: Learner, state: Any = None, extra: Any = None) -> None:
        """Write a checkpoint, and go on when it is there for all of them."""
        checkpoint.save(path, learner, state, extra)


class Reporter:
    """A progress bar on stderr with loss, speed and time left; silent if stderr is not a terminal."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.console = Console(stderr=True, highlight=False)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[loss]}"),
            TextColumn("{task.fields[speed]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=self.console,
            transient=True,
            disable=quiet or not self.console.is_terminal,
        )
        self._task: TaskID | None = None
        self._frames, self._since = 0, time.monotonic()

    def begin(self, name: str, total: int, done: int) -> None:
        self._bar.start()
        self._frames, self._since = 0, time.monotonic()
        self._task = self._bar.add_task(name, total=total, completed=done, loss="", speed="")

    def advance(self, frames: int, metric: str, loss: float) -> None:
        if self._task is None or self._bar.disable:
            return
        self._frames += frames
        speed = self._frames / max(time.monotonic() - self._since, 1e-9)
        self._bar.update(self._task, advance=1, loss=f"{metric} {loss:.4g}", speed=f"{speed:,.0f} frames/s")

    def end(self) -> None:
        if self._task is not None:
            self._bar.remove_task(self._task)
            self._task = None
        self._bar.stop()

    def say(self, line: str) -> None:
        self.console.print(line, soft_wrap=True, markup=False)


@dataclass
class RunContext:
    """What a run needs to know about the process it is in."""

    runs: Path = Path("runs")
    """Folder of checkpoints and trained learners."""
    resume: bool = False
    """Continue from checkpoints."""
    fresh: bool = False
    """Train again what was trained before."""
    every: float = 60.0
    """Seconds between checkpoints."""
    reporter: Reporter = field(default_factory=Reporter)
    stop: Stop = field(default_factory=Stop)
    crew: Crew = field(default_factory=Crew)
