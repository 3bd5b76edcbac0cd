"""The demo's page, made from its record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptncn.demo import narrative
from ptncn.demo.simulate import LSTM, NAMES, PTNCN
from ptncn.report.model import Commands, Figure, Part, Picture, Points, Section, Table, Text
from ptncn.report.render import make_page

Record = Mapping[str, Any]
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
    frames = len(record["life"]) * record["scenes"] * record["scene"]
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
    return [animation, Text(narrative.headline(record)), Points(key)]


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
        pictures["looks"],
        f"Task matrices of both learners. {narrative.forgetting(record)}",
        f"After each part, both learners are evaluated with frozen weights on {record['looked_at']} unseen scenes of "
        "each dataset. Squared error per frame: lower and lighter is better. Read a column downwards to see a dataset "
        "being learnt, kept or forgotten.",
    )
    return [matrices, Points([narrative.forgetting(record), narrative.frozen(record), narrative.correcting(record)])]


def _conclusions(record: Record) -> list[str]:
    """What may be concluded, and what may not."""
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
        for span, words in spans.items():
            rows.append([words, *(f"{part[span][each]:.1f}" for each in (PTNCN, LSTM, "copy"))])
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
