"""Observations as lines of text: CSV, or JSON."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from ptncn.streaming.columns import Value
from ptncn.streaming.observation import Observation


class Format(Protocol):
    def header(self, out: Observation) -> str:
        """What comes before the first line."""

    def line(self, out: Observation) -> str: ...


class CsvLines:
    """A column each for what was observed, predicted and forecast of a column `c`: c, c.predicted, c.ahead1, …"""

    def header(self, out: Observation) -> str:
        names = list(out.observed)
        fields = ["index", "line", "timestamp", *names, *(f"{name}.predicted" for name in names)]
        fields += [f"{name}.ahead{step + 1}" for step in range(len(out.forecast)) for name in names]
        fields += ["surprise", "score", "alarm", "drift"]
        fields += [f"error.layer{layer}" for layer in range(len(out.errors))]
        return join(fields)

    def line(self, out: Observation) -> str:
        parts: list[Any] = [str(out.index), str(out.line), csv_text(out.timestamp)]
        parts += [repr(value) if type(value) is float else csv_text(value) for value in out.observed.values()]
        told: list[Value] = [None] * len(out.observed) if out.prediction is None else [*out.prediction.values()]
        for ahead in out.forecast:
            told += ahead.values()
        told += out.surprise, out.score
        parts.append(csv_fields(told))
        parts.append("1" if out.alarm else "0")
        parts.append("1" if out.drift else "0")
        parts += map(csv_text, out.errors)
        return ",".join(parts) + "\n"


class JsonLines:
    """One object a line."""

    def header(self, out: Observation) -> str:
        return ""

    def line(self, out: Observation) -> str:
        body: dict[str, Any] = {
            "index": out.index,
            "line": out.line,
            "timestamp": out.timestamp,
            "observed": out.observed,
            "predicted": None if out.prediction is None else _rounded(out.prediction),
            "surprise": _round(out.surprise),
            "score": _round(out.score),
            "alarm": out.alarm,
            "drift": out.drift,
        }
        if out.forecast:
            body["forecast"] = [_rounded(ahead) for ahead in out.forecast]
        if out.errors:
            body["errors"] = [_round(error) for error in out.errors]
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")) + "\n"


FORMATS: dict[str, type[Format]] = {"csv": CsvLines, "jsonl": JsonLines}


def csv_text(value: Value) -> str:
    """A field: nine digits of a number, quotes around text that needs them, nothing for None."""
    if type(value) is float:
        return "%.9g" % value  # noqa: UP031 (twice as fast as the others)
    if value is None:
        return ""
    text = str(value)
    if any(mark in text for mark in ',"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


def csv_fields(values: Sequence[Value]) -> str:
    """The same for several fields, with commas between."""
    try:
        return _digits(len(values)) % tuple(values)
    except TypeError:  # there is None or text among them
        return ",".join(map(csv_text, values))


@functools.cache
def _digits(count: int) -> str:
    return ",".join(["%.9g"] * count)


def join(fields: Iterable[Value]) -> str:
    return ",".join(map(csv_text, fields)) + "\n"


def _round(value: Any) -> Any:
    return float("%.9g" % value) if isinstance(value, float) else value  # noqa: UP031


def _rounded(values: dict[str, Value]) -> dict[str, Value]:
    return {name: _round(value) for name, value in values.items()}
