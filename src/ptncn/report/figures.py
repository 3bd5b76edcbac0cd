"""The figures of an experiment, drawn from its records as its page asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptncn.experiments.experiment import Experiment
from ptncn.records import Record, unpack
from ptncn.report.model import Figure
from ptncn.report.plots import Curve, cost_growth, error_curves, surprise_over_time, task_matrices
from ptncn.report.theme import data_label, row_label, row_style
from ptncn.report.video import animation, filmstrip

UNITS = {"prequential_se": "squared error", "prequential_bpc": "bits per character"}

Drawing = tuple[str, Callable[[], Figure]]
"""What a figure shows, for the message if it fails, and the function that draws it."""


def make_drawings(experiment: Experiment, stem: str, records: Sequence[Record]) -> Iterator[Drawing]:
    """Every figure of an experiment; the names of their files begin with `stem`."""
    for data in dict.fromkeys(record.data for record in records):
        group = [record for record in records if record.data == data]
        name = f"{stem}-{data.replace('+', '-').replace('/', '-')}"
        for figure in experiment.page.figures:
            yield from KINDS[figure.kind](experiment, name, group, **figure.options)


def curves(
    experiment: Experiment, name: str, records: Sequence[Record], *, what: str, logarithmic: bool = False
) -> Iterator[Drawing]:
    """Errors in the course of learning."""
    if any(record.curve for record in records):
        draw = partial(_curves, experiment, f"{name}-{what}", records, logarithmic=logarithmic)
        yield f"{what} curves of {records[0].data}", draw


def _curves(experiment: Experiment, name: str, records: Sequence[Record], *, logarithmic: bool) -> Figure:
    lines: list[Curve] = []
    changes: list[tuple[float, str]] = []
    for row in dict.fromkeys(record.model for record in records if record.curve):
        trials = [record.curve for record in records if record.model == row and record.curve]
        steps = trials[0]["steps"]
        same = [trial["faded"] for trial in trials if trial["steps"] == steps]
        mean = np.mean(np.array(same, float), axis=0).tolist()
        lines.append(Curve(row_label(experiment, row), steps, mean, row_style(experiment, row)))
        changes = changes or [(step, data_label(data)) for step, data in trials[0]["changes"]]
    if len({data for _, data in changes}) == 1:
        changes = []  # another epoch of the same data is no change
    longest = max((line.steps for line in lines), key=len)
    for record in records:
        if not record.curve and "prequential_se" in record.metrics:
            level, style = float(record.metrics["prequential_se"]), row_style(experiment, record.model)
            label = row_label(experiment, record.model)
            lines.append(Curve(label, [longest[0], longest[-1]], [level, level], style))
    metric = next(record.curve["metric"] for record in records if record.curve)
    error, data = UNITS.get(metric, metric), data_label(records[0].data)
    picture = error_curves(name, lines, title=data, error=error, changes=changes, logarithmic=logarithmic)
    caption = (
        f"{error[:1].upper()}{error[1:]} while learning, {data}: each step is tested before it is learnt, with an "
        f"exponentially fading mean{_over_seeds(records)}. Scale {records[0].scale}."
        f"{' Vertical lines mark changes of the data.' if changes else ''}"
    )
    last = ", ".join(f"{line.label} {line.values[-1]:.4g}" for line in lines)
    return Figure(picture, f"Curves of {len(lines)} learners. At the end: {last}.", caption)


def matrices(experiment: Experiment, name: str, records: Sequence[Record]) -> Iterator[Drawing]:
    """Task matrices."""
    yield f"task matrices of {records[0].data}", partial(_matrices, experiment, name, records)


def _matrices(experiment: Experiment, name: str, records: Sequence[Record]) -> Figure:
    tasks = [data_label(task) for task in records[0].metrics["matrix"]["tasks"]]
    losses: dict[str, Any] = {}
    for row in dict.fromkeys(record.model for record in records):
        trials = [record.metrics["matrix"]["losses"] for record in records if record.model == row]
        losses[row_label(experiment, row)] = np.mean(np.array(trials, float), axis=0)
    picture = task_matrices(f"{name}-matrices", tasks, losses, title="Squared error on each task")
    caption = (
        "Task matrices: rows are the tasks learnt so far, columns the task tested; light is low"
        f"{_over_seeds(records)}. Scale {records[0].scale}."
    )
    final = ", ".join(f"{label} {np.mean(matrix[-1]):.4g}" for label, matrix in losses.items())
    return Figure(picture, f"Heat maps of {len(losses)} learners. Mean of the last row: {final}.", caption)


def films(
    experiment: Experiment,
    name: str,
    records: Sequence[Record],
    *,
    rows: Sequence[str],
    surprise: str | None = None,
    skip: Sequence[str] = (),
) -> Iterator[Drawing]:
    """For the first seed and each phase with frames: an animation, a filmstrip, and the surprise of one row."""
    first = min(record.seed for record in records)
    shown = {record.model: record for record in records if record.seed == first and record.model in rows}
    if not shown:
        return
    shown = {row: shown[row] for row in rows if row in shown}
    some = next(iter(shown.values()))
    for phase in [each for each in some.films if each not in skip]:
        part = f"{name}-{phase.replace('/', '-')}" if len(some.films) > 1 else name
        what = f"{data_label(some.data)}{_phase_words(phase)}"
        if surprise in shown:
            yield f"surprise on {what}", partial(_surprise, experiment, part, phase, what, shown[surprise])
        yield f"animation of {what}", partial(_animation, experiment, part, phase, what, shown)
        yield f"filmstrip of {what}", partial(_strip, experiment, part, phase, what, shown)


def _phase_words(phase: str) -> str:
    kind, slash, count = phase.partition("/")
    if slash:
        return f", {count} object{'s' * (count != '1')}"
    return "" if kind == "test" else f", {kind}"


def _strip(experiment: Experiment, name: str, phase: str, what: str, shown: Mapping[str, Record]) -> Figure:
    rows = {label: frames[:, 0] for label, frames in _frames(experiment, phase, shown).items()}
    picture = filmstrip(f"{name}-strip", rows)
    caption = f"{what}: {', '.join(rows)}, with frame numbers. Scale {_scale(shown)}."
    return Figure(picture, f"Filmstrip of {len(rows)} rows: {', '.join(rows)}.", caption, wide=True)


def _animation(experiment: Experiment, name: str, phase: str, what: str, shown: Mapping[str, Record]) -> Figure:
    frames = _frames(experiment, phase, shown)
    count = min(2, *(each.shape[1] for each in frames.values()))
    columns = {label: [each[1:, number] for number in range(count)] for label, each in frames.items()}
    side = next(iter(frames.values())).shape[-1]
    picture = animation(f"{name}-film", columns, enlarge=max(1, 128 // side))
    caption = f"{what}, from the second frame on: {', '.join(columns)}, {count} sequences. Scale {_scale(shown)}."
    return Figure(picture, f"Animation of {count} sequences, in columns: {', '.join(columns)}.", caption)


def _frames(experiment: Experiment, phase: str, shown: Mapping[str, Record]) -> dict[str, NDArray[np.uint8]]:
    """{"truth": (T, N, height, width), then each row's predictions}"""
    kept = {row: record.films[phase] for row, record in shown.items() if phase in record.films}
    some = next(iter(kept.values()))
    short = {row: row_label(experiment, row).partition(" (")[0] for row in kept}
    packed = {"truth": some["truth"], **{short[row]: each["prediction"] for row, each in kept.items()}}
    return {label: _shaped(unpack(frames), some["observation_shape"]) for label, frames in packed.items()}


def _shaped(frames: NDArray[Any], shape: Sequence[int]) -> NDArray[np.uint8]:
    return frames.reshape(*frames.shape[:2], *(int(size) for size in shape)).astype(np.uint8)


def _surprise(experiment: Experiment, name: str, phase: str, what: str, record: Record) -> Figure:
    surprise = unpack(record.films[phase]["surprise"])[1:]  # the first frame cannot be predicted
    times = range(2, len(surprise) + 2)
    picture = surprise_over_time(f"{name}-surprise", surprise, title=f"Surprise of each layer: {what}", times=times)
    caption = (
        f"Surprise of each layer of the {row_label(experiment, record.model)} over time, {what}: squared error units, "
        f"mean over a batch, divided by the layer’s mean over time. Scale {record.scale}."
    )
    means = ", ".join(f"layer {place} {mean:.4g}" for place, mean in enumerate(surprise.mean(0), 1))
    return Figure(picture, f"Curves of {surprise.shape[1]} layers. Means before division: {means}.", caption)


Panel = tuple[str, str, str, str, str, str]
"""What varies, what is measured, the metric of its exponent, the title, and the labels of the axes."""


def growth(
    experiment: Experiment, name: str, records: Sequence[Record], *, rows: Sequence[str], panels: Sequence[Panel]
) -> Iterator[Drawing]:
    """Costs against sizes, with fitted power laws."""
    chosen = {record.model: record for record in records if record.model in rows} or {
        record.model: record for record in records
    }
    for panel in panels:
        if any(panel[0] in record.metrics for record in chosen.values()):
            yield panel[3], partial(_growth, experiment, name.removesuffix(f"-{records[0].data}"), chosen, panel)


def _growth(experiment: Experiment, stem: str, records: Mapping[str, Record], panel: Panel) -> Figure:
    by, cost, exponent, title, size, unit = panel
    having = {row_label(experiment, row): record.metrics for row, record in records.items() if by in record.metrics}
    costs = {label: {int(n): float(each[cost]) for n, each in found[by].items()} for label, found in having.items()}
    exponents = {label: float(found[exponent]) for label, found in having.items() if exponent in found}
    name = f"{stem}-{by}-{cost.replace('_', '-')}"
    picture = cost_growth(name, costs, exponents, title=title, size=size, cost=unit)
    caption = (
        f"{title}, on logarithmic axes. Lines are power laws fitted to the larger half of the sizes; the legend gives "
        f"their exponents. Scale {_scale(records)}."
    )
    listed = ", ".join(f"{label} {round(value, 2) + 0:.2f}" for label, value in exponents.items())
    return Figure(picture, f"Curves of {len(costs)} learners. Exponents: {listed}.", caption)


def _scale(records: Mapping[str, Record]) -> str:
    return next(iter(records.values())).scale


def _over_seeds(records: Sequence[Record]) -> str:
    count = len({record.seed for record in records})
    return f", mean over {count} seeds" if count > 1 else ""


KINDS: dict[str, Callable[..., Iterator[Drawing]]] = {
    "curves": curves,
    "matrices": matrices,
    "films": films,
    "growth": growth,
}
"""The drawing functions that an experiment's page may name."""
