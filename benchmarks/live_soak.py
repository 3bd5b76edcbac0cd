"""Leave both live pages open in a browser and record the memory of page and server: `results/live/soak.json`.

    nice -n 10 python benchmarks/live_soak.py --minutes 30

A moving world runs at up to 25 frames a second, and a day of a stream, 86,400 rows and more, is replayed at 150 rows a
second with all of it in sight. Every half minute the script collects garbage, writes down what the browser's page and
the server's process hold, and presses some buttons; the world starts anew only in the first third, because its page
keeps the curves of 1,500 frames and needs time to fill them. After two thirds and in the end the script takes a heap
snapshot of each page, which tells data from the machine code that the browser compiles as it goes.
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
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from websockets.sync.client import connect

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "report"))
from webdriver import Browser, browser  # noqa: E402

ROWS = 300_000
DATA = ("object", "array", "string", "concatenated string", "sliced string", "number", "closure", "regexp", "symbol")
"""Kinds of nodes in a heap snapshot that a page makes itself; others are machine code and the browser's own."""
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
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--minutes", type=float, default=30.0)
    arguments.add_argument("--out", type=Path, default=ROOT / "results" / "live" / "soak.json")
    given = arguments.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        feed = write_feed(folder / "feed.csv")
        commands = {"world": [], "stream": [str(feed), "--speed", "150/s"]}
        servers = {name: stack.enter_context(serve(command)) for name, command in commands.items()}
        windows = {name: stack.enter_context(browser()) for name in commands}
        addresses = {name: address_of(server) for name, server in servers.items()}
        for name, window in windows.items():
            window.emulate(1280)
            window.open(addresses[name])
            window.patience = 1800.0
        time.sleep(5)
        windows["stream"].run("document.querySelector('#all').click()")
        clock, whole = Clock(), 60 * given.minutes
        samples: list[dict[str, Any]] = []
        heaps: dict[str, list[dict[str, Any]]] = {name: [] for name in windows}
        while (passed := clock.seconds) < whole or not samples:
            clock.sleep(25)
            samples.append({"minute": round(clock.seconds / 60, 2)})
            for name, window in windows.items():
                samples[-1][name] = measure(window, psutil.Process(servers[name].pid))
                if passed > whole * 2 / 3 and not heaps[name]:
                    heaps[name].append(heap(window))
                press(window, PRESSES[name], clock)
            if passed < whole / 3:
                press(windows["world"], ("#restart",), clock)
            print(json.dumps(samples[-1]), flush=True)
            save(given.out, samples, heaps, given.minutes)
        for name, window in windows.items():
            clock.sleep(5)
            heaps[name].append(heap(window))
        save(given.out, samples, heaps, given.minutes)


def make_feed(rows: int) -> Iterator[dict[str, object]]:
    """A row a second: a daily wave, noise, and a jump now and then."""
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
    """A process that ends with its block."""

    def __exit__(self, *_: object) -> None:
        self.terminate()
        self.wait()


def address_of(server: subprocess.Popen[str]) -> str:
    assert server.stderr is not None
    for line in server.stderr:
        if found := re.search(r"http://\S+", line):
            return found[0]
    raise RuntimeError("the server does not start")


def press(window: Browser, selectors: tuple[str, ...], clock: Clock) -> None:
    for selector in selectors:
        window.run(f"document.querySelector({selector!r})?.click()")
        clock.sleep(0.3)


class Clock:
    """Counts the time that the script runs, without the time for which it is stopped (SIGSTOP)."""

    seconds = 0.0

    def sleep(self, seconds: float) -> None:
        end = self.seconds + seconds
        while self.seconds < end - 1e-9:
            begun, step = time.monotonic(), min(1.0, end - self.seconds)
            time.sleep(step)
            self.seconds += min(time.monotonic() - begun, step + 1.0)


def measure(window: Browser, server: psutil.Process) -> dict[str, Any]:
    window._command("HeapProfiler.enable", {})
    for _ in range(2):
        window._command("HeapProfiler.collectGarbage", {})
    window._command("Performance.enable", {})
    metrics = {each["name"]: each["value"] for each in window._command("Performance.getMetrics", {})["metrics"]}
    text = "return [document.getElementById('frames').textContent, document.getElementById('fps').textContent, "
    text += "document.getElementById('rows').textContent, document.getElementById('row-rate').textContent]"
    frames, fps, rows, rate = window.run(text)
    return {
        "page_megabytes": round(metrics["JSHeapUsedSize"] / 1e6, 2),
        "page_nodes": int(metrics["Nodes"]),
        "page_listeners": int(metrics["JSEventListeners"]),
        "server_megabytes": round(server.memory_info().rss / 1e6, 1),
        "server_threads": server.num_threads(),
        "progress": f"{frames}, {fps}" if fps else f"{rows} rows, {rate} a second",
    }


def heap(window: Browser) -> dict[str, Any]:
    """Kilobytes of a page's JavaScript heap, and how many objects: those of the page, and the browser's own.

    A snapshot comes in pieces, as events, which the driver does not pass on: so by the browser's own socket.
    """
    with urllib.request.urlopen(f"http://{window.debugger}/json") as answer:
        page = next(each for each in json.load(answer) if each["type"] == "page")
    pieces = []
    with connect(page["webSocketDebuggerUrl"], max_size=None, compression=None) as socket:
        socket.send(json.dumps({"id": 1, "method": "HeapProfiler.takeHeapSnapshot", "params": {}}))
        while (message := json.loads(socket.recv())).get("id") != 1:
            if message.get("method") == "HeapProfiler.addHeapSnapshotChunk":
                pieces.append(message["params"]["chunk"])
    snapshot = json.loads("".join(pieces))
    meta = snapshot["snapshot"]["meta"]
    nodes = np.array(snapshot["nodes"]).reshape(-1, len(meta["node_fields"]))
    kinds = np.array(meta["node_types"][0])[nodes[:, meta["node_fields"].index("type")]]
    sizes = nodes[:, meta["node_fields"].index("self_size")]
    data = np.isin(kinds, DATA)
    return {
        "data_kilobytes": round(float(sizes[data].sum()) / 1e3, 1),
        "data_objects": int(data.sum()),
        "code_kilobytes": round(float(sizes[kinds == "code"].sum()) / 1e3, 1),
        "browser_kilobytes": round(float(sizes[~data & (kinds != "code")].sum()) / 1e3, 1),
    }


def save(path: Path, samples: list[dict[str, Any]], heaps: dict[str, Any], minutes: float) -> None:
    """The samples, and how the last third compares with the third before it."""
    third = max(1, len(samples) // 3)
    growth = {}
    for name in PRESSES:
        for what in ("page_megabytes", "server_megabytes", "page_nodes"):
            before, after = (
                statistics.median(sample[name][what] for sample in part)
                for part in (samples[-2 * third : -third] or samples, samples[-third:])
            )
            growth[f"{name} {what}"] = {"middle third": before, "last third": after}
    record = {
        "command": f"python benchmarks/live_soak.py --minutes {minutes:g}",
        "minutes": samples[-1]["minute"],
        "load": os.getloadavg()[0],
        "growth": growth,
        "heaps": heaps,
        "samples": samples,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
