"""One run, by plain values: which row of which table, on which data, with which seed, sizes and options.

The options of a learner are its defaults for the kind of data, then the values that tuning found. Tuned values ship
with the package (`experiments/tuned/`); a folder of your own replaces them.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ptncn.data.registry import Splits, open_splits
from ptncn.learner import Learner
from ptncn.learners import make
from ptncn.learners.registry import describe

TUNED = Path(__file__).parent / "tuned"
"""The tuned values of the package: NAME-DATA.json."""
TUNED_ON = {"video": "mnist", "text": "ptb"}
"""The dataset whose tuned values serve others of the same kind."""
ONLINE_NAME = "continual"
"""The name under which values tuned one sequence at a time are kept; no others serve there."""


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """All that decides the numbers of a run. Any process can carry it out.

    An experiment makes these; a training that several tables share is a spec as well.
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
    """Start from the defaults and the tuned values of the learner; else only values tuned for this row serve."""
    tuned: Path | None = TUNED
    """The folder of tuned values; None: defaults only."""
    arguments: tuple[str, ...] = ()
    """The arguments of the command that changed `config` or `options`."""

    def path(self, out: Path) -> Path:
        """The file of its record."""
        return out / self.experiment / f"{self.row}-{Path(self.data).name}-{self.seed}.json"

    def command(self) -> str:
        """The command that repeats this run."""
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
    def _chosen(self) -> tuple[dict[str, Any], str | None]:
        options, file = options_for(self)
        return {**options, "output": self.splits.output, **self.options}, file

    @property
    def learner_options(self) -> dict[str, Any]:
        options = dict(self._chosen[0])
        if "hidden_sizes" in options:
            options.pop("hidden_size", None)  # `--option hidden_sizes=…` says the same
        return options

    def make_learner(self) -> Learner:
        return make(self.learner, input_size=self.splits.train.input_size, **self.learner_options)

    def check(self) -> None:
        """Refuse a learner that stores every step on data without an end."""
        if self.splits.entry.continuous and describe(self.learner).memory.endswith("T"):
            raise ValueError(
                f"{self.learner} stores every step of a sequence, and {self.data} is one long sequence; "
                "expected a learner whose memory is bounded, such as lstm-tbptt"
            )

    def values(self) -> dict[str, Any]:
        """Everything that decides what is learnt, the data aside, as records keep it."""
        self.check()
        return {
            "model": self.row,
            "data": self.data,
            "source": self.splits.source,
            "seed": self.seed,
            "tuned": self._chosen[1],
            "setting": self.config.values(),
            "options": self.learner_options,
        }

    def notes(self) -> list[str]:
        """What a reader of the table should know about this training."""
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
    """All options of the learner of a spec, and the name of the file of tuned values that they come from, if any."""
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
    """The first file of tuned values among those of some rows or learners, for this data or for its kind."""
    if folder is None:
        return None
    for owner in dict.fromkeys(owners):
        for name in (data,) if data == ONLINE_NAME else (data, TUNED_ON.get(kind, data)):
            path = folder / f"{owner}-{name}.json"
            if path.is_file():
                return path
    return None
