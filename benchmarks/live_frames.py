"""How fast the live pages are on an idle machine, with a browser open: `results/live/frames.json`.

    python benchmarks/live_frames.py

The world: frames a second that are made, and that the browser draws, while both learners learn. The stream: a day of
it, a row a second, is learnt as fast as it goes, without a visitor, with a browser that has all rows in sight, with one
that is slowed down twenty times, and with a visitor who never reads; then how long the page takes to draw it. Learner
and server have the first processor, the browser has the others: Chromium slows a page down by keeping a processor busy.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from websockets.sync.client import connect

from live_browser import Window, chromium
from live_soak import ROOT, make_feed
from ptncn.live import Pace, Server, StreamPage, WorldPage
from ptncn.streaming import Stream

DAY = 86_400
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
const next = () => (times.length < 20 ? setTimeout(press, 300) : done(times));
press();
})
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=30.0)
    arguments.add_argument("--out", type=Path, default=ROOT / "results" / "live" / "frames.json")
    given = arguments.parse_args()
    torch.set_num_threads(1)
    first, *others = sorted(os.sched_getaffinity(0))
    pinned = ["taskset", "--cpu-list", ",".join(map(str, others or [first]))]
    with chromium(before=pinned) as browser:
        os.sched_setaffinity(0, {first})
        window = browser.window()
        window.emulate(1280)
        record: dict[str, Any] = {
            "command": f"python benchmarks/live_frames.py --seconds {given.seconds:g}",
            "load": os.getloadavg()[0],
            "world": world(window, given.seconds),
            "stream": stream(window),
        }
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(record, indent=1) + "\n")
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
    """Frames a second over the whole time and in the slowest second; milliseconds of each learner."""
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


def stream(window: Window) -> dict[str, Any]:
    rates: dict[str, list[float]] = {"no visitor": [], "browser": [], "browser slowed down 20 times": [], "stuck": []}
    drawing: list[float] = []
    for _ in range(6):
        for visitor, found in rates.items():
            page = StreamPage(Stream(make_feed(DAY), horizon=24), "feed.csv", Pace("max"))
            with serving(page) as url, stuck(url) if visitor == "stuck" else nullcontext():
                if visitor.startswith("browser"):
                    window.open(url)
                    time.sleep(1)
                    window.run("document.querySelector('#all').click()")
                    slow = 20 if visitor.endswith("times") else 1
                    window.command("Emulation.setCPUThrottlingRate", rate=slow)
                begun = time.monotonic()
                page.replay()
                found.append(round(DAY / (time.monotonic() - begun)))
                window.command("Emulation.setCPUThrottlingRate", rate=1)
                if visitor == "browser":
                    time.sleep(1)
                    drawing += window.run(TIME_DRAWING)
    return {
        "rows": DAY,
        "rows_a_second": rates,
        "milliseconds_from_press_to_picture": {
            "median": round(statistics.median(drawing), 1),
            "largest": round(max(drawing), 1),
        },
    }


@contextmanager
def stuck(url: str) -> Iterator[None]:
    """A visitor who looks at everything and reads none of it."""
    with connect(url.replace("http", "ws") + "live", origin=url.rstrip("/"), max_queue=1) as socket:  # type: ignore[arg-type]
        socket.send(json.dumps({"type": "view", "value": {"last": 100_000, "points": 4000}}))
        yield


if __name__ == "__main__":
    main()
