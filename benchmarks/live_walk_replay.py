"""The part of the walk (`live_walk.py`) about downloads, replays of a stream, and broken feeds."""

from __future__ import annotations

import csv
import io
import time
import urllib.request
from collections.abc import Iterator

import numpy as np

from live_browser import until
from live_walk import Walk, serving
from live_walk_stream import STEP, ended, feed, in_sight
from ptncn.live import Pace, StreamPage
from ptncn.live.pace import parse_speed
from ptncn.streaming import Stream


def download(walk: Walk) -> None:
    rows = feed()
    page = ended(StreamPage(Stream(rows, horizon=24), "feed.csv", Pace("max")))
    with serving(page, start=False) as url:
        walk.open(url)
        for name in ("follow", "all", "in"):
            walk.window.click(f"#{name}")
            time.sleep(0.6)
            seen = in_sight(walk)
            table = _fetch(walk.window.run("document.getElementById('download').href"))
            walk.check(f"after “{name}” the file has the {seen} rows in view", len(table) == seen)
            same = all(float(line["load"]) == rows[int(line["row"])]["load"] for line in table)
            walk.check("each with the observed values", same)
        made = list(Stream(feed(), horizon=24))
        table = _fetch(f"{url}download")
        pairs = [(line["load.predicted"], out.prediction) for line, out in zip(table, made, strict=True)]
        walk.check(
            "predictions equal those of a stream without a page",
            all((a == "") if b is None else float(a) == b["load"] for a, b in pairs),
        )
        link = walk.window.run(
            "(e => [e.getAttribute('download'), e.textContent])(document.getElementById('download'))"
        )
        walk.check("the link downloads a file", link == ["ptncn.csv", "Download as CSV"])


def _fetch(address: str) -> list[dict[str, str]]:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return list(csv.DictReader(io.StringIO(answer.read().decode())))


def replay(walk: Walk) -> None:
    page, window = StreamPage(Stream(feed(60_000)), "feed.csv", Pace("25/s")), walk.window
    with serving(page) as url:
        walk.open(url)
        until(lambda: in_sight(walk) > 2, "rows")
        assert page.pace is not None
        walk.check(
            "the list shows the speed",
            walk.window.run("document.getElementById('pace').selectedOptions[0].text") == "25 rows a second",
        )
        speeds = window.run("[...document.getElementById('pace').options].map(o => o.value)")
        for speed in speeds:
            walk.choose("pace", speed)
            walk.check(f"the speed {speed} is applied", lambda s=speed: page.pace.speed == s)  # type: ignore[union-attr]
            factor, rate = parse_speed(speed)
            rate = factor / STEP if factor else rate
            if rate is not None and 4 <= rate <= 300:
                begun, first = time.monotonic(), page.stream.stats.observations
                time.sleep(3)
                measured = (page.stream.stats.observations - first) / (time.monotonic() - begun)
                walk.check(
                    f"{speed} gives {rate:g} rows a second ({measured:.1f})", abs(measured - rate) < 0.2 * rate + 1
                )
            if speed == "100/s":
                walk.check(
                    "the page shows that rate", lambda: 80 <= float(walk.text("row-rate").replace(",", "")) <= 120
                )
        walk.choose("pace", "25/s")
        until(lambda: page.pace.speed == "25/s", "slow")  # type: ignore[union-attr]
        window.click("#stream-pause")
        walk.check("Pause: the server pauses", lambda: page.pace.paused and walk.pressed("#stream-pause"))  # type: ignore[union-attr]
        walk.check("Pause: the page says so", lambda: walk.text("stream-story").startswith("Paused."))
        count = page.stream.stats.observations
        time.sleep(1)
        walk.check("Pause: no row arrives", page.stream.stats.observations == count)
        walk.picture("stream-paused", whole=False)
        window.press("p", "p")
        time.sleep(0.5)
        walk.check(
            "the key P twice in quick succession: still paused", page.pace.paused and walk.pressed("#stream-pause")
        )
        window.press("p")
        walk.check("the key P: it continues", lambda: not page.pace.paused and page.stream.stats.observations > count)  # type: ignore[union-attr]
        window.emulate(1280, motion="reduce")
        walk.choose("pace", "100/s")
        time.sleep(1.5)
        window.run(
            "window.drawn = 0; new MutationObserver(() => { window.drawn += 1; })"
            ".observe(document.getElementById('window-note'), {childList: true})"
        )
        time.sleep(4)
        walk.check("with reduced motion the charts change once a second", window.run("window.drawn") <= 5)
        walk.finish()
    bare = StreamPage(Stream(feed(3000, stamped=False)), "bare.csv", Pace("25/s"))
    with serving(bare) as url:
        walk.open(url)
        until(lambda: in_sight(walk) > 2, "rows")
        offered = window.run("[...document.getElementById('pace').options].filter(o => !o.disabled).map(o => o.value)")
        walk.check(
            f"without timestamps, no speed on offer needs them {offered}",
            set(offered) == {"1/s", "5/s", "25/s", "100/s", "1000/s", "max"},
        )
        for speed in ("100/s", "max"):
            walk.choose("pace", speed)
            walk.check(f"without timestamps: {speed}", lambda s=speed: bare.pace.speed == s)  # type: ignore[union-attr]
        walk.picture("stream-bare", whole=False)
        walk.finish()


