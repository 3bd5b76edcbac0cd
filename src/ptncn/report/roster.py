"""Who took part, and how each of them learnt: read from the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ptncn.records import Record
from ptncn.report.labels import label
from ptncn.report.model import Table

HEADINGS = ("model", "on", "units", "optimiser", "first step size", "tuned values")


def roster_table(records: Sequence[Record]) -> Table | None:
    """A row for each model and way of learning; None where records do not say."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for record in records:
        if record.learner:
            key = (label(record.model), *_ways(record))
            rows.setdefault(key, []).append(label(_learnt_on(record)))
    if not rows:
        return None
    told = [(model, ", ".join(dict.fromkeys(on)), *ways) for (model, *ways), on in rows.items()]
    return Table("Who took part, and how each learnt, as the records have it.", HEADINGS, told)


def _ways(record: Record) -> tuple[str, ...]:
    options, training = record.learner, _training(record)
    chosen: Any = training.get("options", {})
    chosen = chosen if isinstance(chosen, Mapping) else {}
    sizes: Any = options.get("hidden_sizes", options.get("hidden_size"))
    if isinstance(sizes, list) and sizes and len(set(map(str, sizes))) == 1:
        sizes = f"{len(sizes)} × {sizes[0]}"
    values = (
        "–" if record.model in ("copy", "mean") else sizes,
        chosen.get("optimizer", options.get("optimizer")),
        chosen.get("lr", options.get("lr")),
        training.get("tuned"),
    )
    return tuple("–" if value is None else str(value) for value in values)


def _learnt_on(record: Record) -> str:
    """A network that is tested elsewhere was trained on another dataset than its column names."""
    return str(_training(record).get("data", record.data))


def _training(record: Record) -> Mapping[str, Any]:
    training: Any = record.config.get("training", record.config)
    return training if isinstance(training, Mapping) else {}
