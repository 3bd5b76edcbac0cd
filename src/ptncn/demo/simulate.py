"""The simulation: two learners predict each frame of a changing stream, then learn from it; and its record."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ptncn.data import load_images
from ptncn.data.images import BouncingVideo, Images
from ptncn.experiments.zero_shot import without_correction
from ptncn.learner import Learner, Surprising
from ptncn.learners import make
from ptncn.records import pack, versions
from ptncn.training import run

PTNCN, LSTM = "ptncn", "lstm-tbptt"
NAMES = {PTNCN: "P-TNCN", LSTM: "LSTM", "copy": "last frame"}
CANVAS = 32
"""Pixels along an edge of a frame."""
PIXELS = CANVAS * CANVAS

PTNCN_OPTIONS: dict[str, Any] = {"preset": "best"}
LSTM_OPTIONS: dict[str, Any] = {
    "optimizer": "rmsprop",
    "lr": 2e-3,
    "window": 8,  # frames that each update unrolls
    "stride": 4,  # frames between updates; fewer would take too long for a demo
}


def make_learners(units: Sequence[int], seed: int) -> dict[str, Learner]:
    """Both learners, untrained; `units` are those of the P-TNCN's layers.

    >>> [count_weights(learner) for learner in make_learners([20, 10], seed=0).values()]
    [63814, 63136]
    """
    network = make(PTNCN, input_size=PIXELS, hidden_size=list(units), seed=seed, **PTNCN_OPTIONS)
    hidden = equal_units(count_weights(network))
    return {PTNCN: network, LSTM: make(LSTM, input_size=PIXELS, hidden_size=hidden, seed=seed, **LSTM_OPTIONS)}


def count_weights(learner: Learner) -> int:
    """The number of weights and biases, including those that do not learn."""
    if not isinstance(learner, nn.Module):
        raise TypeError(f"{learner.registry_name}: expected a PyTorch module, got {type(learner).__name__}")
    return sum(weight.numel() for weight in learner.parameters())


def equal_units(weights: int) -> int:
    """LSTM units for about as many weights: its cell has 4 (n + h + 2) h weights, its readout (h + 1) n."""
    return min(
        range(1, weights // PIXELS + 1), key=lambda h: abs(4 * (PIXELS + h + 2) * h + (h + 1) * PIXELS - weights)
    )


DATASETS = ("digits", "letters", "shapes")
PARTS = ("digits", "letters", "shapes", "digits")
"""The parts of the stream. The learners get no signal where one ends."""
SCENE = 20
"""Frames of a scene; the next scene has two other objects."""
UNCORRECTED = "uncorrected"
"""In the evaluations: the P-TNCN with the same weights, without correction of states."""
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Size:
    """How large the demo is."""

    scenes: int
    """Scenes in each part."""
    test_scenes: int
    """Unseen scenes of each dataset on which frozen weights are evaluated."""
    units: tuple[int, ...]
    """Units of the P-TNCN's layers; the LSTM has as many weights."""

    @property
    def frames(self) -> int:
        """Frames in each part."""
        return self.scenes * SCENE


class Progress(NamedTuple):
    """The state of a simulation after a scene."""

    part: int
    scene: int
    """Scenes finished in this part."""
    errors: Mapping[str, float]
    """Squared error per frame in this scene, of each learner and of repeating the last frame."""


@dataclass
class Simulation:
    """What was measured. Arrays of errors are (parts, scenes, frames of a scene)."""

    errors: dict[str, Array]
    """Squared error of each prediction, summed over pixels; "copy" repeats the last frame."""
    surprise: Array
    """(parts, scenes, frames, layers) of the P-TNCN: ½‖e‖² of its error units."""
    evaluations: dict[str, list[list[float]]]
    """Mean squared error with frozen weights: a row before the stream and after each part, a column per dataset."""
    films: dict[str, NDArray[np.uint8]]
    """The first and last scene of each part: the truth and each learner's predictions, (scenes, frames, pixels)."""
    seconds: dict[str, float]
    """Processor time of each learner's steps."""


