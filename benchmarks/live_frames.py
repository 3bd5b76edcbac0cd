"""Measure how fast the live pages are on an idle machine, with a browser open: `results/live/frames.json`.

    python benchmarks/live_frames.py

For the world, the script measures how many frames a second the server makes and the browser draws while both learners
learn. For the stream, a day of rows, one a second, is learnt as fast as possible: without a visitor, with a browser
that shows all rows, with a browser slowed down twenty times, and with a visitor who never reads. The script also
measures how long the page takes to draw the stream.

Learner and server run on the first processor, the browser on the others. Chromium slows a page down by keeping a
processor busy, and the processors of a machine share caches, memory and clock rate. Two loads without a connection to
the server show what that costs: a loop that does nothing, and a browser slowed down on an empty page.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from websockets.sync.client import connect

from live_browser import Window, chromium
from live_soak import ROOT, make_feed
from ptncn.live import Pace, Server, StreamPage, WorldPage
from ptncn.streaming import Stream

DAY = 86_400
SECONDS = 160.0
"""No round begins more than this many seconds after the first."""
ALONE, BROWSER, SLOW, STUCK = "no visitor", "browser", "browser slowed down 20 times", "visitor who never reads"
SPINNING, SLOW_ELSEWHERE = "no visitor, a busy loop", "no visitor, an empty page slowed down 20 times"
NEIGHBOURS = (ALONE, SPINNING, SLOW_ELSEWHERE, BROWSER, SLOW, STUCK)
COUNT_PICTURES = """
window.pictures = 0;
const put = CanvasRenderingContext2D.prototype.putImageData;
CanvasRenderingContext2D.prototype.putImageData = function (...all) {
  if (this.canvas.id === "truth") window.pictures += 1;
  return put.apply(this, all);
};
"""
TIME_DRAWING = """
new Promise((done) => {
const times = [];
const press = () => {
  const start = performance.now(), note = document.getElementById("window-note");
  new MutationObserver((_, self) => { self.disconnect(); times.push(performance.now() - start); next(); })
    .observe(note, { childList: true });
  document.getElementById(times.length % 2 ? "all" : "in").click();
};
const next = () => (times.length < 6 ? setTimeout(press, 300) : done(times));
press();
})
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=30.0)
    arguments.add_argument("--out", type=Path, default=ROOT / "results" / "live" / "frames.json")
    options = arguments.parse_args()
    torch.set_num_threads(1)
    first, *others = sorted(os.sched_getaffinity(0))
    pinned = ["taskset", "--cpu-list", ",".join(map(str, others or [first]))]
    with chromium(before=pinned) as browser:
        os.sched_setaffinity(0, {first})
        window = browser.window()
        window.emulate(1280)
        record: dict[str, Any] = {
            "command": f"python benchmarks/live_frames.py --seconds {options.seconds:g}",
            "load": os.getloadavg()[0],
            "world": world(window, options.seconds),
            "stream": stream(window, others or [first]),
        }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))


@contextmanager
def serving(page: WorldPage | StreamPage) -> Iterator[str]:
    server = Server(page)
    server.start()
    try:
        yield server.url
    finally:
        page.stop()
        server.stop()


def world(window: Window, seconds: float) -> dict[str, Any]:
    """Frames a second overall and in the slowest second; milliseconds per frame of each learner."""
    page = WorldPage()
    with serving(page) as url:
        page.start()
        window.open(url)
        window.run(COUNT_PICTURES)
        time.sleep(2)
        begun, first, drawn = time.monotonic(), page.number, int(window.run("pictures"))
        slowest, last = float("inf"), first
        for second in range(1, round(seconds) + 1):
            time.sleep(max(0.0, begun + second - time.monotonic()))
            slowest, last = min(slowest, page.number - last), page.number
        passed = time.monotonic() - begun
        return {
            "seconds": round(passed, 1),
            "frames_a_second": round((page.number - first) / passed, 2),
            "frames_in_the_slowest_second": slowest,
            "pictures_drawn_a_second": round((int(window.run("pictures")) - drawn) / passed, 2),
            "milliseconds": {each.label: round(each.milliseconds, 2) for each in page.runners},
        }


