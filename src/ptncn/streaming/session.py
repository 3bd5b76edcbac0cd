"""A stream from source to output, with checkpoints, a status line and notifications: what `ptncn stream` runs."""

from __future__ import annotations

import json
import queue
import shlex
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from types import FrameType
from typing import Any

from ptncn.checkpoint import CheckpointError
from ptncn.streaming.formats import Writer
from ptncn.streaming.options import FREE_ON_RESUME
from ptncn.streaming.output import Output
from ptncn.streaming.results import Results, RunningStats
from ptncn.streaming.sources import StreamError
from ptncn.streaming.stream import Stream
from ptncn.system import ENDINGS, processors

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 20
PERIOD = 0.25


class StatusLine:
    """Draws on standard error, four times a second. Each bar is the highest score since the previous drawing. At the
    end, the number of rows and the mean rate stay on the terminal.
    """

    def __init__(self, stats: RunningStats) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=False)
        self._live.start()
        self._stats = stats
        self._highest: deque[float] = deque(maxlen=WIDTH)
        self._peak = 0.0
        self._begun = self._drawn = time.monotonic()
        self._begun_at = self._drawn_at = stats.observations

    def update(self, scores: Iterable[float]) -> None:
        """Record the anomaly scores of a block; draw if it is time."""
        self._peak = max(self._peak, *(score for score in scores if score == score), 0.0)
        now = time.monotonic()
        if now - self._drawn >= PERIOD:
            self._highest.append(self._peak)
            self._draw((self._stats.observations - self._drawn_at) / (now - self._drawn))
            self._peak, self._drawn, self._drawn_at = 0.0, now, self._stats.observations

    def close(self) -> None:
        self._draw((self._stats.observations - self._begun_at) / max(time.monotonic() - self._begun, 1e-9))
        self._live.stop()

    def _draw(self, rate: float) -> None:
        from rich.text import Text

        self._live.update(Text(describe(self._stats, rate, self._highest)), refresh=True)


def describe(stats: RunningStats, rate: float, scores: deque[float]) -> str:
    """
    >>> describe(RunningStats(observations=1500, alarms=2, error=1.0, copy_error=16.0), 1200.0, deque([0.0, 0.5, 1.0]))
    '1,500 rows  1,200/s  error 25 % of copy-last  surprise ▁▅█  2 alarms'
    """
    parts = [f"{stats.observations:,} rows", f"{rate:,.0f}/s"]
    if stats.copy_error:
        parts.append(f"error {100 * stats.against_copy:.0f} % of copy-last")
    parts += [f"surprise {sparkline(scores)}", _count(stats.alarms, "alarm")]
    if stats.drifts:
        parts.append(_count(stats.drifts, "drift"))
    if stats.bad_rows:
        parts.append(_count(stats.bad_rows, "bad row"))
    return "  ".join(parts)


def summarise(stats: RunningStats) -> str:
    """
    >>> summarise(RunningStats(observations=1500, alarms=2, error=1.0, copy_error=16.0))
    '1,500 rows, error 25 % of copying the last row, 2 alarms'
    """
    parts = [_count(stats.observations, "row")]
    if stats.copy_error:
        parts.append(f"error {100 * stats.against_copy:.0f} % of copying the last row")
    parts.append(_count(stats.alarms, "alarm"))
    counts = (("drift", stats.drifts), ("bad row", stats.bad_rows), ("gap", stats.gaps), ("late row", stats.late_rows))
    return ", ".join(parts + [_count(count, what) for what, count in counts if count])


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def sparkline(scores: deque[float]) -> str:
    return "".join(BARS[min(int(score * len(BARS)), len(BARS) - 1)] for score in scores)


def can_draw(writes_to_stdout: bool) -> bool:
    """Whether standard error is a terminal to which the output does not go as well."""
    return sys.stderr.isatty() and not (writes_to_stdout and sys.stdout.isatty())


TIMEOUT = 10.0
WAITING = 1000
"""Maximum length of the queue of alarms; further ones are reported and dropped."""


class Alerts:
    """Sends each alarm as a JSON object in the background, so that a slow receiver does not delay the stream.

    Arguments:
        webhook: the URL to POST the object to.
        command: a program with its arguments, which reads the object from standard input.
        report: called with a one-line message about failures.
    """

    def __init__(
        self, webhook: str | None = None, command: str | None = None, report: Callable[[str], None] = lambda line: None
    ) -> None:
        if webhook is not None and not webhook.startswith(("http://", "https://")):
            raise ValueError(f"webhook: expected a URL that begins with http:// or https://, got {webhook!r}")
        self.webhook, self.command, self.report = webhook, shlex.split(command or ""), report
        self._queue: queue.Queue[bytes | None] = queue.Queue(WAITING)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def send(self, results: Results) -> None:
        """Send the alarms of a block."""
        for row in results.steps.alarm.nonzero()[0].tolist():
            body = asdict(results.row(row))
            try:
                self._queue.put_nowait(json.dumps(body, ensure_ascii=False).encode())
            except queue.Full:
                self.report(f"an alarm was dropped: {WAITING:,} are already waiting")

    def close(self) -> None:
        """Wait for pending alarms, up to a limit."""
        try:
            self._queue.put(None, timeout=TIMEOUT)
        except queue.Full:
            return
        self._thread.join(2 * TIMEOUT)

    def _work(self) -> None:
        while (body := self._queue.get()) is not None:
            try:
                self._deliver(body)
            except (OSError, ValueError, subprocess.SubprocessError, urllib.error.URLError) as error:
                self.report(f"an alarm could not be delivered: {error}")

    def _deliver(self, body: bytes) -> None:
        if self.webhook is not None:
            request = urllib.request.Request(self.webhook, body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=TIMEOUT):
                pass
        if self.command:
            subprocess.run(self.command, input=body, timeout=TIMEOUT, check=True, stdout=subprocess.DEVNULL)