def simulate(
    learners: Mapping[str, Learner], size: Size, seed: int, report: Callable[[Progress], object] = lambda _: None
) -> Simulation:
    """Train `learners` on the stream, and evaluate them before it and after each part; `report` gets every scene."""
    shape = (len(PARTS), size.scenes, SCENE)
    errors = {name: np.zeros(shape) for name in (*learners, "copy")}
    surprise = np.zeros((*shape, len(size.units)))
    seconds = dict.fromkeys(learners, 0.0)
    films: dict[str, list[NDArray[np.uint8]]] = {name: [] for name in ("truth", *learners)}
    unseen = {name: unseen_frames(name, size.test_scenes, seed) for name in DATASETS}
    evaluations = {"copy": [[_mean_error(x[:-1], x[1:]) for x in unseen.values()]]}
    _evaluate(learners, unseen, evaluations)
    states = {name: learner.begin(1) for name, learner in learners.items()}
    last = None
    for part, dataset in enumerate(PARTS):
        source = scenes(dataset, "train", size.scenes, seed=seed, purpose=f"part {part}")
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
                predictions = torch.stack([step.prediction for step in steps])
                errors[name][part, number] = _frame_errors(predictions, x)
                layers = [[float(each) for each in step.surprise] for step in steps if isinstance(step, Surprising)]
                if layers:
                    surprise[part, number] = layers
                if keep:
                    films[name].append(_pixels(predictions))
            report(Progress(part, number + 1, {name: predictable(each[part, number]) for name, each in errors.items()}))
        _evaluate(learners, unseen, evaluations)
    return Simulation(errors, surprise, evaluations, {name: np.stack(each) for name, each in films.items()}, seconds)


def scenes(dataset: str, split: Literal["train", "test"], count: int, *, seed: int, purpose: str) -> BouncingVideo:
    """`count` scenes of one dataset; each `purpose` has its own motions.

    >>> scenes("shapes", "test", 3, seed=0, purpose="look").batch([0, 2]).x.shape
    torch.Size([20, 2, 1024])
    """
    images = halved(load_images(dataset, split))
    return BouncingVideo(images, size=count, canvas=CANVAS, length=SCENE, seed=seed, stream=f"demo/{purpose}")


def unseen_frames(dataset: str, count: int, seed: int) -> Tensor:
    """(frames, scenes, pixels) of unseen scenes."""
    return scenes(dataset, "test", count, seed=seed, purpose="look").batch(range(count)).x


