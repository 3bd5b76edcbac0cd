"""The figures of each experiment, drawn from its records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptncn.records import Record, unpack
from ptncn.report.labels import label, line_style
from ptncn.report.model import Figure
from ptncn.report.plots import Curve, cost_growth, error_curves, surprise_over_time, task_matrices
from ptncn.report.video import animation, filmstrip

SHOWN = ("ptncn", "lstm-bptt")
"""Whose predictions are shown below the truth: as in the paper, whose figures have an LSTM in between."""
UNITS = {"prequential_se": "squared error", "prequential_bpc": "bits a character"}

Drawing = tuple[str, Callable[[], Figure]]
"""What a figure shows, for the message if it cannot be drawn; and how it is drawn."""


def illustrate(experiment: str, stem: str, records: Sequence[Record]) -> Iterator[Drawing]:
    """Every figure of an experiment; `stem` begins the names of their files."""
    if experiment == "complexity":
        yield from _costs(stem, records)
        return
    for data in dict.fromkeys(record.data for record in records):
        group = [record for record in records if record.data == data]
        name = f"{stem}-{data.replace('+', '-').replace('/', '-')}"
        yield from _courses(experiment, name, group)
        if experiment == "continual":
            yield f"task matrices of {data}", partial(_matrices, name, group)
        yield from _films(experiment, name, group)


def _courses(experiment: str, name: str, records: Sequence[Record]) -> Iterator[Drawing]:
    having = [record for record in records if record.curve]
    if having:
        what = "prequential" if experiment in ("continual", "discrete", "one-shot") else "learning"
        yield f"{what} curves of {records[0].data}", partial(_curves, experiment, f"{name}-{what}", records)


def _curves(experiment: str, name: str, records: Sequence[Record]) -> Figure:
    """Each model's faded error, mean over its trials."""
    curves: list[Curve] = []
    changes: list[tuple[float, str]] = []
    for model in dict.fromkeys(record.model for record in records if record.curve):
        trials = [record.curve for record in records if record.model == model and record.curve]
        steps = trials[0]["steps"]
        same = [trial["faded"] for trial in trials if trial["steps"] == steps]
        curves.append(Curve(label(model), steps, np.mean(np.array(same, float), axis=0).tolist(), line_style(model)))
        changes = changes or [(step, label(what)) for step, what in trials[0]["changes"]]
    seen = dict.fromkeys(what for _, what in changes)
    if len(seen) == 1:
        changes = []  # another epoch of the same data is not another world
    ends = [record for record in records if not record.curve and "prequential_se" in record.metrics]
    longest = max((curve.steps for curve in curves), key=len)
    for record in ends:
        level = float(record.metrics["prequential_se"])
        curves.append(Curve(label(record.model), [longest[0], longest[-1]], [level, level], line_style(record.model)))
    metric = next(record.curve["metric"] for record in records if record.curve)
    error = UNITS.get(metric, metric)
    data = label(records[0].data)
    picture = error_curves(
        name,
        curves,
        title=data,
        error=error,
        changes=changes,
        logarithmic=experiment == "discrete",
    )
    count = len({record.seed for record in records})
    over = f", mean over {count} trials" if count > 1 else ""
    marks = " Vertical lines: here the world changes." if changes else ""
    caption = (
        f"{error[:1].upper()}{error[1:]} in the course of learning, {data}: each step tests before it teaches, older "
        f"steps fade{over}. Scale {records[0].scale}.{marks}"
    )
    return Figure(picture, f"Curves of {len(curves)} models. {_last(curves)}", caption)


def _last(curves: Sequence[Curve]) -> str:
    told = [f"{curve.label} {curve.values[-1]:.4g}" for curve in curves]
    return f"In the end: {', '.join(told)}."


def _matrices(name: str, records: Sequence[Record]) -> Figure:
    tasks = records[0].metrics["matrix"]["tasks"]
    losses: dict[str, Any] = {}
    for model in dict.fromkeys(record.model for record in records):
        trials = [record.metrics["matrix"]["losses"] for record in records if record.model == model]
        losses[label(model)] = np.mean(np.array(trials, float), axis=0)
    picture = task_matrices(
        f"{name}-matrices", [label(task) for task in tasks], losses, title="Squared error on each task"
    )
    trials_said = len({record.seed for record in records})
    caption = (
        "Task matrices: rows are what was learnt so far, columns what is tested; light is low. Mean over "
        f"{trials_said} trial{'s' * (trials_said > 1)}, scale {records[0].scale}."
    )
    final = ", ".join(f"{model} {np.mean(matrix[-1]):.4g}" for model, matrix in losses.items())
    return Figure(picture, f"Heat maps of {len(losses)} models. Mean of the last row: {final}.", caption)


def _films(experiment: str, name: str, records: Sequence[Record]) -> Iterator[Drawing]:
    """Of the first trial: a strip and a moving picture of each test that kept frames, and the P-TNCN's surprise."""
    first = min((record.seed for record in records), default=0)
    shown = {record.model: record for record in records if record.seed == first and record.model in SHOWN}
    if not shown:
        return
    some = next(iter(shown.values()))
    for test in [each for each in some.films if each != "objects/2"]:  # two objects are what table I shows
        part = f"{name}-{test.replace('/', '-')}" if len(some.films) > 1 else name
        what = f"{label(some.data)}{_of_test(test)}"
        if "ptncn" in shown and experiment in ("prediction", "zero-shot"):
            yield f"surprise on {what}", partial(_surprise, part, test, what, shown["ptncn"])
        yield f"film of {what}", partial(_moving, part, test, what, shown)
        yield f"filmstrip of {what}", partial(_strip, part, test, what, shown)


