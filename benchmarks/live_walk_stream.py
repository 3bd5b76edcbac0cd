"""The part of the walk (`live_walk.py`) through the page of a stream."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

from live_browser import CONTROL, SHIFT, until
from live_walk import Walk, serving
from ptncn.live import Pace, StreamPage
from ptncn.live.track import Track, X
from ptncn.streaming import Stream
from ptncn.streaming.drift import PageHinkley

STEP = 600.0

LEGEND = """
Object.fromEntries([...document.querySelectorAll('#targets figure:first-child .u-series')].map(
  e => [e.querySelector('.u-label').textContent, e.querySelector('.u-value').textContent]))
"""
"""The values below the first chart, by name."""
COUNT = """
(() => {
  const c = document.querySelector('#anomaly canvas');
  const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
  let n = 0;
  for (let i = 0; i < d.length; i += 4) if (%s) n += 1;
  return n;
})()
"""
"""The number of pixels with a certain colour in the chart of anomaly scores."""


def feed(count: int = 1500, *, seed: int = 1, stamped: bool = True, **more: str) -> list[dict[str, Any]]:
    """A day and an hour of rows, with two jumps, a lasting change, and noise."""
    rng, t = np.random.default_rng(seed), np.arange(count)
    load = 400 + 120 * np.sin(2 * np.pi * t / 144) + 30 * np.sin(2 * np.pi * t / 36) + rng.normal(0, 8, count)
    heat = 20 + 5 * np.sin(2 * np.pi * t / 144 + 1) + rng.normal(0, 0.3, count) + 6 * (t >= 900)
    for jump in (500, 1340):
        load[jump : jump + 5] += 160
    times = np.datetime64("2026-03-01", "s") + (STEP * t).astype(int)
    rows = zip(times, load, heat, strict=True)
    stamp = [{"time": str(at), "load": float(a), "temperature": float(b), **more} for at, a, b in rows]
    return stamp if stamped else [{name: row[name] for name in row if name != "time"} for row in stamp]


def ended(page: StreamPage) -> StreamPage:
    """The page after the end of the feed."""
    page.replay()
    return page


def window_of(walk: Walk) -> tuple[float, float]:
    """The start and the end of the visible rows, as in the page's download link."""
    query = parse_qs(urlsplit(walk.window.run("document.getElementById('download').href")).query)
    return float(query["start"][0]), float(query["end"][0])


def in_sight(walk: Walk) -> int:
    count = walk.text("window-note").split(" ", 1)[0].replace(",", "")
    return int(count) if count.isdigit() else 0


def look(walk: Walk) -> None:
    page = ended(StreamPage(Stream(feed(), horizon=24, drift=PageHinkley(threshold=8.0)), "feed.csv", Pace("max")))
    with serving(page, start=False) as url:
        walk.looks("stream", url, lambda: in_sight(walk) == 192)
        walk.open(url)
        until(lambda: in_sight(walk) == 192, "rows")
        wanted = {"follow", "earlier", "later", "in", "out", "all", "download", "acknowledge-all"}
        walk.tab_round("stream", wanted | {str(page._alarms[-1].row)})
        walk.finish()


def charts(walk: Walk) -> None:
    """Check that the page draws what the stream computed."""
    page = ended(StreamPage(Stream(feed(), horizon=24, drift=PageHinkley(threshold=8.0)), "feed.csv", Pace("max")))
    track, window = page._tracks[""], walk.window
    with serving(page, start=False) as url:
        walk.open(url)
        walk.check("the newest 192 rows are in view", lambda: in_sight(walk) == 192)
        names = window.run("[...document.querySelectorAll('#targets h2')].map(e => e.textContent)")
        walk.check("each target has a chart", names == ["load", "temperature"])
        newest = track.ring.last()[0]
        shown = window.run(LEGEND)
        for label, value in (("observed", newest[6]), ("expected", newest[7]), ("forecast", track.fan[0, 0, 0])):
            walk.check(f"{label} equals the stream's", np.isclose(float(shown[label]), value, rtol=1e-4))
        _fan(walk, track)
        stats = page.stream.stats
        walk.check("rows are counted", walk.text("rows") == f"{stats.observations:,}")
        walk.check(
            "the error relative to copying equals the stream's",
            walk.text("against") == f"{round(100 * stats.against_copy)} %",
        )
        walk.check("alarms are counted", int(walk.text("open")) == stats.alarms > 0)
        walk.check("drifts are counted", int(walk.text("drifts")) == stats.drifts > 0)
        walk.check("the page says that the feed has ended", "has ended" in walk.text("stream-story"))
        window.click("#all")
        walk.check("“All” shows all", lambda: in_sight(walk) == 1500)
        walk.check("alarms are marked in red", window.run(COUNT % "d[i] > 170 && d[i + 1] < 80 && d[i + 2] < 80") > 50)
        purple = COUNT % "Math.abs(d[i] - 123) < 30 && d[i + 1] < 110 && Math.abs(d[i + 2] - 160) < 30"
        walk.check("drifts are marked in purple", window.run(purple) > 20)
        walk.picture("stream-all")
        window.run("document.querySelector('#targets .u-over').scrollIntoView({block: 'center'})")
        window._mouse("mouseMoved", window.place("#targets .u-over", 0.3))
        at = "document.querySelector('#targets .u-value').textContent"
        walk.check("the legend follows the pointer", lambda: window.run(at).startswith("2026-03-04"))
        walk.picture("stream-pointer", whole=False)
        walk.finish()


