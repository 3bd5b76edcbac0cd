"""`docs/streams-results.md`, from the records of `benchmarks/streams.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import stream_sections
from stream_pictures import PICTURED

Record = dict[str, Any]
BUSY = 1.0
"""A load average above this makes times unreliable."""


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
        "[records](../results/streams/); each record contains the command that made it.",
        "",
        "Mean absolute error of the forecast one step ahead; each observation is forecast before it is learnt. The "
        "best is in bold. ± is the standard deviation over seeds, which determine the weights and, for the last "
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
        "µs is the time for one forecast and one observation on the stream of sines, with the settings chosen for it. "
        + _load(timing),
        "",
    ]


def after_a_switch(record: Record) -> list[str]:
    lines = [
        "## After a switch",
        "",
        f"Every {record['regime']} observations the stream `switch` changes its sines; the third part repeats the "
        "sines of the first. Half of the seeds start with one pair of sines and half with the other, because one pair "
        "may be harder than the other. The table shows how many observations pass until the error, averaged over "
        f"{len(record['seeds']['switch'])} seeds and the last {record['smooth']} observations, has returned to within "
        "10 % of the mean error over the 500 observations before the switch.",
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
    """Whether the network recovers sooner than the LSTM, and sooner still when the first regime returns."""
    (first, again), (other, other_again) = (
        [_never_is_late(part["observations"]) for part in results[model]["switch"]["recovery"]]
        for model in ("ptncn", "lstm-tbptt")
    )
    return (
        f"After the switch the P-TNCN recovers {_than(first, other)} the LSTM; when the first regime returns, it "
        f"recovers {_than(again, other_again)} the LSTM, and {_than(again, first)} after the switch."
    )


def alarms(record: Record) -> list[str]:
    lines = [
        "## Planted anomalies",
        "",
        "`ptncn stream` with its defaults, on streams with single observations replaced by anomalies. Recall is the "
        "share of anomalies that raised an alarm; precision is the share of alarms that an anomaly raised; false "
        f"alarms are a share of the ordinary observations. The {record['echo']} observations after an anomaly are not "
        "counted, because the return to normal is also a surprise. All passes over a stream are pooled; each seed "
        "draws a different stream and different positions of the anomalies.",
        "",
        "| | what | passes | observations | anomalies | alarm rate | recall | precision | false alarms | of the rate |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, stream in record["streams"].items():
        passes = stream["seeds"]
        first = f"{name} | {stream['about']} | {passes} | {stream['observations']:,} | {stream['anomalies']}"
        for rate, counts in stream["rates"].items():
            precision = "–" if counts["precision"] is None else f"{counts['precision']:.2f}"
            share = counts["false_alarm_rate"] / float(rate)
            times = f"{share:.2f} ×" if float(rate) * counts["ordinary"] / passes >= 5 else "too short to tell"
            false = f"{counts['false_alarm_rate']:.5f} | {times}"
            lines.append(f"| {first} | {rate} | {counts['recall']:.2f} | {precision} | {false} |")
            first = " | | | | "
    return [*lines, ""]


def speed(record: Record) -> list[str]:
    lines = [
        "## Lines a second, and memory",
        "",
        f"`ptncn stream feed.csv --hidden 32,32 --out out.csv`, {record['columns']} columns, {record['lines']:,} "
        f"lines, including learning: **{record['lines_per_second']:,} lines a second** overall, "
        f"{record['lines_per_second_after_start']:,} without the start-up time of {record['start_seconds']:.1f} s. "
        f"Without the start it processes {record['lines_per_processor_second_after_start']:,} lines per second of "
        "processor time. " + _load(record),
        "",
        "| lines so far | memory, MB |",
        "|---|---|",
    ]
    lines += [*(f"| {at['lines']:,} | {at['megabytes']} |" for at in record["memory"]), ""]
    return [*lines, *many(record)] if "bank" in record else lines


def many(record: Record) -> list[str]:
    """Horizons and keys, compared with the time of a step of the network alone."""
    ahead, used = (record[f"horizon_lines_per_{unit}_after_start"] for unit in ("second", "processor_second"))
    return [
        f"A single step of the network, called from Python, took {record['bare_step_microseconds']} µs of processor "
        f"time in the same run; a row of this stream takes {record['row_in_bare_steps']} times as much, because the "
        f"command passes a block of rows to the kernel at once. With `--horizon 1` it processes {ahead['1']:,} lines a "
        f"second; with `--horizon 24`, which adds 552 numbers to each line, {ahead['24']:,}. That is "
        f"{ahead['1'] / ahead['24']:.2f} times the elapsed time and {used['1'] / used['24']:.2f} times the processor "
        "time.",
        "",
        "1,000 keys with one column and 1 × 32 units each, in Python; threads share the keys:",
        "",
        "| weights | threads | observations a second | a second of processor time |",
        "|---|---|---|---|",
        *(
            f"| {at['weights']} | {at['threads']} | {at['observations_per_second']:,} | "
            f"{at['observations_per_processor_second']:,} |"
            for at in record["bank"]
        ),
        "",
        "The same from the command line, and the memory used by 10,000 keys:",
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
        "The first four are included in River. Noise has a standard deviation of 0.1, so no forecast can have an "
        "expected error below 0.0798; Mackey-Glass has no noise.",
        "",
    ]


def tuning(record: Record) -> list[str]:
    lines = [
        "## How the models were tuned",
        "",
        f"Each model was tried with {record['trials']['ptncn']} settings. For River's models they come from a grid; "
        "for the P-TNCN, the LSTM and the ESN they come from one Optuna search that starts with ten common settings. "
        f"If the data is random, settings are tried on {len(record['seeds']['validation'])} other draws of the whole "
        "stream, and otherwise on the first part of the stream. The setting with the smallest error in the second "
        "half of that data is used. The model then learns from the first part again, but is not scored there. The "
        "P-TNCN may have 64 or 128 units or two layers of 32, the LSTM 32, 64 or 128, the ESN 64, 100 or 128.",
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
    return f"The load average of the machine was {load} during this measurement, on {cores} cores{doubt}"


def _count(observations: int | None) -> str:
    return "never" if observations is None else str(observations)


def _never_is_late(observations: int | None) -> float:
    return float("inf") if observations is None else observations


def _than(one: float, other: float) -> str:
    return "sooner than" if one < other else "later than" if one > other else "as soon as"


def _short(setting: Record) -> str:
    flat: Record = {}
    for name, value in setting.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return " ".join(f"{name}={'-'.join(map(str, v)) if isinstance(v, list | tuple) else v}" for name, v in flat.items())