def _of_test(test: str) -> str:
    kind, slash, count = test.partition("/")
    if slash:
        return f", {count} object{'s' * (count != '1')}"
    return "" if kind == "test" else f", {kind}"


def _strip(name: str, test: str, what: str, shown: Mapping[str, Record]) -> Figure:
    rows = {who: frames[:, 0] for who, frames in _frames(test, shown).items()}
    picture = filmstrip(f"{name}-strip", rows)
    scale = next(iter(shown.values())).scale
    caption = f"{what}: {', then '.join(rows)}; the numbers are those of the frames. Scale {scale}."
    return Figure(picture, f"Filmstrip of {len(rows)} rows: {', '.join(rows)}.", caption, wide=True)


def _moving(name: str, test: str, what: str, shown: Mapping[str, Record]) -> Figure:
    frames = _frames(test, shown)
    count = min(2, *(each.shape[1] for each in frames.values()))
    columns = {who: [each[1:, number] for number in range(count)] for who, each in frames.items()}
    side = next(iter(frames.values())).shape[-1]
    scale = next(iter(shown.values())).scale
    picture = animation(f"{name}-film", columns, enlarge=max(1, 128 // side))
    caption = f"{what}, moving, from the second frame on: {', '.join(columns)}, for {count} sequences. Scale {scale}."
    return Figure(picture, f"Film of {count} sequences, in columns: {', '.join(columns)}.", caption)


def _frames(test: str, shown: Mapping[str, Record]) -> dict[str, NDArray[np.uint8]]:
    """{"truth": (T, N, height, width), then each model's predictions}"""
    films = {model: shown[model].films[test] for model in SHOWN if model in shown and test in shown[model].films}
    some = next(iter(films.values()))
    frames = {"truth": some["truth"], **{_short(model): each["prediction"] for model, each in films.items()}}
    return {who: _shaped(unpack(packed), some["observation_shape"]) for who, packed in frames.items()}


def _short(model: str) -> str:
    return label(model).partition(" (")[0]


def _shaped(frames: NDArray[Any], shape: Sequence[int]) -> NDArray[np.uint8]:
    return frames.reshape(*frames.shape[:2], *(int(size) for size in shape)).astype(np.uint8)


def _surprise(name: str, test: str, what: str, record: Record) -> Figure:
    """The first frame is left out: nothing could be expected of it."""
    surprise = unpack(record.films[test]["surprise"])[1:]
    times = range(2, len(surprise) + 2)
    picture = surprise_over_time(f"{name}-surprise", surprise, title=f"Surprise of each layer: {what}", times=times)
    caption = (
        f"Surprise of each layer of the P-TNCN over time, {what}: squared error units, mean over a batch, divided by "
        f"the layer’s mean over time. Scale {record.scale}."
    )
    means = ", ".join(f"layer {place} {mean:.4g}" for place, mean in enumerate(surprise.mean(0), 1))
    return Figure(picture, f"Curves of {surprise.shape[1]} layers. Means before division: {means}.", caption)


GROWTHS = (
    ("units", "seconds_a_step", "time_exponent_units", "Time of a step by units", "units", "seconds a step"),
    ("units", "bytes", "memory_exponent_units", "Memory by units", "units", "bytes"),
    ("length", "seconds", "time_exponent_length", "Time of a sequence by its length", "steps", "seconds"),
    ("length", "state_bytes", "memory_exponent_length", "Memory of the state by length", "steps", "bytes"),
    ("layers", "seconds", "time_exponent_layers", "Time of a sequence by layers", "layers", "seconds"),
)
DRAWN = ("ptncn", "lstm-bptt", "lstm-tbptt", "lstm-sab", "lstm-uoro", "lstm-kf-rtrl", "lstm-rtrl", "esn-ridge")
"""One cell of each rule: all of them would be a thicket."""


def _costs(stem: str, records: Sequence[Record]) -> Iterator[Drawing]:
    chosen = {record.model: record for record in records if record.model in DRAWN} or {
        record.model: record for record in records
    }
    for by, cost, exponent, title, size, unit in GROWTHS:
        if any(by in record.metrics for record in chosen.values()):
            yield title, partial(_growth, stem, chosen, by, cost, exponent, title, size, unit)


def _growth(
    stem: str, records: Mapping[str, Record], by: str, cost: str, exponent: str, title: str, size: str, unit: str
) -> Figure:
    having = {label(model): record.metrics for model, record in records.items() if by in record.metrics}
    costs = {model: {int(n): float(each[cost]) for n, each in found[by].items()} for model, found in having.items()}
    exponents = {model: float(found[exponent]) for model, found in having.items() if exponent in found}
    name = f"{stem}-{by}-{cost.replace('_', '-')}"
    picture = cost_growth(name, costs, exponents, title=title, size=size, cost=unit)
    caption = (
        f"{title}, both axes logarithmic. Lines are power laws, fitted to the larger half of the sizes; the legend has "
        f"their exponents. Scale {next(iter(records.values())).scale}."
    )
    told = ", ".join(f"{model} {round(value, 2) + 0:.2f}" for model, value in exponents.items())
    return Figure(picture, f"Curves of {len(costs)} models. Exponents: {told}.", caption)