def _fan(walk: Walk, track: Track) -> None:
    """Check the forecast and both bands, from the values in the legend when the pointer is on a future row."""
    window, over = walk.window, "#targets figure:first-child .u-over"
    for ahead in (1, 12, 24):
        share = (191 + ahead) / (191 + 24)  # of 192 rows in view and 24 forecast
        window._mouse("mouseMoved", window.place(over, min(share, 0.9995)))
        at = str(np.datetime64(int(track.ring.last()[0, X] + ahead * STEP), "s")).replace("T", " ")
        walk.check(f"{ahead} steps ahead is {at}", lambda at=at: window.run(LEGEND)["at"] == at)
        shown = window.run(LEGEND)
        for part, label in enumerate(
            ("forecast", "ahead, low", "ahead, high", "ahead, middle, low", "ahead, middle, high")
        ):
            value = track.fan[ahead - 1, part, 0]
            walk.check(f"{label} is {value:.1f}", bool(np.isclose(float(shown[label]), value, rtol=1e-4)))
        low, inner_low, middle, inner_high, high = (track.fan[ahead - 1, part, 0] for part in (1, 3, 0, 4, 2))
        walk.check("the dark band lies within the light one", bool(low <= inner_low <= middle <= inner_high <= high))
    window._mouse("mouseMoved", (5, 5))