def stream(window: Window, others: list[int]) -> dict[str, Any]:
    """The speed of a stream's learner under each load, in rounds that each begin with a different load."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in NEIGHBOURS}
    drawing: list[float] = []
    begun, turn = time.monotonic(), 0
    while time.monotonic() - begun < SECONDS:
        shift = turn % len(NEIGHBOURS)
        for name in (*NEIGHBOURS[shift:], *NEIGHBOURS[:shift]):
            page = StreamPage(Stream(make_feed(DAY), horizon=24), "feed.csv", Pace("max"))
            with serving(page) as url, beside(name, url, window, others):
                runs[name].append(learn(page))
                print(f"{turn + 1}  {name}: {runs[name][-1]}", flush=True)
                if name == BROWSER:
                    time.sleep(1)
                    drawing += window.run(TIME_DRAWING)
        turn += 1
    return {
        "rows": DAY,
        "rounds": turn,
        "percent_of_no_visitor": {
            name: compare(rounds_of_load, runs[ALONE]) for name, rounds_of_load in runs.items() if name != ALONE
        },
        "runs": {
            name: {what: [run[what] for run in rounds_of_load] for what in rounds_of_load[0]}
            for name, rounds_of_load in runs.items()
        },
        "milliseconds_from_press_to_picture": {
            "median": round(statistics.median(drawing), 1),
            "largest": round(max(drawing), 1),
        },
    }


def learn(page: StreamPage) -> dict[str, float]:
    """Rows a second, and microseconds of processor time per row: for the learner's thread, and for the server's."""
    begun, thread, process = time.monotonic(), time.thread_time(), time.process_time()
    page.replay()
    passed, mine = time.monotonic() - begun, time.thread_time() - thread
    rest = time.process_time() - process - mine
    return {
        "rows_a_second": round(DAY / passed),
        "learner_microseconds": round(1e6 * mine / DAY, 3),
        "server_microseconds": round(1e6 * rest / DAY, 3),
    }


def compare(loaded: list[dict[str, float]], alone: list[dict[str, float]]) -> dict[str, list[float]]:
    """The difference in percent between each measurement and the run without a visitor in the same round, with its
    standard error; the server's time is given relative to the learner's."""
    differences = {
        "rows_a_second": [
            100 * (a["rows_a_second"] / b["rows_a_second"] - 1) for a, b in zip(loaded, alone, strict=True)
        ],
        "learner_microseconds": [
            100 * (a["learner_microseconds"] / b["learner_microseconds"] - 1)
            for a, b in zip(loaded, alone, strict=True)
        ],
        "server_microseconds": [
            100 * (a["server_microseconds"] - b["server_microseconds"]) / b["learner_microseconds"]
            for a, b in zip(loaded, alone, strict=True)
        ],
    }
    return {
        what: [round(statistics.fmean(each), 2), round(statistics.stdev(each) / len(each) ** 0.5, 2)]
        for what, each in differences.items()
    }


@contextmanager
def beside(name: str, url: str, window: Window, others: list[int]) -> Iterator[None]:
    """Run a load on the other processors while the learner learns."""
    with ExitStack() as stack:
        if name == STUCK:
            stack.enter_context(stuck(url))
        elif name == SPINNING:
            stack.enter_context(spinning(others))
        elif name != ALONE:
            window.command("Page.navigate", url="about:blank")
            if name != SLOW_ELSEWHERE:
                window.open(url)
                time.sleep(1)
                window.run("document.querySelector('#all').click()")
            window.command("Emulation.setCPUThrottlingRate", rate=1 if name == BROWSER else 20)
            stack.callback(window.command, "Emulation.setCPUThrottlingRate", rate=1)
            time.sleep(0.5)
        yield


@contextmanager
def spinning(processors: list[int]) -> Iterator[None]:
    """A process without connections that keeps a processor busy."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        os.sched_setaffinity(process.pid, processors)
        time.sleep(0.5)
        try:
            yield
        finally:
            process.kill()


@contextmanager
def stuck(url: str) -> Iterator[None]:
    """A visitor who requests all rows and reads nothing."""
    with connect(url.replace("http", "ws") + "live", origin=url.rstrip("/"), max_queue=1) as socket:  # type: ignore[arg-type]
        socket.send(json.dumps({"type": "view", "value": {"last": 100_000, "points": 4000}}))
        yield


if __name__ == "__main__":
    main()
