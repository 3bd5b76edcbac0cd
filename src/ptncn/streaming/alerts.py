"""Passing alarms on: to a web hook, or to a program."""

from __future__ import annotations

import json
import queue
import shlex
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import asdict

from ptncn.streaming.results import Results

TIMEOUT = 10.0
WAITING = 1000
"""Alarms that may wait to be sent; further ones are reported and dropped."""


class Alerts:
    """Sends each alarm as a JSON object, in the background: a slow receiver does not hold up the stream.

    Arguments:
        webhook: an address that gets it by POST.
        command: a program with its arguments that gets it on its standard input.
        report: called with one line about what could not be sent.
    """

    def __init__(
        self, webhook: str | None = None, command: str | None = None, report: Callable[[str], None] = lambda line: None
    ) -> None:
        if webhook is not None and not webhook.startswith(("http://", "https://")):
            raise ValueError(f"webhook: expected an address that begins with http:// or https://, got {webhook!r}")
        self.webhook, self.command, self.report = webhook, shlex.split(command or ""), report
        self._queue: queue.Queue[bytes | None] = queue.Queue(WAITING)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def send(self, results: Results) -> None:
        """Pass on the alarms of a block."""
        for row in results.steps.alarm.nonzero()[0].tolist():
            body = asdict(results.row(row))
            try:
                self._queue.put_nowait(json.dumps(body, ensure_ascii=False).encode())
            except queue.Full:
                self.report(f"an alarm was not passed on: {WAITING:,} are waiting already")

    def close(self) -> None:
        """Wait for what is still to be sent, but not forever."""
        try:
            self._queue.put(None, timeout=TIMEOUT)
        except queue.Full:
            return
        self._thread.join(2 * TIMEOUT)

    def _work(self) -> None:
        while (body := self._queue.get()) is not None:
            try:
                self._pass_on(body)
            except (OSError, ValueError, subprocess.SubprocessError, urllib.error.URLError) as error:
                self.report(f"an alarm could not be passed on: {error}")

    def _pass_on(self, body: bytes) -> None:
        if self.webhook is not None:
            request = urllib.request.Request(self.webhook, body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=TIMEOUT):
                pass
        if self.command:
            subprocess.run(self.command, input=body, timeout=TIMEOUT, check=True, stdout=subprocess.DEVNULL)
