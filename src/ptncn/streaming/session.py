"""A stream from source to output, with checkpoints: the work of `ptncn stream`."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ptncn.checkpoint import CheckpointError
from ptncn.streaming.errors import StopRequestedError, StreamError
from ptncn.streaming.formats import Format
from ptncn.streaming.observation import Observation
from ptncn.streaming.output import Output
from ptncn.streaming.status import NoStatus, Status
from ptncn.streaming.stream import Stream
from ptncn.system import ENDINGS


class Session:
    """Writes a line for each observation, and checkpoints from which the same bytes follow.

    Arguments:
        settings: what shapes the output; a checkpoint only resumes under the same.
        checkpoint: the file, or None for none.
        every: seconds between two checkpoints. One more is written at the end, however it comes, unless learning has
            diverged or the output cannot be written: the last good one stays then.
    """

    def __init__(
        self,
        stream: Stream,
        format: Format,
        *,
        out: str | None = None,
        checkpoint: str | None = None,
        every: float = 60.0,
        settings: Mapping[str, Any] | None = None,
        status: Status | None = None,
    ) -> None:
        if every <= 0:
            raise ValueError(f"checkpoint-every {every}: a number of seconds above 0 would be right")
        self.stream, self.format = stream, format
        self.checkpoint, self.every = checkpoint, every
        self.settings = dict(settings or {})
        self.status = status or NoStatus()
        self.caught: int | None = None
        """The signal that ended the session, if one did."""
        self._out = out
        self._output: Output | None = None
        self._resume_at: int | None = None
        self._saved_at = 0

    def resume(self, *, live: bool = False) -> None:
        """Take over the checkpoint; `run` then goes on with the very next observation."""
        assert self.checkpoint is not None
        extra = self.stream.load(self.checkpoint, live=live)
        try:
            saved, self._resume_at = dict(extra["settings"]), int(extra["written"])
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{self.checkpoint}: was not written by `ptncn stream`: {error!r}") from error
        for name in sorted(saved.keys() | self.settings.keys()):
            if saved.get(name) != self.settings.get(name):
                raise StreamError(
                    f"{self.checkpoint}: made with {name} = {saved.get(name)}, now it is {self.settings.get(name)}: "
                    f"--resume wants the same command again"
                )
        self._saved_at = self.stream.tally.observations

    def run(self) -> None:
        """Until the source ends, a signal comes, or something goes wrong."""
        self._output = Output(self._out, resume_at=self._resume_at)
        self.stream.source.idle = self._idle
        if self.stream.drift is not None and self.stream.drift.action == "checkpoint":
            self.stream.drift.save = self._request_checkpoint
        self._due = time.monotonic() + self.every
        try:
            with self._signals():
                self._go()
        finally:
            self.status.close()
            self._output.close()

    def _go(self) -> None:
        try:
            for out in self.stream:
                self._write(out)
                if time.monotonic() >= self._due:
                    self._save()
                if self.caught is not None:
                    break
        except StopRequestedError:
            pass
        except StreamError:
            if self.stream.healthy:
                self._save()
            raise
        self._save()

    def _write(self, out: Observation) -> None:
        assert self._output is not None
        if out.index == 0:
            self._output.write(self.format.header(out))
        self._output.write(self.format.line(out))
        self.status.update(self.stream.tally, out.score)

    def _idle(self) -> None:
        """The source waits: let nothing else wait with it."""
        assert self._output is not None
        if self.caught is not None:
            raise StopRequestedError
        self._output.flush()
        if time.monotonic() >= self._due:
            self._save()

    def _request_checkpoint(self) -> None:
        """Save after the line of the current observation was written."""
        self._due = 0.0

    def _save(self) -> None:
        """Output first: a checkpoint never knows of a line that is not on the disk."""
        assert self._output is not None
        observed = self.stream.tally.observations
        if self.checkpoint is None or observed == self._saved_at:
            self._output.flush()
        else:
            self._output.sync()
            try:
                self.stream.save(self.checkpoint, {"settings": self.settings, "written": self._output.length})
                self._saved_at = observed
            except OSError as error:
                why = error.strerror or error
                problem = f"{self.checkpoint}: the checkpoint cannot be written: {why}; the last one stays"
                if self.stream.on_error == "stop":
                    raise StreamError(problem) from error
                self.stream.report(problem)
        self._due = time.monotonic() + self.every

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """The first SIGINT or SIGTERM ends the session after the current observation; a second one kills."""
        before = {number: signal.getsignal(number) for number in ENDINGS}

        def catch(number: int, frame: FrameType | None) -> None:
            self.caught = number
            for each in ENDINGS:
                signal.signal(each, signal.SIG_DFL)

        for number in ENDINGS:
            signal.signal(number, catch)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
