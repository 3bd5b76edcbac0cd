"""`docs/streams-results.md`, from the records of `benchmarks/streams.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import stream_sections
from stream_pictures import PICTURED

Record = dict[str, Any]
BUSY = 1.0
"""A load above this disturbs times."""


def write(path: Path, read: Callable[[str], Record]) -> None:
    path.write_text(page(read), encoding="utf-8")


def page(read: Callable[[str], Record]) -> str:
    """All sections; `read` gives the record of a name."""
    record = read("comparison")
    parts = [comparison(record)]
    if forecasts := read("forecasts"):
        parts.append(stream_sections.ahead(forecasts))
    if kinds := read("kinds"):
        parts.append(stream_sections.kinds(kinds))
    if bounds := read("bounds"):
        parts.append(stream_sections.bounds(bounds))
    if forecasts:
        parts.append(stream_sections.pictures(PICTURED))
    parts += [after_a_switch(record), alarms(read("alarms"))]
    if anomalies := read("anomalies"):
        parts.append(stream_sections.anomalies(anomalies))
    if throughput := read("throughput"):
        parts.append(speed(throughput))
    parts.append(streams(record))
    parts.append(tuning(record))
    return "\n".join(line for part in parts for line in part)


def comparison(record: Record) -> list[str]:
    results, names, timing = record["results"], record["streams"], record["timing"]
    best = {name: min(results[model][name]["mae"] for model in results) for name in names}

    def cell(model: str, name: str) -> str:
        value, sd = results[model][name]["mae"], results[model][name]["sd"]
        text = f"{value:.3g}" if sd is None else f"{value:.3g} ± {sd:.1g}"
        return f"**{text}**" if value == best[name] else text

    lines = [
        "# Streams: the P-TNCN compared with other online forecasters",
        "",
        "Made by `python benchmarks/streams.py` from "
        "[records](../results/streams/); a record names the command that made it.",
        "",
        "Mean absolute error of the forecast one step ahead; each observation is forecast before it is learnt. The "
        "best is in bold. ± is the standard deviation over the seeds, which determine the weights and, for the last "
        "three streams, the data.",
        "",
        f"| | {' | '.join(names)} | µs |",
        "|---" * (len(names) + 2) + "|",
    ]
    for model in results:
        took = timing["microseconds_per_observation"][model]
        lines.append(f"| `{model}` | {' | '.join(cell(model, name) for name in names)} | {took:.0f} |")
    optimum = ["" if spec["optimum"] is None else f"{spec['optimum']:.3g}" for spec in names.values()]
    return [
        *lines,
        f"| *optimum* | {' | '.join(optimum)} | |",
        "",
        "µs is the time of one forecast and one observation on the stream of sines, with the settings chosen for it. "
        + _load(timing),
        "",
    ]


def after_a_switch(record: Record) -> list[str]:
    lines = [
        "## After a switch",
        "",
        f"Every {record['regime']} observations the stream `switch` changes its sines; the third part repeats those "
        "of the first. Half of the seeds start with one pair of sines and half with the other, because one pair may "
        "be harder than the other. The table gives the number of observations until the error, averaged over "
        f"{len(record['seeds']['switch'])} seeds and the last {record['smooth']} observations, is back within 10 % "
        "of the error over the 500 before the switch.",
        "",
        "| | error before | first 100 after | observations | return: error before | first 100 after | observations |",
        "|---|---|---|---|---|---|---|",
    ]
    for model, row in record["results"].items():
        cells = []
        for switch in row["switch"]["recovery"]:
            cells += [f"{switch['error_before']:.3f}", f"{switch['error_after']:.3f}", _count(switch["observations"])]
        lines.append(f"| `{model}` | {' | '.join(cells)} |")
    return [*lines, "", verdict(record["results"]), ""]


def verdict(results: Record) -> str:
    """Whether the network is back sooner than the LSTM, and sooner still when the first regime returns."""
    (first, again), (other, other_again) = (
        [_never_is_late(part["observations"]) for part in results[model]["switch"]["recovery"]]
        for model in ("ptncn", "lstm-tbptt")
    )
    return (
        f"After the switch the P-TNCN is {_than(first, other)} the LSTM; "
        f"at the return it is {_than(again, other_again)} the LSTM, and {_than(again, first)} after the first switch."
    )


def alarms(record: Record) -> list[str]:
    lines = [
        "## Planted anomalies",
        "",
        "`ptncn stream` with its defaults, on streams in which single observations were replaced by anomalies. "
        "Recall is the share of these that raised an alarm; precision is their share of all alarms; false alarms "
        f"are a share of the ordinary observations. The {record['echo']} observations after an anomaly are not "
        "counted, because the return from it is a surprise too. All passes of a stream are pooled: each seed draws "
        "another stream and other places.",
        "",
        "| | what | passes | observations | anomalies | alarm rate | recall | precision | false alarms | of the rate |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, stream in record["streams"].items():
        passes = stream["seeds"]
        first = f"{name} | {stream['about']} | {passes} | {stream['observations']:,} | {stream['anomalies']}"
        for rate, found in stream["rates"].items():
            precision = "–" if found["precision"] is None else f"{found['precision']:.2f}"
            share = found["false_alarm_rate"] / float(rate)
            times = f"{share:.2f} ×" if float(rate) * found["ordinary"] / passes >= 5 else "too short to tell"
            false = f"{found['false_alarm_rate']:.5f} | {times}"
            lines.append(f"| {first} | {rate} | {found['recall']:.2f} | {precision} | {false} |")
            first = " | | | | "
    return [*lines, ""]


def speed(record: Record) -> list[str]:
    lines = [
        "## Lines a second, and memory",
        "",
        f"`ptncn stream feed.csv --hidden 32,32 --out out.csv`, {record['columns']} columns, {record['lines']:,} "
        f"lines, learning included: **{record['lines_per_second']:,} lines a second** in all, "
        f"{record['lines_per_second_after_start']:,} without the {record['start_seconds']:.1f} s of the start. "
        f"In processor time it is {record['lines_per_processor_second_after_start']:,} without the start. "
        + _load(record),
        "",
        "| after so many lines | memory, MB |",
        "|---|---|",
    ]
    lines += [*(f"| {at['lines']:,} | {at['megabytes']} |" for at in record["memory"]), ""]
    return [*lines, *many(record)] if "bank" in record else lines


def many(record: Record) -> list[str]:
    """Horizons and keys, next to the time of a bare step of the network."""
    ahead, used = (record[f"horizon_lines_per_{unit}_after_start"] for unit in ("second", "processor_second"))
    return [
        f"A single step of the network, called from Python, took {record['bare_step_microseconds']} µs of processor "
        f"time in the same run; a row of this stream takes {record['row_in_bare_steps']} times as much, since the "
        f"command gives the kernel a block of rows at once. With `--horizon 1` it is {ahead['1']:,} lines a second, "
        f"with `--horizon 24` and its 552 more numbers a line {ahead['24']:,}: {ahead['1'] / ahead['24']:.2f} times "
        f"the time, {used['1'] / used['24']:.2f} times the processor time.",
        "",
        "1,000 keys of one column, 1 × 32 units, in Python, observations a second; threads share the keys:",
        "",
        "| weights | threads | observations a second | a second of processor time |",
        "|---|---|---|---|",
        *(
            f"| {at['weights']} | {at['threads']} | {at['observations_per_second']:,} | "
            f"{at['observations_per_processor_second']:,} |"
            for at in record["bank"]
        ),
        "",
        "The same through the command line, and the memory of 10,000 keys:",
        "",
        "| weights | keys | units | lines a second | a second of processor time | memory, MB |",
        "|---|---|---|---|---|---|",
        *(
            f"| {at['weights']} | {at['keys']:,} | {at['hidden']} | {at['lines_per_second_after_start']:,} | "
            f"{at['lines_per_processor_second_after_start']:,} | {at['megabytes']} |"
            for at in (*record["keyed"], *record["ten_thousand_keys"])
        ),
        "",
    ]


def streams(record: Record) -> list[str]:
    return [
        "## The streams",
        "",
        "| | what | observations | not scored |",
        "|---|---|---|---|",
        *(
            f"| {name} | {s['about']} | {s['observations']} | {s['tuned_on']} |"
            for name, s in record["streams"].items()
        ),
        "",
        "The first four ship with River. Noise has a standard deviation of 0.1, so no forecast can have an error "
        "below 0.0798; Mackey-Glass has no noise.",
        "",
    ]


def tuning(record: Record) -> list[str]:
    lines = [
        "## How the models were tuned",
        "",
        f"Each model was tried with {record['trials']['ptncn']} settings: those of River's models from a grid, those "
        "of the P-TNCN, the LSTM and the ESN from one Optuna search that starts with ten common settings. Where the "
        f"data are random, settings are tried on {len(record['seeds']['validation'])} other draws of the whole "
        "stream, otherwise on the first part of the stream; the one with the smallest error in the second half of "
        "that data is taken. The first part is then learnt from again, but not scored. The P-TNCN may have 64 or "
        "128 units or two layers of 32, the LSTM 32, 64 or 128, the ESN 64, 100 or 128.",
        "",
        "| | chosen |",
        "|---|---|",
    ]
    for model, row in record["results"].items():
        if record["trials"][model] > 1:
            chosen = "; ".join(f"{name}: `{_short(row[name]['setting'])}`" for name in record["streams"])
            lines.append(f"| `{model}` | {chosen} |")
    return [*lines, ""]


def _load(record: Record) -> str:
    load, cores = record["loadavg"], record["machine"]["cores"]
    doubt = "." if load <= BUSY else ", too high for reliable times."
    return f"The load average of the machine was {load} at that time, on {cores} cores{doubt}"


def _count(observations: int | None) -> str:
    return "never" if observations is None else str(observations)


def _never_is_late(observations: int | None) -> float:
    return float("inf") if observations is None else observations


def _than(one: float, other: float) -> str:
    return "back sooner than" if one < other else "back later than" if one > other else "back as soon as"


def _short(setting: Record) -> str:
    flat: Record = {}
    for name, value in setting.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return " ".join(f"{name}={'-'.join(map(str, v)) if isinstance(v, list | tuple) else v}" for name, v in flat.items())