def zoom(walk: Walk) -> None:
    page = ended(StreamPage(Stream(feed(), horizon=24), "feed.csv", Pace("max")))
    window = walk.window
    with serving(page, start=False) as url:
        walk.open(url)
        until(lambda: in_sight(walk) == 192, "rows")
        over = "#anomaly .u-over"
        window.click("#in")
        walk.check("+ shows half as many rows", lambda: in_sight(walk) == 96)
        window.click("#out")
        walk.check("− shows them again", lambda: in_sight(walk) == 192)
        window.press("+", "+")
        walk.check("the key + twice in quick succession: a quarter", lambda: in_sight(walk) == 48)
        window.press("-", "-", "-")
        walk.check("the key − three times: twice as many", lambda: in_sight(walk) == 384)
        window.press("f")
        walk.check("the key F follows again", lambda: in_sight(walk) == 192 and walk.pressed("#follow"))
        start, end = window_of(walk)
        span = end - start + 24 * STEP
        window.press("ArrowLeft", "ArrowLeft", "ArrowLeft")
        walk.check(
            "← three times in quick succession: 1.2 windows back",
            lambda: abs(window_of(walk)[0] - (start - 1.2 * span)) < 2,
        )
        walk.check("and it no longer follows", not walk.pressed("#follow"))
        window.press("ArrowRight")
        walk.check("→ moves 0.4 windows forward", lambda: abs(window_of(walk)[0] - (start - 0.8 * span)) < 2)
        window.click("#earlier")
        walk.check("the button ←", lambda: abs(window_of(walk)[0] - (start - 1.2 * span)) < 2)
        window.click("#later")
        window.click("#later")
        window.click("#later")
        window.click("#later")
        walk.check("→ as far as the end follows again", lambda: walk.pressed("#follow"))
        window.click("#all")
        until(lambda: in_sight(walk) == 1500, "all")
        window.drag(over, [(0.2, 0.5), (0.4, 0.5), (0.5, 0.5)])
        walk.check("dragging zooms to the marked rows", lambda: 420 < in_sight(walk) < 500)
        before = window_of(walk)
        window.drag(over, [(0.7, 0.5), (0.5, 0.5), (0.3, 0.5)], SHIFT)
        walk.check(
            "Shift and drag moves by the dragged distance",
            lambda: (
                abs(window_of(walk)[0] - before[0] - 0.4 * (before[1] - before[0])) < 0.03 * (before[1] - before[0])
            ),
        )
        rows = in_sight(walk)
        window.wheel(over, -120, CONTROL)
        walk.check("Ctrl and wheel zooms in", lambda: abs(in_sight(walk) - 0.8 * rows) < 4)
        window.wheel(over, 120, CONTROL)
        walk.check("and out", lambda: abs(in_sight(walk) - rows) < 4)
        before = window_of(walk)
        window.wheel(over, 120, SHIFT)
        walk.check("Shift and wheel moves", lambda: window_of(walk)[0] > before[0])
        before = window_of(walk)
        window.run("scrollTo(0, 0)")
        window.wheel(over, 120)
        time.sleep(0.4)
        walk.check("the wheel alone scrolls the page and does not change the chart", window_of(walk) == before)
        x, y = window.place(over)
        for count in (1, 2):
            for kind in ("mousePressed", "mouseReleased"):
                window._mouse(kind, (x, y), button="left", clickCount=count)
        walk.check("a double click follows", lambda: walk.pressed("#follow") and in_sight(walk) == 192)
        walk.open(url, 360)
        until(lambda: in_sight(walk) == 192, "rows")
        window.touch(over, [(0.3, 0.5), (0.5, 0.5), (0.8, 0.5)])
        walk.check("a finger moves", lambda: not walk.pressed("#follow") and in_sight(walk) > 0)
        rows = in_sight(walk)
        window.touch(over, [(0.4, 0.5), (0.3, 0.5), (0.1, 0.5)], [(0.6, 0.5), (0.7, 0.5), (0.9, 0.5)])
        walk.check("two fingers zoom", lambda: 0 < in_sight(walk) < 0.5 * rows)
        walk.picture("stream-360-zoomed", whole=False)
        window.click("#follow")
        walk.check("“Follow now” follows", lambda: in_sight(walk) == 192)
        walk.finish()


