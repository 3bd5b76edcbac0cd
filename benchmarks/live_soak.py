"""Leave both live pages open in a browser and record the memory of page and server: `results/live/soak.json`.

    nice -n 10 python benchmarks/live_soak.py --minutes 30

A moving world runs at 25 frames a second, and a day of a stream, 86,400 rows and more, is replayed at 100 rows a second
with all rows in view. Every half minute the script presses some buttons, runs the garbage collector, and records the
memory of the page and of the server.
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
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "report"))
from webdriver import Browser, browser  # noqa: E402

ROWS = 200_000
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
        "#restart",
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
        commands = {"world": [], "stream": [str(feed), "--speed", "100/s"]}
        servers = {name: stack.enter_context(serve(command)) for name, command in commands.items()}
        windows = {name: stack.enter_context(browser()) for name in commands}
        addresses = {name: address_of(server) for name, server in servers.items()}
        for name, window in windows.items():
            window.emulate(1280)
            window.open(addresses[name])
        time.sleep(5)
        windows["stream"].run("document.querySelector('#all').click()")
        begun = time.monotonic()
        samples: list[dict[str, Any]] = []
        while time.monotonic() - begun < 60 * given.minutes:
            time.sleep(25)
            samples.append({"minute": round((time.monotonic() - begun) / 60, 2)})
            for name, window in windows.items():
                press(window, PRESSES[name])
                samples[-1][name] = measure(window, psutil.Process(servers[name].pid))
            print(json.dumps(samples[-1]), flush=True)
            save(given.out, samples, given.minutes)


def write_feed(path: Path) -> Path:
    """A row a second: a daily wave, noise, and a jump now and then."""
    rng = np.random.default_rng(0)
    t = np.arange(ROWS)
    values = np.sin(2 * np.pi * t / 3600) + rng.normal(0, 0.1, ROWS) + 4 * (t % 5000 == 4321)
    times = np.datetime64("2026-01-01", "s") + t
    lines = (f"{time},{value:.4f}\n" for time, value in zip(times, values, strict=True))
    path.write_text("time,load\n" + "".join(lines))
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


def press(window: Browser, selectors: tuple[str, ...]) -> None:
    for selector in selectors:
        window.run(f"document.querySelector({selector!r})?.click()")
        time.sleep(0.3)


def measure(window: Browser, server: psutil.Process) -> dict[str, Any]:
    window._command("HeapProfiler.enable", {})
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


def save(path: Path, samples: list[dict[str, Any]], minutes: float) -> None:
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
        "samples": samples,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
