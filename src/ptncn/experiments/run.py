"""One run: its specification as plain values, and the context in which it runs."""

from __future__ import annotations

import json
import shlex
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ptncn import checkpoint
from ptncn.data.registry import Splits, open_splits
from ptncn.learner import Learner
from ptncn.learners import make
from ptncn.learners.registry import describe
from ptncn.system import ENDINGS

TUNED = Path(__file__).parent / "tuned"
"""The tuned values of the package: NAME-DATA.json."""
TUNED_ON = {"video": "mnist", "text": "ptb"}
"""The dataset that supplies tuned values for others of the same kind."""
ONLINE_NAME = "continual"
"""The name of values tuned with one sequence at a time; runs of that kind use no others."""


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """Everything that determines the results of a run, so that any process can carry it out.

    Experiments make these. A training that several tables share is a spec too.
    """

    experiment: str
    scale: str
    row: str
    """The row of the table: a learner, or a variant of one."""
    learner: str
    """The learner's name in the registry."""
    data: str
    """The column of the table: a dataset, or several."""
    seed: int
    config: Any
    """A `RunConfig`, or the experiment's own."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the learner that override all others."""
    inherit: bool = True
    """Start from the defaults and tuned values of the learner; otherwise use only values tuned for this row."""
    tuned: Path | None = TUNED
    """The folder of tuned values; None: defaults only."""
    arguments: tuple[str, ...] = ()
    """The arguments of the command that changed `config` or `options`."""

    @property
    def name(self) -> str:
        return f"{self.experiment}/{self.row}/{self.data}/{self.seed}"

    def path(self, out: Path) -> Path:
        """The file of its record."""
        return out / self.experiment / f"{self.row}-{Path(self.data).name}-{self.seed}.json"

    def command(self) -> str:
        """The `ptncn reproduce` command that repeats this run."""
        seeds = ("--seeds", "1") if self.seed == 0 else ("--seed", str(self.seed))
        chosen = ("--scale", self.scale, "--learners", self.row, "--data", self.data, *seeds)
        return shlex.join(["ptncn", "reproduce", self.experiment, *chosen, *self.arguments])

    def __str__(self) -> str:
        return f"{self.experiment} {self.row} {self.data} seed {self.seed}"

    @cached_property
    def splits(self) -> Splits:
        config = self.config
        return open_splits(
            self.data,
            embedded=config.embedded,
            canvas=config.canvas,
            sequences=config.sequences,
            valid=config.valid,
            test=config.test,
        )

    @cached_property
    def _options_and_file(self) -> tuple[dict[str, Any], str | None]:
        options, file = options_for(self)
        return {**options, "output": self.splits.output, **self.options}, file

    @property
    def learner_options(self) -> dict[str, Any]:
        options = dict(self._options_and_file[0])
        if "hidden_sizes" in options:
            options.pop("hidden_size", None)  # `--option hidden_sizes=…` replaces it
        return options

    def make_learner(self) -> Learner:
        return make(self.learner, input_size=self.splits.train.input_size, **self.learner_options)

    def check(self) -> None:
        """Raise ValueError for a learner that stores every step on data without an end."""
        if self.splits.entry.continuous and describe(self.learner).memory.endswith("T"):
            raise ValueError(
                f"{self.learner} stores every step of a sequence, and {self.data} is one long sequence; "
                "expected a learner whose memory is bounded, such as lstm-tbptt"
            )

    def values(self) -> dict[str, Any]:
        """Everything that determines what is learnt, except the data, for the record."""
        self.check()
        return {
            "row": self.row,
            "data": self.data,
            "source": self.splits.source,
            "seed": self.seed,
            "tuned": self._options_and_file[1],
            "run_config": self.config.values(),
            "options": self.learner_options,
        }

    def notes(self) -> list[str]:
        """Notes on this training for readers of the table."""
        lines = [f"{name} was not used: the embedded {used} stand in for it" for name, used in self.stand_ins.items()]
        if describe(self.learner).size_class == "exact":
            lines.append(_exact_note(self))
        return lines

    @property
    def stand_ins(self) -> dict[str, str]:
        """{dataset asked for: dataset used} where they differ."""
        return self.splits.stand_ins


def _exact_note(spec: RunSpec) -> str:
    from ptncn.learners.rtrl import RTRL
    from ptncn.system import in_words

    inputs = spec.splits.train.input_size
    needed = RTRL.required_bytes(describe(spec.learner).options["cell"], inputs, 1_000)
    return (
        f"exact RTRL has {spec.learner_options['hidden_size']} units here: the paper's 1,000 on {inputs:,} inputs "
        f"would need {in_words(needed)} for each row of a batch"
    )


def options_for(spec: RunSpec) -> tuple[dict[str, Any], str | None]:
    """The options of the learner of a spec, and the file of tuned values that was used, if any."""
    kind, online = spec.splits.kind, spec.config.batch_size == 1
    entry = describe(spec.learner)
    defaults = entry.default_options(kind, online=online) if spec.inherit else {}
    size = {} if entry.size_class == "none" else {"hidden_size": spec.config.hidden_size(spec.learner)}
    options = {**defaults, **size, "seed": spec.seed}
    owners = (spec.row, spec.learner, entry.tuned_like or spec.learner) if spec.inherit else (spec.row,)
    file = find_tuned(owners, kind, ONLINE_NAME if online else spec.data, spec.tuned)
    if file is None:
        return options, None
    return {**options, **json.loads(file.read_text())["options"]}, f"{file.parent.name}/{file.name}"


def find_tuned(owners: tuple[str, ...], kind: str, data: str, folder: Path | None) -> Path | None:
    """The first file of tuned values of these rows or learners, for this data or its kind."""
    if folder is None:
        return None
    for owner in dict.fromkeys(owners):
        for name in (data,) if data == ONLINE_NAME else (data, TUNED_ON.get(kind, data)):
            path = folder / f"{owner}-{name}.json"
            if path.is_file():
                return path
    return None


class Interrupted(Exception):  # noqa: N818 (not an error)
    """The run was stopped on request, after writing a checkpoint."""


class Stop:
    """Requests to stop by Ctrl-C or SIGTERM, which take effect after a batch; a second Ctrl-C stops immediately."""

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


class ProcessGroup:
    """The processes that share a run: here, only this one."""

    def share(self, learner: Learner, key: str) -> Learner:
        """The learner that every process uses; `key` identifies the run."""
        return learner

    def agree(self, due: bool, stopping: bool) -> tuple[bool, bool]:
        """Whether all processes save, and stop, after this batch."""
        return due, stopping

    def save(self, path: Path, learner: Learner, state: Any = None, extra: Any = None) -> None:
        """Write a checkpoint, and return when every process can read it."""
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
    """The environment of a run: folders, checkpoints, progress and requests to stop."""

    runs: Path = Path("runs")
    """Folder of checkpoints and trained learners."""
    resume: bool = False
    """Continue from checkpoints."""
    fresh: bool = False
    """Repeat trainings that have a result."""
    every: float = 60.0
    """Seconds between checkpoints."""
    reporter: Reporter = field(default_factory=Reporter)
    stop: Stop = field(default_factory=Stop)
    group: ProcessGroup = field(default_factory=ProcessGroup)
