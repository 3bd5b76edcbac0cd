"""The figures of an experiment, drawn from its records; filmstrips and animations."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Canvas
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ptncn.experiments.experiment import Experiment
from ptncn.records import Record, unpack
from ptncn.report.model import INK, Figure, Picture, data_label, row_label, row_style, save, theme
from ptncn.report.plots import Curve, cost_growth, error_curves, surprise_over_time, task_matrices

Frames = NDArray[np.uint8]
"""(T, height, width)"""
GAP = 3
"""Pixels between frames."""
BACKGROUND, LABEL, FONT_SIZE = 68, 255, 13
"""For animations: a grey that contrasts with white pages and black frames; colour and size of labels."""


def filmstrip(
    name: str, rows: Mapping[str, Frames], *, columns: int = 10, times: Sequence[str] | None = None
) -> Picture:
    """Frames side by side, one row per label, as in the paper's figures: the truth, then the predictions.

    The first frame is left out, since it cannot be predicted. With a label per frame in `times`, all are shown.
    """
    count, height, width = check_frames(rows)
    first = min(1, count - 1) if times is None else 0
    shown = min(columns, count - first) if times is None else count
    moments = np.unique(np.linspace(first, count - 1, shown).round().astype(int))
    names = [str(moment + 1) for moment in moments] if times is None else list(times)
    sheet = np.zeros((len(rows) * (height + GAP) - GAP, len(moments) * (width + GAP) - GAP, 4), np.uint8)
    for row, frames in enumerate(rows.values()):
        for column, moment in enumerate(moments):
            y, x = row * (height + GAP), column * (width + GAP)
            sheet[y : y + height, x : x + width, :3] = frames[moment][..., None]
            sheet[y : y + height, x : x + width, 3] = 255  # the gaps stay transparent
    left, top, across = 0.95, 0.3, 7.6
    down = across * sheet.shape[0] / sheet.shape[1]
    with theme():
        figure = Canvas(figsize=(left + across + 0.05, top + down + 0.05))
        size = figure.get_size_inches()
        axes = figure.add_axes((left / size[0], 0.05 / size[1], across / size[0], down / size[1]))
        axes.imshow(sheet, interpolation="none", aspect="auto")
        axes.grid(visible=False)
        for spine in axes.spines.values():
            spine.set_visible(False)
        centres = np.arange(len(moments)) * (width + GAP) + width / 2
        axes.set_xticks(centres, names, size=9)
        axes.set_yticks(np.arange(len(rows)) * (height + GAP) + height / 2, list(rows), size=9, color=INK)
        axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
        return save(figure, name, dpi=110, grey=True)


def animation(name: str, rows: Mapping[str, list[Frames]], *, enlarge: int = 2, milliseconds: int = 200) -> Picture:
    """A GIF with one column per label and one row per sequence."""
    flat = {f"{label} {n}": each for label, sequences in rows.items() for n, each in enumerate(sequences)}
    times, height, width = check_frames(flat)
    stills = [_still(rows, moment, height * enlarge, width * enlarge) for moment in range(times)]
    gif, png = io.BytesIO(), io.BytesIO()
    stills[0].save(gif, "GIF", save_all=True, append_images=stills[1:], duration=milliseconds, loop=0, optimize=True)
    stills[times // 2].save(png, "PNG", optimize=True)
    return Picture(name, *stills[0].size, png.getvalue(), gif=gif.getvalue())


def _still(rows: Mapping[str, list[Frames]], moment: int, height: int, width: int) -> Image.Image:
    """One frame of the animation, in 16 greys for a small file."""
    count = max(len(sequences) for sequences in rows.values())
    top = FONT_SIZE + 9
    sheet = Image.new("L", (len(rows) * (width + GAP) - GAP, top + count * (height + GAP) - GAP), BACKGROUND)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(FONT_SIZE)
    for column, (label, sequences) in enumerate(rows.items()):
        x = column * (width + GAP)
        pen.text((x + width // 2, 3), label, LABEL, font, anchor="ma")
        for row, frames in enumerate(sequences):
            still = Image.fromarray(frames[moment]).resize((width, height), Image.Resampling.NEAREST)
            sheet.paste(still, (x, top + row * (height + GAP)))
    levels = (np.asarray(sheet, np.float32) / 17).round() * 17
    return Image.fromarray(levels.astype(np.uint8))


def check_frames(rows: Mapping[str, Frames]) -> tuple[int, int, int]:
    """The shape that all rows share."""
    shapes = {label: frames.shape for label, frames in rows.items()}
    if not shapes or len(set(shapes.values())) > 1 or len(next(iter(shapes.values()))) != 3:
        raise ValueError(f"frames: expected equal shapes (times, height, width), got {shapes or 'none'}")
    times, height, width = next(iter(shapes.values()))
    if not times * height * width:
        raise ValueError(f"frames: expected at least one pixel, got shape {(times, height, width)}")
    return times, height, width


UNITS = {"prequential_se": "squared error", "prequential_bpc": "bits per character"}

Drawing = tuple[str, Callable[[], Figure]]
"""A description of a figure, for error messages, and the function that draws it."""


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
    """Errors during learning."""
    if any(record.curve for record in records):
        draw = partial(_curves, experiment, f"{name}-{what}", records, logarithmic=logarithmic)
        yield f"{what} curves of {records[0].data}", draw


def _curves(experiment: Experiment, name: str, records: Sequence[Record], *, logarithmic: bool) -> Figure:
    lines: list[Curve] = []
    changes: list[tuple[float, str]] = []
    for row in dict.fromkeys(record.row for record in records if record.curve):
        trials = [record.curve for record in records if record.row == row and record.curve]
        steps = trials[0]["steps"]
        same = [trial["faded"] for trial in trials if trial["steps"] == steps]
        mean = np.mean(np.array(same, float), axis=0).tolist()
        lines.append(Curve(row_label(experiment, row), steps, mean, row_style(experiment, row)))
        changes = changes or [(step, data_label(data)) for step, data in trials[0]["changes"]]
    if len({data for _, data in changes}) == 1:
        changes = []  # another epoch of the same data is not a change
    longest = max((line.steps for line in lines), key=len)
    for record in records:
        if not record.curve and "prequential_se" in record.metrics:
            level, style = float(record.metrics["prequential_se"]), row_style(experiment, record.row)
            label = row_label(experiment, record.row)
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
    for row in dict.fromkeys(record.row for record in records):
        trials = [record.metrics["matrix"]["losses"] for record in records if record.row == row]
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
    shown = {record.row: record for record in records if record.seed == first and record.row in rows}
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
    surprise = unpack(record.films[phase]["surprise"])[1:] / 2  # stored as ‖e‖²; the first frame cannot be predicted
    times = range(2, len(surprise) + 2)
    picture = surprise_over_time(f"{name}-surprise", surprise, title=f"Surprise of each layer: {what}", times=times)
    caption = (
        f"Surprise of each layer of the {row_label(experiment, record.row)} over time, {what}: half the squared "
        f"norm of its error units, mean over a batch, divided by the mean over time. Scale {record.scale}."
    )
    means = ", ".join(f"layer {place} {mean:.4g}" for place, mean in enumerate(surprise.mean(0), 1))
    return Figure(picture, f"Curves of {surprise.shape[1]} layers. Means before division: {means}.", caption)


Panel = tuple[str, str, str, str, str, str]
"""What varies, what is measured, the metric of its exponent, the title, and the labels of the axes."""


def growth(
    experiment: Experiment, name: str, records: Sequence[Record], *, rows: Sequence[str], panels: Sequence[Panel]
) -> Iterator[Drawing]:
    """Costs against sizes, with fitted power laws."""
    chosen = {record.row: record for record in records if record.row in rows} or {
        record.row: record for record in records
    }
    for panel in panels:
        if any(panel[0] in record.metrics for record in chosen.values()):
            yield panel[3], partial(_growth, experiment, name.removesuffix(f"-{records[0].data}"), chosen, panel)


def _growth(experiment: Experiment, stem: str, records: Mapping[str, Record], panel: Panel) -> Figure:
    varied, cost, exponent, title, size, unit = panel
    metrics = {
        row_label(experiment, row): record.metrics for row, record in records.items() if varied in record.metrics
    }
    costs = {label: {int(n): float(each[cost]) for n, each in own[varied].items()} for label, own in metrics.items()}
    exponents = {label: float(own[exponent]) for label, own in metrics.items() if exponent in own}
    name = f"{stem}-{varied}-{cost.replace('_', '-')}"
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
