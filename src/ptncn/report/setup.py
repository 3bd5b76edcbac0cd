"""Tables on how runs were set up, from their records: open choices, size next to the paper's, learners and options."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ptncn.experiments.config import LABELS
from ptncn.experiments.experiment import Experiment
from ptncn.learners.registry import LEARNERS
from ptncn.report.assessment import run_config
from ptncn.report.labels import data_label, row_label
from ptncn.report.model import Table
from ptncn.report.sources import Source

HIDDEN = ("embedded", "seeds", "seed", "options", "chunk", "model", "data", "source", "tuned")


def choices_table(experiment: Experiment, sources: Sequence[Source]) -> Table:
    """How the choices that matter here were made, from the options in the records."""
    learners = [source.record.learner for source in sources]
    known = {**experiment.page.own_choices}
    for entry in LEARNERS.values():
        known |= entry.choices
    rows = []
    for choice in sorted(experiment.page.choices):
        values = [f"`{name}={found}`" for name in known[choice].options if (found := _values(learners, name))]
        answer = known[choice].answer or ", ".join(values) or "not in these records"
        rows.append((str(choice), known[choice].about, answer))
    caption = "Choices where the paper is silent or ambiguous; numbers and reasons: [docs/choices.md](../choices.md)."
    return Table(caption, ("#", "choice", "here"), rows)


def _values(learners: Sequence[Mapping[str, Any]], name: str) -> str:
    found = dict.fromkeys(json.dumps(learner[name]).strip('"') for learner in learners if name in learner)
    return " or ".join(found).replace("true", "True").replace("false", "False")


def size_tables(experiment: Experiment, sources: Sequence[Source]) -> list[Table]:
    """For each group of runs with the same config: the values here and at the paper's scale."""
    groups: dict[tuple[tuple[str, str, str], ...], list[Source]] = {}
    for source in sources:
        here, paper = run_config(source), experiment.page.paper_config(source.record)
        names = [name for name in here if name not in HIDDEN and name in paper]
        rows = tuple((_label(name, paper[name]), _show(here[name]), _show(paper[name])) for name in names)
        groups.setdefault(rows, []).append(source)
    tables = []
    for rows, group in groups.items():
        on = ", ".join(dict.fromkeys(data_label(source.record.data) for source in group))
        scale = group[0].record.scale
        if rows:
            caption = f"Sizes at scale `{scale}` and at the paper’s scale: {on}."
            tables.append(Table(caption, ("", scale, "paper"), rows))
    return tables


def size_in_words(experiment: Experiment, source: Source) -> str:
    """The size of a run and that of the paper, in one line."""
    scale = source.record.scale
    here, paper = _size(run_config(source)), _size(experiment.page.paper_config(source.record))
    if not here:
        return scale
    return f"{scale}: {here}" + (f" (paper: {paper})" if here != paper else ", as in the paper")


def _size(config: Mapping[str, Any]) -> str:
    parts = []
    if isinstance(config.get("units"), int):
        parts.append(f"{config.get('layers', 1)} × {config['units']:,} units")
    for name in ("sequences", "epochs", "steps"):
        if isinstance(count := config.get(name), int):
            parts.append(f"{count:,} {name if count != 1 else name[:-1]}")
    if config.get("canvas", 64) != 64:
        parts.append(f"{config['canvas']} × {config['canvas']} pixels")
    return ", ".join(parts)


def learners_table(experiment: Experiment, sources: Sequence[Source]) -> Table | None:
    """A row for each learner and its options; None if the records do not have them."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for source in sources:
        if source.record.learner:
            key = (row_label(experiment, source.record.model), *_learner_values(source))
            rows.setdefault(key, []).append(data_label(str(_training(source).get("data", source.record.data))))
    if not rows:
        return None
    cells = [(label, ", ".join(dict.fromkeys(data)), *values) for (label, *values), data in rows.items()]
    headings = ("learner", "trained on", "units", "optimiser", "first step size", "tuned values")
    return Table("Learners and their options, from the records.", headings, cells)


def _learner_values(source: Source) -> tuple[str, ...]:
    options, training = source.record.learner, _training(source)
    chosen: Any = training.get("options", {})
    chosen = chosen if isinstance(chosen, Mapping) else {}
    sizes: Any = options.get("hidden_sizes", options.get("hidden_size"))
    if isinstance(sizes, list) and sizes and len(set(map(str, sizes))) == 1:
        sizes = f"{len(sizes)} × {sizes[0]}"
    entry = LEARNERS.get(source.record.model)
    values = (
        None if entry is not None and entry.size_class == "none" else sizes,
        chosen.get("optimizer", options.get("optimizer")),
        chosen.get("lr", options.get("lr")),
        training.get("tuned"),
    )
    return tuple("–" if value is None else str(value) for value in values)


def _training(source: Source) -> Mapping[str, Any]:
    training: Any = source.record.config.get("training", source.record.config)
    return training if isinstance(training, Mapping) else {}


def _label(name: str, value: Any) -> str:
    own = name.replace("_", " ")
    return own if isinstance(value, list | tuple) else LABELS.get(name, own)


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(_show(each) for each in value)
    return str(value)