WIDE = 20_000
"""Number of fields from which a block is formatted by another thread while the next rows are read and learnt."""
BLOCK, KEYED_BLOCK = 256, 1024
"""Maximum number of rows processed together: for one stream, and for many."""


class Session:
    """Writes a line for each observation, and checkpoints from which a resumed run writes the same bytes.

    Arguments:
        settings: settings that determine the output; a checkpoint resumes only with the same ones, except for
            `FREE_ON_RESUME`.
        checkpoint: the file, or None for none.
        every: seconds between checkpoints. One more is written at the end, unless learning has diverged or the output
            cannot be written; then the last good one stays.
        show_status: draw a status line.
        alerts: receivers of alarms.
    """

    def __init__(
        self,
        stream: Stream,
        writer: Writer,
        *,
        out: str | None = None,
        checkpoint: str | None = None,
        every: float = 60.0,
        settings: Mapping[str, Any] | None = None,
        show_status: bool = False,
        alerts: Alerts | None = None,
    ) -> None:
        if every <= 0:
            raise ValueError(f"checkpoint-every: expected a number of seconds above 0, got {every}")
        self.stream, self.writer = stream, writer
        self.checkpoint, self.every = checkpoint, every
        self.settings = dict(settings or {})
        self.show_status, self.alerts = show_status, alerts
        self.watch: Callable[[Results], object] = lambda results: None
        """Called with each block after it is written."""
        self.caught: int | None = None
        """The signal that ended the session, if any."""
        self._out = out
        self._header = ""
        self._names: list[str] = []
        self._resume_at: int | None = None
        self._saved_at = 0
        self._status: StatusLine | None = None

    def resume(self, *, live: bool = False) -> None:
        """Load the checkpoint; `run` then continues with the very next observation."""
        assert self.checkpoint is not None
        extra = self.stream.load(self.checkpoint, live=live)
        try:
            saved, self._resume_at = dict(extra["settings"]), int(extra["written"])
            self._header = extra["header"]
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{self.checkpoint}: was not written by `ptncn stream`: {error!r}") from error
        for name in sorted(saved.keys() | self.settings.keys()):
            if name not in FREE_ON_RESUME and saved.get(name) != self.settings.get(name):
                raise StreamError(
                    f"{self.checkpoint}: made with {name} = {saved.get(name)}, but now {self.settings.get(name)}: "
                    f"--resume needs the same command; only {', '.join(FREE_ON_RESUME)} may change"
                )
        self._saved_at = self.stream.stats.observations

    def run(self) -> None:
        """Run until the source ends, a signal arrives, or an error occurs."""
        output = Output(self._out, resume_at=self._resume_at)
        self._due = time.monotonic() + self.every
        self._status = StatusLine(self.stream.stats) if self.show_status else None
        try:
            with self._signals():
                self._run_blocks(output)
        finally:
            if self._status is not None:
                self._status.close()
            output.close()
            self.stream.close()
            if self.alerts is not None:
                self.alerts.close()

    def _run_blocks(self, output: Output) -> None:
        most = BLOCK if self.stream.options.key is None else KEYED_BLOCK
        if self.stream.drift is not None:
            most = 1  # a drift takes effect before the next row
        try:
            while self.caught is None and (results := self.stream.read(most)) is not None:
                if len(results):
                    self._write(results, output)
                else:
                    output.flush()
                if time.monotonic() >= self._due:
                    self._save(output)
        except StreamError:
            if self.stream.healthy:
                self._save(output)
            raise
        self._save(output)

    def _write(self, results: Results, output: Output) -> None:
        table = results.table()
        names = [field.name for field in table]
        if names != self._names:
            self._names, header = names, self.writer.header(table)
            if header != self._header:
                output.write(header)
                self._header = header
        lines = partial(self.writer.lines, table)
        if len(results) * len(table) >= WIDE and processors() > 1:
            output.write_later(lines)
        else:
            output.write(lines())
        if self._status is not None:
            self._status.update(results.steps.anomaly.tolist())
        self.watch(results)
        if self.alerts is not None:
            self.alerts.send(results)
        if self.stream.drift is not None and self.stream.drift.action == "checkpoint" and results.drift.any():
            self._due = 0.0

    def _save(self, output: Output) -> None:
        """The output is synced first, so that a checkpoint never counts a line that is not on disk."""
        observed = self.stream.stats.observations
        if self.checkpoint is None or observed == self._saved_at:
            output.flush()
        else:
            output.sync()
            extra = {"settings": self.settings, "written": output.length, "header": self._header}
            try:
                self.stream.save(self.checkpoint, extra)
                self._saved_at = observed
            except OSError as error:
                why = error.strerror or error
                problem = f"{self.checkpoint}: the checkpoint cannot be written: {why}; the last one stays"
                if self.stream.options.on_error == "stop":
                    raise StreamError(problem) from error
                self.stream.report(problem)
        self._due = time.monotonic() + self.every

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """The first SIGINT or SIGTERM ends the session after the current block; a second one kills the process."""
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
