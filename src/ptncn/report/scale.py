"""How large the runs were beside the paper's, and how each open choice was settled: read from the records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ptncn.records import Record
from ptncn.report.labels import label
from ptncn.report.model import Table
from ptncn.report.subjects import Subject

WORDS = {
    "canvas": "pixels along an edge of a video",
    "sequences": "sequences in an epoch",
    "epochs": "epochs",
    "valid": "validation sequences",
    "test": "test sequences",
    "batch_size": "sequences side by side",
    "decay": "last step size, as a share of the first",
    "layers": "layers of the P-TNCN",
    "units": "units in a layer of the P-TNCN",
    "gated_units": "units of LSTM, GRU, RHN",
    "plain_units": "units of RNN, ESN",
    "rank_one_units": "units under UORO and KF-RTRL",
    "exact_units": "units under exact RTRL",
    "steps": "steps",
}
"""Settings that readers ask for; of complexity and the stream, those that are not here go by their own names."""
HIDDEN = ("embedded", "seeds", "seed", "options", "chunk", "model", "data", "source", "tuned")

CHOICES: dict[int, tuple[str, tuple[str, ...]]] = {
    1: ("the sign of λ", ("sparsity_sign",)),
    2: ("what M, V and U are taught with", ("presynaptic",)),
    3: ("how E learns", ("error_rule", "temporal_sign", "error_lr_factor")),
    4: ("what teaches W above the first layer", ("prediction_error",)),
    5: ("what β multiplies", ("beta_scope", "beta", "gamma", "lam")),
    6: ("how updates are rescaled", ("rescale", "radius", "reduction")),
    7: ("the spread of initial weights", ("weight_std", "error_weight_std")),
    8: ("the Hebbian term", ("xi",)),
    9: ("φ of what hidden layers are expected to be", ("hidden_prediction",)),
    10: ("biases", ("biases",)),
    11: ("the first frame", ("first_frame",)),
    12: ("how CE and SE are counted", ()),
    13: ("correction steps", ("corrections",)),
    14: ("exact RTRL at 1,000 units", ()),
}
"""By its number in docs/choices.md: what the paper leaves open, and the options that settle it."""
FIXED = {
    12: "sums over pixels, means over frames and sequences, nats",
    14: "as many units as fit: see the scale",
}


def setting_of(record: Record) -> dict[str, Any]:
    """The values that say how large a run was; empty where the record has none."""
    inner: Any = record.config.get("training", record.config)
    setting: Any = inner.get("setting", inner) if isinstance(inner, Mapping) else {}
    return dict(setting) if isinstance(setting, Mapping) else {}


def scale_tables(subject: Subject, records: Sequence[Record]) -> list[Table]:
    """One for each group of runs that share a setting: here, and at the paper's scale."""
    groups: dict[tuple[tuple[str, str, str], ...], list[Record]] = {}
    for record in records:
        here, paper = setting_of(record), subject.paper_scale(record)
        names = [name for name in here if name not in HIDDEN and name in paper]
        rows = tuple((_words(name, paper[name]), _show(here[name]), _show(paper[name])) for name in names)
        groups.setdefault(rows, []).append(record)
    tables = []
    for rows, group in groups.items():
        on = ", ".join(dict.fromkeys(label(record.data) for record in group))
        caption = f"The scale `{group[0].scale}` beside the paper’s: {on}."
        if rows:
            tables.append(Table(caption, ("setting", "here", "at the paper’s scale"), rows))
    return tables


def scale_in_words(subject: Subject, record: Record) -> str:
    """How large the runs were, and the paper's, in one line.

    >>> from ptncn.report.subjects import SUBJECTS
    >>> setting = {"sequences": 4000, "epochs": 1, "layers": 3, "units": 500, "canvas": 64}
    >>> record = Record(experiment="prediction", model="ptncn", data="mnist", scale="laptop", seed=0,
    ...                 config={"setting": setting})
    >>> scale_in_words(SUBJECTS["prediction"], record)
    'laptop: 3 × 500 units, 4,000 sequences, 1 epoch (the paper’s scale: 3 × 1,000 units, 10,000 sequences, 10 epochs)'
    """
    here, paper = _sizes(setting_of(record)), _sizes(subject.paper_scale(record))
    if not here:
        return record.scale
    return f"{record.scale}: {here}" + (f" (the paper’s scale: {paper})" if here != paper else ", as in the paper")


def _sizes(setting: Mapping[str, Any]) -> str:
    said = []
    if isinstance(setting.get("units"), int):
        said.append(f"{setting.get('layers', 1)} × {setting['units']:,} units")
    for name in ("sequences", "epochs", "steps"):
        if isinstance(count := setting.get(name), int):
            said.append(f"{count:,} {name if count != 1 else name[:-1]}")
    if setting.get("canvas", 64) != 64:
        said.append(f"{setting['canvas']} × {setting['canvas']} pixels")
    return ", ".join(said)


def choices_table(subject: Subject, records: Sequence[Record]) -> Table:
    """How each choice that matters here was settled, by what the records of the P-TNCN say."""
    learners = [record.learner for record in records if "sparsity_sign" in record.learner]
    rows = []
    for number in sorted(subject.choices):
        what, options = CHOICES[number]
        values = [f"`{name}={_values(learners, name)}`" for name in options if _values(learners, name)]
        rows.append((str(number), what, FIXED.get(number) or ", ".join(values) or "not in these records"))
    caption = "Choices where the paper is silent or ambiguous; numbers and reasons: [docs/choices.md](../choices.md)."
    return Table(caption, ("#", "what is open", "here"), rows)


def _words(name: str, value: Any) -> str:
    """A grid of sizes goes by its own name."""
    own = name.replace("_", " ")
    return own if isinstance(value, list | tuple) else WORDS.get(name, own)


def _values(learners: Sequence[Mapping[str, Any]], name: str) -> str:
    found = dict.fromkeys(json.dumps(learner[name]).strip('"') for learner in learners if name in learner)
    return " or ".join(found).replace("true", "True").replace("false", "False")


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(_show(each) for each in value)
    return str(value)
