"""The demo's page and its figures, made from its record."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor, ImageDraw, ImageFont

from ptncn.demo import narrative
from ptncn.demo.narrative import part_names
from ptncn.demo.simulate import LSTM, NAMES, PTNCN
from ptncn.records import unpack
from ptncn.report.figures import filmstrip
from ptncn.report.model import (
    ORANGE,
    SKY,
    Commands,
    Figure,
    Paragraph,
    Part,
    Picture,
    Points,
    Section,
    Table,
    line_style,
)
from ptncn.report.plots import Curve, error_curves, surprise_over_time, task_matrices
from ptncn.report.render import make_page

Record = Mapping[str, Any]
AROUND = 5
"""Frames on either side of a change in a filmstrip."""


def make_pictures(record: Record) -> dict[str, Picture]:
    """The animation and all plots, by name."""
    strips = [change_strip(record, part) for part in range(1, len(record["stream"]))]
    pictures = (animate(record), error_plot(record), surprise_plot(record), *strips, evaluation_plot(record))
    return {picture.name: picture for picture in pictures}


def error_plot(record: Record) -> Picture:
    """Errors relative to repeating the last frame, so that easy and hard scenes count alike."""
    curve = record["curve"]
    copy = np.array(curve["copy"])
    shares = {name: (100 * np.array(curve[name]) / copy).tolist() for name in (PTNCN, LSTM, "copy")}
    return error_curves(
        "curves",
        [Curve(NAMES[name], curve["frames"], values, line_style(name)) for name, values in shares.items()],
        title="Error while learning",
        error="% of repeating the last frame",
        steps="frame",
        changes=_change_marks(record),
    )


def surprise_plot(record: Record) -> Picture:
    """Surprise of each layer of the P-TNCN."""
    return surprise_over_time(
        "surprise",
        np.array(record["surprise"]).T,
        title=f"Surprise of the {NAMES[PTNCN]}'s layers",
        times=record["curve"]["frames"],
        changes=_change_marks(record),
    )


def evaluation_plot(record: Record) -> Picture:
    """Errors of frozen weights on unseen scenes, as heat maps."""
    return task_matrices(
        "evaluations",
        record["datasets"],
        {NAMES[name]: record["evaluations"][name] for name in (PTNCN, LSTM)},
        title="Unseen scenes, frozen weights: squared error",
        learnt=part_names(record),
    )


def change_strip(record: Record, part: int) -> Picture:
    """The last frames before a part and its first frames."""
    scenes, side = record["films"]["scenes"], record["canvas"]
    before, after = scenes.index([part - 1, record["scenes"] - 1]), scenes.index([part, 0])
    rows = {}
    for name, label in (("truth", "truth"), (PTNCN, NAMES[PTNCN]), (LSTM, NAMES[LSTM])):
        frames = unpack(record["films"][name])
        both = np.concatenate([frames[before, -AROUND:], frames[after, :AROUND]])
        rows[label] = both.reshape(-1, side, side)
    times = [*(f"−{n}" for n in range(AROUND, 0, -1)), *(str(n) for n in range(1, AROUND + 1))]
    return filmstrip(f"change-{part}", rows, times=times)


def _change_marks(record: Record) -> list[tuple[float, str]]:
    """The first frame and the name of each part."""
    frames = record["scenes"] * record["scene"]
    return [(part * frames, name) for part, name in enumerate(part_names(record))]


Frames = NDArray[np.uint8]
"""(T, height, width)"""
BACKGROUND, LIGHT, DIM = "#171717", "#e8e8e8", "#a2a2a2"
COLOURS = {"truth": DIM, PTNCN: SKY, LSTM: ORANGE}
"""The colours of the plots, lighter for the dark background."""
LABELS = {"truth": "truth", PTNCN: f"{NAMES[PTNCN]} predicts", LSTM: f"{NAMES[LSTM]} predicts"}
SIDE, GAP, TOP, BOTTOM = 160, 10, 64, 40
MILLISECONDS = 140
LONG, BEFORE = 13, 6
"""Frames shown of a scene, and of the scene before a change."""


@dataclass(frozen=True)
class Shot:
    """Some frames of one scene."""

    heading: str
    place: float
    """Position in the stream, from 0 to 1."""
    rows: Mapping[str, Frames]
    """By learner, and "truth"."""


def shots(record: Mapping[str, Any]) -> list[Shot]:
    """The shots of the animation."""
    side, parts, scenes = record["canvas"], record["stream"], record["films"]["scenes"]
    films = {name: unpack(record["films"][name]) for name in LABELS}
    frames = record["scenes"] * record["scene"]

    def shot(part: int, scene: int, span: slice, heading: str) -> Shot:
        number = scenes.index([part, scene])
        rows = {name: each[number].reshape(-1, side, side)[span] for name, each in films.items()}
        return Shot(heading, (part + scene / record["scenes"]) / len(parts), rows)

    last = record["scenes"] - 1
    chosen = [shot(0, 0, slice(0, LONG), f"{parts[0]}: the first frames")]
    for part, dataset in enumerate(parts[1:], start=1):
        again = " again" if dataset in parts[:part] else ", new"
        chosen.append(shot(part - 1, last, slice(-BEFORE, None), f"{parts[part - 1]}, after {frames:,} frames"))
        chosen.append(shot(part, 0, slice(0, LONG), f"the stream changes: {dataset}{again}"))
    chosen.append(shot(len(parts) - 1, last, slice(0, LONG), f"{parts[-1]}, at the end"))
    return chosen


def animate(record: Mapping[str, Any]) -> Picture:
    """A GIF of a few seconds; its still shows the first change."""
    chosen = shots(record)
    stills = [_still(shot, moment, record["stream"]) for shot in chosen for moment in range(len(shot.rows["truth"]))]
    gif, png = io.BytesIO(), io.BytesIO()
    stills[0].save(gif, "GIF", save_all=True, append_images=stills[1:], duration=MILLISECONDS, loop=0)
    stills[sum(len(shot.rows["truth"]) for shot in chosen[:2]) + LONG - 1].save(png, "PNG", optimize=True)
    return Picture("film", *stills[0].size, png.getvalue(), gif=gif.getvalue())


def frame_errors(rows: Mapping[str, Frames], name: str) -> list[float]:
    """Squared error of each frame; for "truth" the error of repeating the last frame, 0 for the first."""
    truth = rows["truth"] / 255
    predictions = np.concatenate([truth[:1], truth[:-1]]) if name == "truth" else rows[name] / 255
    errors: list[float] = np.square(predictions - truth).sum((1, 2)).tolist()
    return errors


def _still(shot: Shot, moment: int, parts: Sequence[str]) -> Image.Image:
    width = len(shot.rows) * (SIDE + GAP) + GAP
    sheet = Image.new("RGB", (width, TOP + SIDE + BOTTOM), BACKGROUND)
    pen, small, large = ImageDraw.Draw(sheet), ImageFont.load_default(14), ImageFont.load_default(18)
    _timeline(pen, shot.place, parts, width)
    pen.text((width // 2, 31), shot.heading, LIGHT, large, anchor="mm")
    for column, (name, frames) in enumerate(shot.rows.items()):
        x, colour = GAP + column * (SIDE + GAP), COLOURS[name]
        pen.text((x + SIDE // 2, TOP - 11), LABELS[name], LIGHT if name == "truth" else colour, small, anchor="mm")
        picture = Image.fromarray(frames[moment]).resize((SIDE, SIDE), Image.Resampling.NEAREST)
        sheet.paste(picture, (x, TOP))
        pen.rectangle((x - 1, TOP - 1, x + SIDE, TOP + SIDE), outline=colour)
        error = frame_errors(shot.rows, name)[moment]
        if name == "truth" and moment == 0:
            continue  # there is no last frame to repeat
        pen.rectangle((x, TOP + SIDE + 8, x + min(SIDE, round(error / 80 * SIDE)), TOP + SIDE + 14), fill=colour)
        label = "last frame:" if name == "truth" else "error"
        pen.text((x, TOP + SIDE + 27), f"{label} {error:.0f}", colour, small, anchor="lm")
    return sheet.quantize(palette=_palette(), dither=Image.Dither.NONE)


def _timeline(pen: ImageDraw.ImageDraw, place: float, parts: Sequence[str], width: int) -> None:
    """The whole stream along the top, with the part that has passed in a light colour."""
    length = (width - GAP) / len(parts)
    for part in range(len(parts)):
        left, right = GAP + part * length, part * length + length
        pen.rectangle((left, 8, right, 11), fill="#444444")
        passed = min(1.0, max(0.0, place * len(parts) - part))
        if passed > 0:
            pen.rectangle((left, 8, left + passed * (right - left), 11), fill=LIGHT)


def _palette() -> Image.Image:
    """12 greys, for a small file, and the two colours in two shades."""
    colours = [(round(level * 255 / 11),) * 3 for level in range(12)]
    for colour in (SKY, ORANGE):
        full = ImageColor.getrgb(colour)[:3]
        colours += [full, tuple((part + 17) // 2 for part in full)]  # type: ignore[list-item]
    holder = Image.new("P", (1, 1))
    holder.putpalette([part for colour in colours for part in colour])
    return holder


Pictures = Mapping[str, Picture]

COMMANDS = (
    "ptncn demo --seed 1                                   # another stream",
    "ptncn data show letters --out letters.gif             # one dataset at full size",
    "ptncn stream your.csv --out results.csv               # your own stream: predictions, surprise, alarms",
    "ptncn learners                                        # all learners that you can compare",
    "ptncn reproduce --help                                # the paper's tables and figures",
)


def demo_page(record: Record, pictures: Pictures) -> str:
    """HTML with everything embedded."""
    frames = len(record["stream"]) * record["scenes"] * record["scene"]
    lead = (
        f"A {NAMES[PTNCN]} and an {NAMES[LSTM]} of equal size learn one stream of {frames:,} frames: "
        f"{', then '.join(narrative.part_names(record))}. They see each frame once: predict it, see it, learn from it. "
        "They get no signal when the stream changes."
    )
    sections = [
        Section("What you see", _introduction(record, pictures)),
        Section("What happened", _results(record, pictures)),
        Section("When the stream changes", _changes(record, pictures)),
        Section("What the learners remember", _evaluations(record, pictures)),
        Section("What it means", [Points(_conclusions(record))]),
        Section("What to try next", [Commands(COMMANDS)]),
        Section("Details", [Points(_details(record))]),
    ]
    footer = f"Made by `{record['command']}` on {record['date']}."
    return make_page("Two learners, one stream", lead, sections, footer=footer)


def _introduction(record: Record, pictures: Pictures) -> list[Part]:
    animation = Figure(
        pictures["film"],
        f"Animation in three panels: the true frames, the predictions of the {NAMES[PTNCN]} and those of the "
        f"{NAMES[LSTM]}, with a bar for the error below each",
        "The stream in a few seconds: the first frames, the frames around each change, and the end. The line at the "
        "top shows the position in the stream. The bars at the bottom show the errors: shorter is better.",
    )
    key = [
        "**Left:** the true frames, two objects that bounce off the edges.",
        "**Middle and right:** what each learner predicted one frame ahead. Sharp and in the right place is good, a "
        "blur means uncertainty, grey noise means that nothing has been learnt yet.",
        f"**The {NAMES[PTNCN]}** is this package's network: each layer predicts, corrects its state by its prediction "
        f"error, and learns at once. **The {NAMES[LSTM]}** is the usual recurrent network: it stores recent frames and "
        "learns by backpropagation through them.",
    ]
    return [animation, Paragraph(narrative.headline(record)), Points(key)]


def _results(record: Record, pictures: Pictures) -> list[Part]:
    learning = narrative.learning(record)
    return [
        Figure(
            pictures["curves"],
            f"Errors of both learners over the stream. {learning}",
            "Prediction error relative to repeating the last frame: below 100 %, a learner knows something about the "
            "motion. Each point is a mean over neighbouring scenes.",
        ),
        Figure(
            pictures["surprise"],
            f"Surprise of the {NAMES[PTNCN]}'s layers over the stream",
            f"Inside the {NAMES[PTNCN]}: how much the pixels surprise layer 1, and layer 1 surprises layer 2, relative "
            "to the mean of each. A surprised layer corrects its state, and its weights learn.",
        ),
        Points([learning, narrative.changing(record), narrative.returning(record), narrative.cost(record)]),
        error_table(record),
    ]


def _changes(record: Record, pictures: Pictures) -> list[Part]:
    names = narrative.part_names(record)
    return [
        Figure(
            pictures[f"change-{part}"],
            f"Filmstrip of the change from {names[part - 1]} to {names[part]}: truth and predictions",
            f"From {names[part - 1]} to {names[part]}. Frame 1 is the first after the change and cannot be predicted.",
            wide=True,
        )
        for part in range(1, len(names))
    ]


def _evaluations(record: Record, pictures: Pictures) -> list[Part]:
    matrices = Figure(
        pictures["evaluations"],
        f"Task matrices of both learners. {narrative.forgetting(record)}",
        f"After each part, both learners are evaluated with frozen weights on {record['test_scenes']} unseen scenes of "
        "each dataset. Squared error per frame: lower and lighter is better. Read a column downwards to see a dataset "
        "being learnt, kept or forgotten.",
    )
    return [matrices, Points([narrative.forgetting(record), narrative.frozen(record), narrative.correcting(record)])]


def _conclusions(record: Record) -> list[str]:
    """What the run shows, and what it does not."""
    return [
        "A network can learn a stream as it arrives, one frame at a time, without storing or unrolling anything: each "
        "layer corrects itself by its own prediction error, and its weights learn from that alone.",
        narrative.lstm_wins(record),
        *filter(None, [narrative.online_lead(record)]),
        "This is one run of two small learners on easy data, and another seed gives other numbers. `ptncn reproduce` "
        "runs the paper's experiments, with larger networks and several seeds.",
    ]


def _details(record: Record) -> list[str]:
    """How the demo was run."""
    ptncn, lstm = (record["learners"][name] for name in (PTNCN, LSTM))
    options, lstm_options = ptncn["options"], lstm["options"]
    side, versions = record["canvas"], record["versions"]
    return [
        f"**Stream**: {side} × {side} pixels, two objects, a new scene every {record['scene']} frames, "
        f"{record['scenes']:,} scenes per part, one stream (batch 1). States are never reset. The first frame of each "
        "scene is not scored, because it cannot be predicted.",
        f"**{NAMES[PTNCN]}**: layers of {' and '.join(map(str, options['hidden_sizes']))} units, {ptncn['weights']:,} "
        f"weights, {options['optimizer']} with step size {options['lr']:g}, one update per frame.",
        f"**{NAMES[LSTM]}**: {lstm_options['hidden_size']} units, {lstm['weights']:,} weights, truncated "
        f"backpropagation through {lstm_options['window']} frames, one update every {lstm_options['stride']} frames, "
        f"{lstm_options['optimizer']} with step size {lstm_options['lr']:g}.",
        "Optimisers, step sizes and the LSTM's window were tuned on another seed with `python "
        "benchmarks/demo_options.py`; each learner has the best setting that fits into two minutes.",
        "**Errors** are squared, summed over the pixels of a frame and averaged over frames. Times are of one "
        f"processor core. ptncn {versions['ptncn']}, torch {versions['torch']}, Python {versions['python']}.",
    ]


def error_table(record: Record) -> Table:
    """Errors in every part, in its first and its last frames; sizes and times."""
    rows = []
    for name, part in zip(narrative.part_names(record), record["parts"], strict=True):
        spans = {"all": name, "first": f"– first {record['first']:,}", "last": f"– last {record['last']:,}"}
        for span, label in spans.items():
            rows.append([label, *(f"{part[span][each]:.1f}" for each in (PTNCN, LSTM, "copy"))])
    both = [record["learners"][name] for name in (PTNCN, LSTM)]
    rows.append(["weights", *(f"{each['weights']:,}" for each in both), "–"])
    rows.append(["ms per frame", *(f"{each['milliseconds']:.2f}" for each in both), "–"])
    frames = record["scenes"] * record["scene"]
    return Table(
        caption=f"Squared error per frame, in parts of {frames:,} frames, each predicted before it is learnt from",
        headings=["", NAMES[PTNCN], NAMES[LSTM], NAMES["copy"]],
        rows=rows,
        command=record["command"],
    )