def halved(images: Images) -> Images:
    """Images at half the height and width (means of 2 × 2 pixels), so that objects can move on a small canvas."""
    count, height, width = images.pixels.shape
    blocks = images.pixels.reshape(count, height // 2, 2, width // 2, 2)
    return Images(images.name, blocks.mean((2, 4)).round().astype(np.uint8), images.labels)


def kept_scenes(count: int) -> tuple[int, ...]:
    """The scenes of a part whose frames are kept: the first and the last.

    >>> kept_scenes(500)
    (0, 499)
    """
    return 0, count - 1


def predictable(errors: Array) -> float:
    """The mean of (…, frames) without the first frame of each scene, which cannot be predicted."""
    return float(errors[..., 1:].mean())


def _evaluate(
    learners: Mapping[str, Learner], unseen: Mapping[str, Tensor], evaluations: dict[str, list[list[float]]]
) -> None:
    """Add a row for each learner, and for the P-TNCN without correction, if it takes part."""
    uncorrected = {UNCORRECTED: without_correction(learners[PTNCN])} if PTNCN in learners else {}
    for name, learner in {**learners, **uncorrected}.items():
        evaluations.setdefault(name, []).append([_frozen_error(learner, x) for x in unseen.values()])


def _frozen_error(learner: Learner, x: Tensor) -> float:
    predictions = run(learner, x).predictions
    assert predictions is not None
    return _mean_error(predictions[1:], x[1:])


def _mean_error(predictions: Tensor, x: Tensor) -> float:
    return float((predictions - x).double().square().sum(-1).mean())


def _frame_errors(predictions: Tensor, x: Tensor) -> Any:
    return (predictions - x).double().square().sum((1, 2)).numpy()


def _pixels(frames: Tensor) -> NDArray[np.uint8]:
    """(frames, pixels) in 16 greys, which take little space and hardly differ from 256."""
    pixels: NDArray[np.uint8] = (frames[:, 0].clamp(0, 1) * 15).round().byte().numpy() * 17
    return pixels


SCHEMA = 2
RENAMED = {
    "life": "stream",
    "worlds": "datasets",
    "looks": "evaluations",
    "looked_at": "test_scenes",
    "world": "dataset",
}
"""{former name: present name} of the keys of records of version 1."""
POINTS = 40
"""Points of a curve in each part."""
FIRST, LAST = 10, 50
"""Number of scenes at the start and at the end of a part that are summarised separately."""


def make_record(
    simulation: Simulation, learners: Mapping[str, Learner], size: Size, seed: int, command: str
) -> dict[str, Any]:
    """All data of the page. Errors are squared, summed over pixels and averaged over frames."""
    frames = len(PARTS) * size.frames
    return {
        "schema": SCHEMA,
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": versions(),
        "seed": seed,
        "stream": list(PARTS),
        "datasets": list(DATASETS),
        "canvas": CANVAS,
        "scene": SCENE,
        "scenes": size.scenes,
        "test_scenes": size.test_scenes,
        "first": min(FIRST, size.scenes) * SCENE,
        "last": min(LAST, size.scenes) * SCENE,
        "learners": {
            name: {
                "weights": count_weights(learner),
                "milliseconds": round(1000 * simulation.seconds[name] / frames, 3),
                "options": learner.options(),
            }
            for name, learner in learners.items()
        },
        "parts": [_part(simulation, part) for part in range(len(PARTS))],
        "curve": {
            "frames": _middles(size),
            **{name: _rounded(_blocks(each[..., 1:].mean(-1))) for name, each in simulation.errors.items()},
        },
        "surprise": [_rounded(_blocks(each)) for each in np.moveaxis(simulation.surprise[..., 1:, :].mean(2), -1, 0)],
        "evaluations": {
            name: [[round(each, 3) for each in row] for row in rows] for name, rows in simulation.evaluations.items()
        },
        "films": {
            "scenes": [[part, scene] for part in range(len(PARTS)) for scene in kept_scenes(size.scenes)],
            **{name: pack(frames) for name, frames in simulation.films.items()},
        },
    }


def load_record(path: Path) -> dict[str, Any]:
    """The record of a demo, with the present names of its keys."""
    tree = json.loads(path.read_text(encoding="utf-8"))
    record = {RENAMED.get(name, name): value for name, value in tree.items()}
    record["parts"] = [{RENAMED.get(name, name): value for name, value in part.items()} for part in record["parts"]]
    return {**record, "schema": SCHEMA}


def _part(simulation: Simulation, part: int) -> dict[str, Any]:
    """Errors in a part, in its first frames and in its last."""

    def means(chosen: slice) -> dict[str, float]:
        return {name: round(predictable(each[part, chosen]), 3) for name, each in simulation.errors.items()}

    return {
        "dataset": PARTS[part],
        "all": means(slice(None)),
        "first": means(slice(FIRST)),
        "last": means(slice(-LAST, None)),
    }


def _blocks(values: Array) -> Array:
    """(parts, scenes) → (parts · points,) means over neighbouring scenes of the same part."""
    points = min(POINTS, values.shape[1])
    return np.array([block.mean() for part in values for block in np.array_split(part, points)])


def _middles(size: Size) -> list[int]:
    """The frame in the middle of each block."""
    scenes: Array = np.arange(len(PARTS) * size.scenes, dtype=float).reshape(len(PARTS), size.scenes) + 0.5
    return [round(middle * SCENE) for middle in _blocks(scenes).tolist()]


def _rounded(values: Array) -> list[float]:
    return [round(value, 3) for value in values.tolist()]