def troubles(walk: Walk) -> None:
    """What a visitor sees before the first row, without forecasts, and when the feed is broken."""

    def silent() -> Iterator[dict[str, float]]:
        time.sleep(8)
        yield {"load": 1.0}

    with serving(StreamPage(Stream(silent()), "-", Pace("max"))) as url:
        walk.open(url)
        walk.check(
            "before the first row the page says that it waits",
            lambda: "Waiting for the first row" in walk.text("stream-story"),
        )
        walk.check("standard input has a name", walk.text("stream-title") == "Standard input")
        walk.picture("stream-waiting")

    quiet = StreamPage(Stream(feed(60)), "feed.csv")
    with serving(quiet, start=False) as url:
        walk.open(url)
        results = quiet.stream.read(50)
        assert results is not None
        quiet.observe(results)
        walk.check(
            "the page says that the feed is running", lambda: "Each row is predicted" in walk.text("stream-story")
        )
        walk.check("and when it falls silent", lambda: "No row has arrived since" in walk.text("stream-story"))
        results = quiet.stream.read(10)
        assert results is not None
        quiet.observe(results)
        walk.check("and when it continues", lambda: "Each row is predicted" in walk.text("stream-story"))
        walk.finish()
    slow = StreamPage(Stream(feed(60)), "feed.csv", Pace("0.15/s"))
    with serving(slow) as url:
        walk.open(url)
        walk.check(
            "a slow replay says when the next row is due", lambda: "the next row is due at" in walk.text("stream-story")
        )
        walk.check("rows are counted per minute", lambda: walk.text("rate-title") == "Rows a minute")
        walk.picture("stream-slow", whole=False)
        walk.finish()

    def broken() -> Iterator[dict[str, float]]:
        for step in range(300):
            yield {"load": float(step % 7)}
        raise OSError("feed.csv: the disk is gone")

    with serving(StreamPage(Stream(broken()), "feed.csv", Pace("max"))) as url:
        walk.open(url)
        walk.check(
            "the page says that the feed is broken",
            lambda: "Stopped: feed.csv: the disk is gone." in walk.text("stream-story"),
        )
        walk.check("and still shows the rows before", lambda: in_sight(walk) > 200)
        walk.check(
            "the page says how to get a forecast",
            lambda: "--horizon" in walk.window.run("document.querySelector('#targets figcaption').textContent"),
        )
        walk.picture("stream-broken")
    many = [{f"sensor with a long name {n:02}": float(np.sin(t / (5 + n))) for n in range(14)} for t in range(400)]
    with serving(ended(StreamPage(Stream(many, horizon=6), "many.csv", Pace("max"))), start=False) as url:
        walk.open(url, 360)
        walk.check(
            "twelve of fourteen targets",
            lambda: walk.window.run("document.querySelectorAll('#targets figure').length") == 12,
        )
        walk.check("the others are named", lambda: "long name 13" in walk.text("not-drawn"))
        walk.check("fit a phone", walk.window.run("document.documentElement.scrollWidth") <= 360)
        walk.picture("stream-360-many")
        walk.finish()


PARTS = {
    "stream: download": download,
    "stream: replay": replay,
    "stream: troubles": troubles,
}