def alarms(walk: Walk) -> None:
    page = ended(StreamPage(Stream(feed(), horizon=24), "feed.csv", Pace("max")))
    window = walk.window
    with serving(page, start=False) as url:
        walk.open(url)
        listed = "[...document.querySelectorAll('#alarms [data-row]')].map(e => Number(e.dataset.row))"
        walk.check(
            "the list has every alarm, the newest first",
            lambda: window.run(listed) == [a.row for a in reversed(page._alarms)],
        )
        count = len(page._alarms)
        walk.check("the title counts them", window.run("document.title") == f"({count}) feed.csv · ptncn live")
        for alarm in list(page._alarms)[:: max(1, count // 4)]:
            window.click(f"#alarms [data-row='{alarm.row}']")
            walk.check(
                f"“Show” jumps to row {alarm.row}", lambda a=alarm: window_of(walk)[0] < a.x < window_of(walk)[1] + STEP
            )
            walk.check(
                "with the alarm in the middle",
                lambda a=alarm: abs(window_of(walk)[0] - (a.x - 60 * STEP)) < STEP or a.x < 60 * STEP,
            )
            walk.check("says why", lambda a=alarm: a.why in walk.text("chosen"))
            chosen = "document.querySelector('#alarms .chosen [data-row]').dataset.row"
            walk.check("and marks it in the list", lambda a=alarm, c=chosen: window.run(c) == str(a.row))
        walk.picture("stream-alarm", whole=False)
        first = page._alarms[0]
        window.click(f"#alarms [data-row='{first.row}']")
        time.sleep(0.5)
        start, end = window_of(walk)
        window.run("document.querySelectorAll('#alarms .chosen').forEach(e => e.classList.remove('chosen'))")
        window.click("#anomaly .u-over", (first.x - start) / (end - start), 0.06)
        walk.check("a click on its ▼ chooses it", lambda: first.why in walk.text("chosen"))
        window.click(f"#alarms li[data-name='{first.row}'] button:last-child")
        walk.check("“OK” acknowledges it", lambda: first.acknowledged and walk.text("open") == str(count - 1))
        off = f"document.querySelector(\"#alarms li[data-name='{first.row}'] button:last-child\").disabled"
        walk.check("once", lambda: window.run(off))
        walk.picture("stream-acknowledged", whole=False)
        window.run(f"document.querySelector(\"#alarms [data-row='{page._alarms[-1].row}']\").focus()")
        window.press("Enter")
        walk.check("Enter on “Show” jumps too", lambda: page._alarms[-1].why in walk.text("chosen"))
        window.press("Tab", " ")
        walk.check("Tab and Space acknowledge", lambda: page._alarms[-1].acknowledged)
        window.click("#acknowledge-all")
        walk.check(
            "all are acknowledged", lambda: walk.text("open") == "0" and all(a.acknowledged for a in page._alarms)
        )
        walk.check("the title no longer counts them", lambda: window.run("document.title") == "feed.csv · ptncn live")
        walk.check("and the button is disabled", lambda: walk.disabled("acknowledge-all"))
        walk.finish()


def keys(walk: Walk) -> None:
    """Check the list of keys, which starts with those that have open alarms."""
    names = [f"pump {number}" for number in range(6)]
    series = [feed(900, seed=seed, device=name) for seed, name in enumerate(names)]
    for row in series[3][600::30]:
        row["load"] += 500.0
    rows = [row for moment in zip(*series, strict=True) for row in moment]
    page = ended(StreamPage(Stream(rows, key="device", horizon=12), "fleet.csv", Pace("max")))
    window = walk.window
    with serving(page, start=False) as url:
        walk.open(url)
        listed = "[...document.querySelectorAll('#keys li')].map(e => e.dataset.name)"
        worst = {name: sum(a.severity for a in page._alarms if a.key == name and not a.acknowledged) for name in names}
        order = sorted(names, key=lambda name: worst[name], reverse=True)
        walk.check(
            "keys are sorted by the severity of open alarms",
            lambda: window.run(listed)[0] == order[0] and set(window.run(listed)) == set(names),
        )
        walk.check(f"the one with planted faults comes first ({order[0]})", order[0] == "pump 3")
        walk.check(
            "and is shown",
            lambda: "Showing pump 3, the key with the most severe alarms." in walk.text("stream-story"),
        )
        walk.picture("stream-keys")
        window.click("#keys [data-name='pump 1'] button")
        walk.check("another key is chosen", lambda: "Showing pump 1." in walk.text("stream-story"))
        walk.check("and marked", lambda: walk.pressed("#keys [data-name='pump 1'] button"))
        newest = page._tracks["pump 1"].ring.last()[0, 6]
        value = "[...document.querySelectorAll('#targets figure:first-child .u-value')].at(-2).textContent"
        walk.check("with its own rows", lambda: np.isclose(float(window.run(value)), newest, rtol=1e-4))
        badge = "document.querySelector(\"#keys [data-name='pump 3'] .badge\").textContent"
        walk.check("a badge counts open alarms", int(window.run(badge)) == page._tracks["pump 3"].open_alarms)
        window._mouse("mouseMoved", (5, 5))
        window.click("#acknowledge-all")
        walk.check(
            "after acknowledging, no key has open alarms",
            lambda: all(not t.open_severity for t in page._tracks.values()),
        )
        walk.check(
            "and the badges are gone",
            lambda: window.run("[...document.querySelectorAll('#keys .badge')].every(e => e.hidden)"),
        )
        walk.check(
            "a few keys need no search", walk.window.run("document.getElementById('find').offsetParent === null")
        )
        walk.finish()
    many = [{"device": f"pump {n:03}", "load": float(np.sin(t / (5 + n)))} for t in range(12) for n in range(130)]
    page = ended(StreamPage(Stream(many, key="device"), "many.csv", Pace("max")))
    with serving(page, start=False) as url:
        walk.open(url)
        walk.check("for 130 keys the page says that 30 are not listed", lambda: "30 more" in walk.text("more-keys"))
        window.click("#find")
        window.press(*"PUMP 12")
        wanted = [f"pump {n:03}" for n in range(120, 130)]
        walk.check("a part of a name finds ten keys", lambda: sorted(window.run(listed)) == wanted)
        window.click("#keys [data-name='pump 127'] button")
        walk.check("one of them is chosen", lambda: "Showing pump 127." in walk.text("stream-story"))
        walk.picture("stream-find", whole=False)
        window.click("#find", 0.3)
        window.press("x")
        walk.check("the page says when no key is found", lambda: "No key" in walk.text("more-keys"))
        walk.finish()


PARTS = {
    "stream: looks": look,
    "stream: charts": charts,
    "stream: zoom and pan": zoom,
    "stream: alarms": alarms,
    "stream: keys": keys,
}
