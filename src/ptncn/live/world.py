"""The page of the moving world: two learners run in a thread, and visitors change the world between two frames."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import torch

from ptncn.demo.simulate import CANVAS, LSTM
from ptncn.live.messages import (
    Command,
    Visitor,
    fields,
    finite,
    flag,
    grey_bytes,
    nothing,
    number,
    one_of,
    pack,
    text,
    whole,
)
from ptncn.live.objects import DRAWING, KINDS, PAD, World, bar, grey, load_clothes
from ptncn.live.pair import SEARCHED, UNITS, make_pair, rivals
from ptncn.system import one_line

RATE = 25
"""Frames per second."""
CURVE = 1500
"""Frames in the curves: one minute."""


class WorldPage:
    """A world and two learners in it, with everything that visitors can do to them.

    `tick` makes one frame, which is all that a test needs; `start` calls it 25 times per second. Commands are queued
    until the next frame, so that frames depend only on the seed and the commands.
    """

    name = "world"

    def __init__(self, rival: str = LSTM, seed: int = 0, units: Sequence[int] = UNITS) -> None:
        self.seed, self.units = seed, tuple(units)
        self.world = World(seed)
        self.runners = make_pair(rival, seed, self.units)
        self.number = 0
        """Number of frames so far."""
        self.frozen = self.dreaming = self.paused = False
        self.latest = b""
        """The newest frame, packed."""
        self.changes = 0
        """Increases when `state` changes."""
        self.problem: str | None = None
        self._clothes = load_clothes()[1]
        self._snapshot: dict[str, Any] | None = None
        self._curve: deque[list[float | None]] = deque(maxlen=CURVE)
        self._last: torch.Tensor | None = None
        self._copied: float | None = None
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._times: deque[float] = deque(maxlen=RATE + 1)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.checks = {
            "kind": one_of(lambda: [*KINDS, *([DRAWING] if self.world.drawing else [])]),
            "objects": whole(1, 5),
            "speed": number(0.0, 0.3),
            "occlusion": whole(0, 24),
            "drawing": grey_bytes(PAD * PAD),
            "rival": one_of(lambda: list(rivals())),
            "freeze": flag,
            "dream": flag,
            "pause": flag,
            "lesion": fields(learner=whole(0, 1), part=text(20), on=flag),
            **dict.fromkeys(("step", "snapshot", "back", "restart"), nothing),
        }

    # For the server

    def hello(self) -> dict[str, Any]:
        """Data that a new visitor needs once."""
        return {
            "kinds": [*KINDS],
            "clothes": self._clothes,
            "rivals": rivals(),
            "canvas": CANVAS,
            "pad": PAD,
            "rate": RATE,
            "curve": list(self._curve),
        }

    def receive(self, command: Command, visitor: Visitor) -> None:
        """Queue a visitor's command for the next frame."""
        if command.type == "lesion":
            parts, wanted = self.runners[command.value["learner"]].parts(), command.value["part"]
            if wanted not in parts:
                raise ValueError(f"lesion: part: expected one of {', '.join(parts)}, got {wanted!r}")
        if command.type == "back" and self._snapshot is None:
            raise ValueError("back: there is no snapshot to go back to")
        self._commands.put(command)

    def news(self, visitor: Visitor) -> list[bytes | dict[str, Any]]:
        """Updates for a visitor: the state if it has changed, and the newest frame."""
        updates: list[bytes | dict[str, Any]] = []
        if visitor.changed("state", self.changes):
            updates.append(self.state())
        latest = self.latest  # read once: the world changes in another thread
        if latest and visitor.changed("frame", latest):
            updates.append(latest)
        return updates

    def state(self) -> dict[str, Any]:
        settings = self.world.settings
        return {
            "type": "state",
            **vars(settings),
            "bar": bar(settings.occlusion),
            "has_drawing": self.world.drawing is not None,
            "frozen": self.frozen,
            "dreaming": self.dreaming,
            "paused": self.paused,
            "snapshot": None if self._snapshot is None else self._snapshot["number"],
            "problem": self.problem,
            "learners": [
                {
                    "name": each.name,
                    "label": each.label,
                    "about": each.about,
                    "options": each.options,
                    "weights": each.weights,
                    "equal": each.equal,
                    "searched": each.name in SEARCHED,
                    "parts": each.parts(),
                    "lesions": each.lesions,
                }
                for each in self.runners
            ],
        }

    # Frames

    def start(self) -> None:
        """Make frames in a thread until `stop`; another thread prepares the objects of the other worlds."""
        threading.Thread(target=lambda: [load() for load in KINDS.values()], daemon=True).start()
        self._thread = threading.Thread(target=self._run, name="ptncn world", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def tick(self) -> None:
        """Execute the visitors' commands and make a frame; a paused world makes only requested frames."""
        steps, changed = 0, False
        while not self._commands.empty():
            command = self._commands.get()
            steps, changed = steps + (command.type == "step"), True
            self._execute(command)
        self.changes += changed
        for _ in range(steps if self.paused else 1):
            self._advance()

    def _run(self) -> None:
        torch.set_num_threads(1)
        due = time.monotonic()
        while not self._stop.is_set():
            try:
                self.tick()
            except (ValueError, FloatingPointError) as error:
                self.problem, self.paused = one_line(error), True
                self.changes += 1
            due = max(due + 1 / RATE, time.monotonic() - 1 / RATE)  # late by more than a frame: do not catch up
            self._stop.wait(max(0.0, due - time.monotonic()))

    def _advance(self) -> None:
        begins = self.world.begins
        x = self.world.next()
        options = {"begins": begins, "learn": not self.frozen, "dream": self.dreaming}
        expected = [runner.show(x, **options) for runner in self.runners]
        if not begins and self._last is not None:
            copied = float((self._last - x).double().square().sum())
            self._copied = copied if self._copied is None else 0.95 * self._copied + 0.05 * copied
        self._last = x
        self.number += 1
        self._times.append(time.monotonic())
        mine, other = self.runners
        copied = math.nan if self._copied is None else self._copied
        point = [self.number, *map(finite, (mine.error, other.error, copied, *mine.surprise))]
        self._curve.append(point)
        span = self._times[-1] - self._times[0]
        header = {
            "type": "frame",
            "point": point,
            "scene": self.world.scene,
            "begins": begins,
            "milliseconds": [finite(mine.milliseconds), finite(other.milliseconds)],
            "rate": finite((len(self._times) - 1) / span) if span > 0 else None,
        }
        self.latest = pack(header, b"".join(grey(each).tobytes() for each in (x, *expected)))

    # Commands

    def _execute(self, command: Command) -> None:
        kind, value = command
        if kind in ("kind", "objects", "speed", "occlusion"):
            self.world.change(**{kind: value})
        elif kind == "drawing":
            self.world.draw(value)
        elif kind == "freeze":
            self.frozen = value
        elif kind == "dream":
            self.dreaming = value
        elif kind == "pause":
            self.paused = value
            self._times.clear()
        elif kind == "lesion":
            self.runners[value["learner"]].lesion(value["part"], value["on"])
        elif kind == "snapshot":
            self._snapshot = self._take_snapshot()
        elif kind == "back" and self._snapshot is not None:
            self._go_back(self._snapshot)
        elif kind in ("rival", "restart"):
            self._begin_again(value if kind == "rival" else self.runners[1].name)

    def _begin_again(self, rival: str) -> None:
        """Restart both learners untrained, so that they have always seen the same number of frames."""
        self.runners = make_pair(rival, self.seed, self.units)
        self.number, self._copied, self._snapshot, self.problem = 0, None, None, None
        self._curve.clear()
        self.world.change()

    def _take_snapshot(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "world": self.world.state(),
            "runners": [runner.snapshot() for runner in self.runners],
            "copied": (self._last, self._copied),
            "curve": list(self._curve),
        }

    def _go_back(self, snapshot: dict[str, Any]) -> None:
        self.number = snapshot["number"]
        self.world.go_back(snapshot["world"])
        for runner, tree in zip(self.runners, snapshot["runners"], strict=True):
            runner.go_back(tree)
        self._last, self._copied = snapshot["copied"]
        self._curve.clear()
        self._curve.extend(snapshot["curve"])
        self.problem = None
