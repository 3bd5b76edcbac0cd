"""One life: both learners see every frame once, say beforehand what will come, and learn from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ptncn.demo.contestants import PTNCN, uncorrected
from ptncn.demo.worlds import LIFE, SCENE, WORLDS, scenes
from ptncn.learner import Learner
from ptncn.training.loop import run

UNCORRECTED = "uncorrected"
"""Among the looks: the P-TNCN's weights without correction of states."""
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Size:
    """How long it takes."""

    scenes: int
    """In each part of the life."""
    looks: int
    """Unseen scenes of each world that are shown to frozen weights."""
    units: tuple[int, ...]
    """Of the P-TNCN's layers; the LSTM gets as many as make its weights equal in number."""

    @property
    def frames(self) -> int:
        """In each part."""
        return self.scenes * SCENE


class Moment(NamedTuple):
    """How far a life is."""

    part: int
    scene: int
    """Lived through, of this part."""
    errors: Mapping[str, float]
    """Squared error a frame in this scene, of each learner and of repeating the last frame."""


@dataclass
class Life:
    """Everything that was measured. Arrays of errors are (parts, scenes, frames of a scene)."""

    errors: dict[str, Array]
    """Squared error of each prediction, summed over the pixels; "copy" repeats the last frame."""
    surprise: Array
    """(parts, scenes, frames, layers) of the P-TNCN: ½‖e‖² of its error units."""
    looks: dict[str, list[list[float]]]
    """Mean squared error with frozen weights: a row before the life and after each part, a column a world."""
    films: dict[str, NDArray[np.uint8]]
    """Of the scenes at the borders: what came, and what each learner expected, (scenes, frames, pixels)."""
    seconds: dict[str, float]
    """Processor time of each learner's steps."""


def live(
    learners: Mapping[str, Learner], size: Size, seed: int, tell: Callable[[Moment], object] = lambda _: None
) -> Life:
    """Let `learners` live, with frozen looks at all worlds in between; `tell` hears of every scene."""
    shape = (len(LIFE), size.scenes, SCENE)
    errors = {name: np.zeros(shape) for name in (*learners, "copy")}
    depth = len(size.units)
    surprise = np.zeros((*shape, depth))
    seconds = dict.fromkeys(learners, 0.0)
    films: dict[str, list[NDArray[np.uint8]]] = {name: [] for name in ("truth", *learners)}
    unseen = {world: _unseen(world, size.looks, seed) for world in WORLDS}
    looks = {"copy": [[_mean_error(x[:-1], x[1:]) for x in unseen.values()]]}
    _look_around(learners, unseen, looks)
    states = {name: learner.begin(1) for name, learner in learners.items()}
    last = None
    for part, world in enumerate(LIFE):
        source = scenes(world, "train", size.scenes, seed=seed, purpose=f"part {part}")
        for number in range(size.scenes):
            x = source.batch([number]).x  # (frames, 1, pixels)
            before = torch.cat([torch.zeros_like(x[:1]) if last is None else last, x[:-1]])
            last = x[-1:]
            errors["copy"][part, number] = _frame_errors(before, x)
            keep = number in kept_scenes(size.scenes)
            if keep:
                films["truth"].append(_pixels(x))
            for name, learner in learners.items():
                start = time.process_time()
                steps = [learner.step(frame, states[name]) for frame in x]
                seconds[name] += time.process_time() - start
                expected = torch.stack([step.prediction for step in steps])
                errors[name][part, number] = _frame_errors(expected, x)
                if hasattr(steps[0], "surprise"):
                    surprise[part, number] = [[float(each) for each in step.surprise] for step in steps]  # type: ignore[attr-defined]
                if keep:
                    films[name].append(_pixels(expected))
            tell(Moment(part, number + 1, {name: foreseeable(each[part, number]) for name, each in errors.items()}))
        _look_around(learners, unseen, looks)
    return Life(errors, surprise, looks, {name: np.stack(each) for name, each in films.items()}, seconds)


def kept_scenes(count: int) -> tuple[int, ...]:
    """The scenes of a part that are filmed: its first and its last.

    >>> kept_scenes(500)
    (0, 499)
    """
    return 0, count - 1


def foreseeable(errors: Array) -> float:
    """The mean (…, frames) without the first frame of each scene, which nobody could foresee."""
    return float(errors[..., 1:].mean())


def _unseen(world: str, count: int, seed: int) -> Tensor:
    return scenes(world, "test", count, seed=seed, purpose="look").batch(range(count)).x


def _look_around(
    learners: Mapping[str, Learner], unseen: Mapping[str, Tensor], looks: dict[str, list[list[float]]]
) -> None:
    """One more row for each learner, and for the P-TNCN, if there is one, without correction."""
    bare = {UNCORRECTED: uncorrected(learners[PTNCN])} if PTNCN in learners else {}
    for name, learner in {**learners, **bare}.items():
        looks.setdefault(name, []).append(_look(learner, unseen))


def _look(learner: Learner, unseen: Mapping[str, Tensor]) -> list[float]:
    """How well frozen weights do in each world."""
    found = []
    for x in unseen.values():
        predictions = run(learner, x).predictions
        assert predictions is not None
        found.append(_mean_error(predictions[1:], x[1:]))
    return found


def _mean_error(expected: Tensor, x: Tensor) -> float:
    return float((expected - x).double().square().sum(-1).mean())


def _frame_errors(expected: Tensor, x: Tensor) -> Any:
    return (expected - x).double().square().sum((1, 2)).numpy()


def _pixels(frames: Tensor) -> NDArray[np.uint8]:
    """(frames, pixels) on 16 greys, which take little space and hardly differ from 256."""
    pixels: NDArray[np.uint8] = (frames[:, 0].clamp(0, 1) * 15).round().byte().numpy() * 17
    return pixels
