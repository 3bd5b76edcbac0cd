"""Leave both live pages open in a browser and record the memory of page and server: `results/live/soak.json`.

    nice -n 10 python benchmarks/live_soak.py --minutes 30

A moving world runs at up to 25 frames a second, and a day of a stream, 86,400 rows or more, is replayed at 200 rows a
second with all rows in view. Every half minute the script presses some buttons, collects garbage, and records the
memory of the browser's pages and of the servers. Every two and a half minutes it takes a heap snapshot of each page,
which distinguishes data (objects, arrays, strings, numbers, functions), which only the page creates; code that V8
compiles, and compiles again as functions are used; and what the browser itself stores about a page. Each page is open
in two browsers, one with default settings and one with V8's compilers switched off, which separates the memory of
compiled code from that of the page.

In the first third the pages fill their buffers: curves of 1,500 frames (so the world starts over only in the first
minutes), 100,000 rows, and 500 alarms. In the other thirds both pages hold as much as they ever will.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from live_browser import Window, chromium, until

ROOT = Path(__file__).resolve().parents[1]
ROWS = 400_000
BROWSERS = {"": [], " without compilers": ["--js-flags=--jitless"]}
"""Suffix of the page names in each browser, and the browser's flags."""
DATA = (
    *("object", "array", "string", "concatenated string", "sliced string", "number", "closure", "regexp", "symbol"),
    "object shape",
)
"""Kinds of nodes in a heap snapshot that the page itself creates."""
MACHINE_CODE = {f"system / {each}" for each in ("InstructionStream", "Code", "TrustedByteArray", "ProtectedFixedArray")}
"""What V8's compilers create: instructions, their descriptions, addresses, and data for returning to bytecode."""
PRESSES = {
    "world": (
        "[data-kind=shapes]",
        "#freeze",
        "#freeze",
        "#snapshot",
        "#dream",
        "#dream",
        "#back",
        "[data-kind=digits]",
    ),
    "stream": ("#in", "#earlier", "#follow", "#alarms [data-row]", "#acknowledge-all", "#all"),
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--minutes", type=float, default=30.0)
    arguments.add_argument("--out", type=Path, default=ROOT / "results" / "live" / "soak.json")
    parsed = arguments.parse_args()
    options = f" --minutes {parsed.minutes:g}"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        feed = write_feed(folder / "feed.csv")
        commands = {"world": [], "stream": [str(feed), "--speed", "200/s"]}
        servers = {name: stack.enter_context(serve(command)) for name, command in commands.items()}
        addresses = {name: address_of(server) for name, server in servers.items()}
        windows: dict[str, Window] = {}
        for ending, flags in BROWSERS.items():
            browser = stack.enter_context(chromium(*flags))
            windows |= {name + ending: browser.window() for name in commands}
        for name, window in windows.items():
            window.emulate(1280)
            window.open(addresses[name.split()[0]])
            for domain in ("Network", "Log", "Page", "Runtime"):
                window.command(f"{domain}.disable")  # the browser keeps nothing for this script
            for domain in ("HeapProfiler", "Performance"):
                window.command(f"{domain}.enable")
        for name in ("stream" + ending for ending in BROWSERS):
            come = "document.getElementById('rows').textContent !== '0'"
            until(lambda window=windows[name], come=come: window.run(come), "rows come")
            windows[name].run("document.querySelector('#all').click()")
        clock, whole = Clock(), 60 * parsed.minutes
        samples: list[dict[str, Any]] = []
        heaps: list[dict[str, Any]] = []
        while (passed := clock.seconds) < whole:
            clock.sleep(25)
            for name, window in windows.items():
                press(window, PRESSES[name.split()[0]], clock)
            if passed < whole / 6:
                press(windows["world"], ("#restart",), clock)
            minute = round(clock.seconds / 60, 2)
            processes = {name: psutil.Process(servers[name.split()[0]].pid) for name in windows}
            samples.append({"minute": minute, **{name: measure(windows[name], processes[name]) for name in windows}})
            if clock.seconds >= 150 * (len(heaps) + 1):
                heaps.append({"minute": minute, **{name: heap(window) for name, window in windows.items()}})
                print(json.dumps(heaps[-1]), flush=True)
            print(json.dumps(samples[-1]), flush=True)
            save(parsed.out, samples, heaps, options)


def make_feed(rows: int) -> Iterator[dict[str, object]]:
    """One row a second: a daily wave, noise, and occasional jumps."""
    rng = np.random.default_rng(0)
    t = np.arange(rows)
    values = np.sin(2 * np.pi * t / 3600) + rng.normal(0, 0.1, rows) + 4 * (t % 5000 == 4321)
    times = np.datetime64("2026-01-01", "s") + t
    return ({"time": str(time), "load": round(float(value), 4)} for time, value in zip(times, values, strict=True))


def write_feed(path: Path) -> Path:
    path.write_text("time,load\n" + "".join(f"{row['time']},{row['load']}\n" for row in make_feed(ROWS)))
    return path


def serve(command: list[str]) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    whole = [sys.executable, "-m", "ptncn", "live", "--port", "0", *command]
    return Ending(whole, stderr=subprocess.PIPE, text=True, env=environment)


class Ending(subprocess.Popen[str]):
    """A process that is ended with its block."""

    def __exit__(self, *_: object) -> None:
        self.terminate()
        self.wait()


def address_of(server: subprocess.Popen[str]) -> str:
    assert server.stderr is not None
    for line in server.stderr:
        if match := re.search(r"http://\S+", line):
            return match[0]
    raise RuntimeError("the server does not start")


def press(window: Window, selectors: tuple[str, ...], clock: Clock) -> None:
    for selector in selectors:
        window.run(f"void document.querySelector({selector!r})?.click()")
        clock.sleep(0.3)


class Clock:
    """Measures the time that the script runs, without the time for which it is stopped (SIGSTOP)."""

    seconds = 0.0

    def sleep(self, seconds: float) -> None:
        end = self.seconds + seconds
        while self.seconds < end - 1e-9:
            begun, step = time.monotonic(), min(1.0, end - self.seconds)
            time.sleep(step)
            self.seconds += min(time.monotonic() - begun, step + 1.0)


def measure(window: Window, server: psutil.Process) -> dict[str, Any]:
    for _ in range(2):
        window.command("HeapProfiler.collectGarbage")
    metrics = {each["name"]: each["value"] for each in window.command("Performance.getMetrics")["metrics"]}
    text = "['frames', 'fps', 'rows', 'row-rate'].map(id => document.getElementById(id).textContent)"
    frames, fps, rows, rate = window.run(text)
    return {
        "page_megabytes": round(metrics["JSHeapUsedSize"] / 1e6, 2),
        "page_nodes": int(metrics["Nodes"]),
        "page_listeners": int(metrics["JSEventListeners"]),
        "server_megabytes": round(server.memory_info().rss / 1e6, 1),
        "server_threads": server.num_threads(),
        "progress": f"{frames}, {fps}" if fps else f"{rows} rows, {rate} a second",
    }


def heap(window: Window) -> dict[str, Any]:
    """The size of a page's heap in kilobytes, and the numbers of some objects."""
    window.events.clear()
    window.command("HeapProfiler.takeHeapSnapshot", reportProgress=False)
    pieces = [e["params"]["chunk"] for e in window.events if e["method"] == "HeapProfiler.addHeapSnapshotChunk"]
    window.events.clear()
    snapshot = json.loads("".join(pieces))
    meta, strings = snapshot["snapshot"]["meta"], snapshot["strings"]
    nodes = np.array(snapshot["nodes"]).reshape(-1, len(meta["node_fields"]))
    kind, name, size = (nodes[:, meta["node_fields"].index(field)] for field in ("type", "name", "self_size"))
    kinds = np.array(meta["node_types"][0])[kind]
    data = np.isin(kinds, DATA)
    counts = Counter(strings[each] for each in name[kinds == "object"])
    code = kinds == "code"
    machine = np.isin(name, [place for place, each in enumerate(strings) if each in MACHINE_CODE]) & code
    return {
        "data_kilobytes": round(float(size[data].sum()) / 1e3, 1),
        "code_kilobytes": round(float(size[code].sum()) / 1e3, 1),
        "machine_code_kilobytes": round(float(size[machine].sum()) / 1e3, 1),
        "browser_kilobytes": round(float(size[~data & ~code].sum()) / 1e3, 1),
        "data_objects": int(data.sum()),
        "arrays": counts["Array"],
        "typed_arrays": sum(count for each, count in counts.items() if each.endswith("Array") and each != "Array"),
        "functions": int((kinds == "closure").sum()),
    }


def save(path: Path, samples: list[dict[str, Any]], heaps: list[dict[str, Any]], options: str) -> None:
    """The samples, and a comparison of the last third with the middle one."""
    growth = {}
    for name in (page for page in samples[0] if page != "minute"):
        for what in ("page_megabytes", "page_nodes", "page_listeners", "server_megabytes", "server_threads"):
            growth[f"{name} {what}"] = thirds([sample[name][what] for sample in samples])
        for what in (
            "data_kilobytes",
            "code_kilobytes",
            "machine_code_kilobytes",
            "browser_kilobytes",
            "data_objects",
            "arrays",
        ):
            growth[f"{name} {what}"] = thirds([each[name][what] for each in heaps])
    record = {
        "command": f"python benchmarks/live_soak.py{options}",
        "minutes": samples[-1]["minute"],
        "load": os.getloadavg()[0],
        "growth": growth,
        "heaps": heaps,
        "samples": samples,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")


def thirds(values: list[float]) -> dict[str, float]:
    """The medians of the middle third and of the last third."""
    third = max(1, len(values) // 3)
    middle, last = values[-2 * third : -third] or values, values[-third:]
    return {"middle third": statistics.median(middle), "last third": statistics.median(last)} if values else {}


if __name__ == "__main__":
    main()
