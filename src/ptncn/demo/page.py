"""The page of the demo, made from its record alone: what you see, what happened, what it means, what to try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptncn.demo import words
from ptncn.demo.contestants import LSTM, NAMES, PTNCN
from ptncn.report.page import make_page
from ptncn.report.parts import Commands, Figure, Part, Picture, Points, Section, Table, Text

Record = Mapping[str, Any]
Drawn = Mapping[str, Picture]

COMMANDS = (
    "ptncn demo --seed 1                                   # another life",
    "ptncn data show letters --out letters.gif             # look at a world, at full size",
    "ptncn stream your.csv --out told.csv                  # your own stream: predictions, surprise, alarms",
    "ptncn learners                                        # the LSTM is one of many it can be compared with",
    "ptncn reproduce --help                                # the paper's tables and figures",
)


def page(record: Record, drawn: Drawn) -> str:
    """HTML, with everything inside."""
    frames = len(record["life"]) * record["scenes"] * record["scene"]
    lead = (
        f"A {NAMES[PTNCN]} and an {NAMES[LSTM]} of equal size live through one stream of {frames:,} frames: "
        f"{', then '.join(words.part_names(record))}. Each frame comes once. They say what they expect, "
        "then they see it, and learn. Nobody tells them when the world changes."
    )
    sections = [
        Section("What you are seeing", _seeing(record, drawn)),
        Section("What happened", _happened(record, drawn)),
        Section("When the world changes", _changes(record, drawn)),
        Section("What is kept of each world", _kept(record, drawn)),
        Section("What it means", [Points(_meaning(record))]),
        Section("What to try next", [Commands(COMMANDS)]),
        Section("How it was done", [Points(_details(record))]),
    ]
    footer = f"Made by `{record['command']}`, {record['date']}."
    return make_page("Two learners, one life", lead, sections, footer=footer)


def _seeing(record: Record, drawn: Drawn) -> list[Part]:
    film = Figure(
        drawn["film"],
        f"Film in three panels: what came, what the {NAMES[PTNCN]} expected, what the {NAMES[LSTM]} expected; a bar "
        "below each for its error",
        "The life in a few seconds: birth, the frames before and after each change, and the end. The bar on top is the "
        "life. Those below show how wrong each expectation is: short is good.",
    )
    key = [
        "**Left:** what really came: two objects that bounce off the edges.",
        "**Middle and right:** what each learner expected, one frame ahead. Bright and in the right place is good; a "
        "blur means that it is not sure; grey noise, that it knows nothing yet.",
        f"**The {NAMES[PTNCN]}** is the network of this package: every layer predicts, is corrected by what it got "
        f"wrong, and learns at once. **The {NAMES[LSTM]}** is the usual network for sequences: it stores some frames "
        "and learns by running back through them.",
    ]
    return [film, Text(words.headline(record)), Points(key)]


def _happened(record: Record, drawn: Drawn) -> list[Part]:
    told = [words.learning(record), words.changing(record), words.returning(record), words.cost(record)]
    return [
        Figure(
            drawn["curves"],
            f"Curves of the errors of both learners over the life. {told[0]}",
            "How wrong the expectations were, as a share of simply repeating the last frame: below 100, a learner "
            "knows something about motion. Each point is the mean of neighbouring scenes.",
        ),
        Figure(
            drawn["surprise"],
            f"Curves of the surprise of the {NAMES[PTNCN]}'s layers over the life",
            f"Inside the {NAMES[PTNCN]}: how surprised layer 1 is by the pixels, and layer 2 by layer 1, as a share of "
            "each one's mean. A layer that is surprised corrects its state, and its weights learn.",
        ),
        Points(told),
        error_table(record),
    ]


def _changes(record: Record, drawn: Drawn) -> list[Part]:
    names = words.part_names(record)
    return [
        Figure(
            drawn[f"change-{part}"],
            f"Filmstrip across the change from {names[part - 1]} to {names[part]}: what came, and what was expected",
            f"From {names[part - 1]} to {names[part]}. Frame 1 is the first of the new world; nobody can foresee it.",
            wide=True,
        )
        for part in range(1, len(names))
    ]


def _kept(record: Record, drawn: Drawn) -> list[Part]:
    matrices = Figure(
        drawn["looks"],
        f"Task matrices of both learners. {words.forgetting(record)}",
        f"After each part, learning is switched off and both look at {record['looked_at']} unseen scenes of each "
        "world. Squared error a frame: smaller and lighter is better. Read a column downwards to see a world being "
        "learnt, kept or forgotten.",
    )
    return [matrices, Points([words.forgetting(record), words.frozen(record), words.correcting(record)])]


def _meaning(record: Record) -> list[str]:
    """What may be concluded, and what may not."""
    return [
        "A network can learn a stream as it comes, one frame at a time, with nothing stored and nothing unrolled: each "
        "layer corrects itself by what it got wrong, and its weights learn from that alone.",
        words.where_the_lstm_won(record),
        *filter(None, [words.pace(record)]),
        "This is one life of two small learners in easy worlds. Another seed gives other numbers; the paper's tables, "
        "with several seeds and larger networks, are what `ptncn reproduce` is for.",
    ]


def _details(record: Record) -> list[str]:
    """What one needs to know to judge it."""
    ours, theirs = (record["learners"][name] for name in (PTNCN, LSTM))
    mine, its = ours["options"], theirs["options"]
    side, versions = record["canvas"], record["versions"]
    return [
        f"**The stream**: a canvas of {side}×{side} pixels, two objects, a new scene every {record['scene']} frames, "
        f"{record['scenes']:,} scenes a part, one stream (batch 1). States run on: nobody is told of scenes or parts. "
        "The first frame of a scene is not scored, since nobody can foresee it.",
        f"**The {NAMES[PTNCN]}**: layers of {' and '.join(map(str, mine['hidden_sizes']))} units, {ours['weights']:,} "
        f"weights, {mine['optimizer']} with step size {mine['lr']:g}, an update a frame.",
        f"**The {NAMES[LSTM]}**: {its['hidden_size']} units, {theirs['weights']:,} weights, truncated back-propagation "
        f"through time over {its['window']} frames, an update every {its['stride']}, {its['optimizer']} with step size "
        f"{its['lr']:g}.",
        "Optimiser and step size of both, and how many frames the LSTM unrolls, were chosen in the life of another "
        "seed, by `python benchmarks/demo_options.py`: the best of each that two minutes allow.",
        "**Errors** are squared, summed over the pixels of a frame, mean over frames. Times are of one processor core. "
        f"ptncn {versions['ptncn']}, torch {versions['torch']}, Python {versions['python']}.",
    ]


def error_table(record: Record) -> Table:
    """Errors in every part, in its first and its last frames; sizes and times."""
    rows = []
    for name, part in zip(words.part_names(record), record["parts"], strict=True):
        spans = {"all": name, "first": f"– first {record['first']:,}", "last": f"– last {record['last']:,}"}
        for span, told in spans.items():
            rows.append([told, *(f"{part[span][each]:.1f}" for each in (PTNCN, LSTM, "copy"))])
    both = [record["learners"][name] for name in (PTNCN, LSTM)]
    rows.append(["weights", *(f"{each['weights']:,}" for each in both), "–"])
    rows.append(["ms a frame", *(f"{each['milliseconds']:.2f}" for each in both), "–"])
    frames = record["scenes"] * record["scene"]
    return Table(
        caption=f"Squared error a frame, in parts of {frames:,} frames, each predicted before it was learnt from",
        headings=["", NAMES[PTNCN], NAMES[LSTM], NAMES["copy"]],
        rows=rows,
        command=record["command"],
    )
