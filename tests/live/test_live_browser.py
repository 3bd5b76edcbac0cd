"""The live page in a real browser: every control does what its label promises."""

import time
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
from webdriver import AVAILABLE, browser

from ptncn.live import Pace, Server, StreamPage, WorldPage
from ptncn.streaming import Stream

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="no chromium, or no chromedriver")


@pytest.fixture(scope="module")
def window():
    with browser() as opened:
        yield opened


@contextmanager
def serving(page):
    server = Server(page)
    server.start()
    page.start()
    try:
        yield page, server.url
    finally:
        page.stop()
        server.stop()


def feed(count, **more):
    """A wave with occasional jumps."""
    times = np.datetime64("2026-01-01", "s") + 60 * np.arange(count)
    noise = np.random.default_rng(0).normal(0, 0.05, count)
    values = np.sin(np.arange(count) / 8) + noise + 9.0 * (np.arange(count) % 200 == 150)
    return [{"time": str(time), "load": float(value), **more} for time, value in zip(times, values, strict=True)]


@pytest.fixture(scope="module")
def world():
    with serving(WorldPage(units=(8, 4))) as served:
        yield served


@pytest.fixture(scope="module")
def stream():
    with serving(StreamPage(Stream(feed(900), horizon=12), "feed.csv", Pace("max"))) as served:
        wait(lambda: served[0].ended)
        yield served


def wait(check, seconds=120.0):
    """Wait until `check` returns something, and return it."""
    ended = time.monotonic() + seconds
    while not (result := check()):
        assert time.monotonic() < ended, "timed out"
        time.sleep(0.05)
    return result


def click(window, selector):
    """Click an element once it exists and the page is connected."""
    ready = "document.querySelector('.connection.open') && e"
    wait(lambda: window.run(f"const e = document.querySelector({selector!r}); return !!({ready}) && !e.click()"))


def text(window, name):
    return window.run(f"return document.getElementById('{name}').textContent")


def pressed(window, name):
    return window.run(f"return document.getElementById('{name}').getAttribute('aria-pressed')") == "true"


def put(window, name, value):
    """Choose a value of a slider or a list."""
    window.run(
        f"const e = document.getElementById('{name}'); e.value = {value!r}; e.dispatchEvent(new Event('change'))"
    )


def place(window, selector):
    """Where an element is on the screen: x, y, width and height."""
    window.run(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center', behavior: 'instant'}})")
    return window.run(
        f"const b = document.querySelector({selector!r}).getBoundingClientRect(); return [b.x, b.y, b.width, b.height]"
    )


def drag(window, selector, start, end, modifiers=0):
    """Press the mouse at a share of an element's width and height, move it, and let go."""
    left, top, width, height = place(window, selector)
    spots = [start, ((start[0] + end[0]) / 2, start[1]), end, end]
    for kind, (x, y) in zip(("mousePressed", "mouseMoved", "mouseMoved", "mouseReleased"), spots, strict=True):
        how = {"button": "left", "buttons": 1, "clickCount": 1, "modifiers": modifiers}
        at = {"x": left + x * width, "y": top + y * height}
        window._command("Input.dispatchMouseEvent", {"type": kind, **at, **how})


def touch(window, selector, *fingers):
    """Touch an element with fingers that move along their places, then lift them."""
    left, top, width, height = place(window, selector)
    for step, spots in enumerate(zip(*fingers, strict=True)):
        points = [{"x": left + x * width, "y": top + y * height, "id": finger} for finger, (x, y) in enumerate(spots)]
        window._command(
            "Input.dispatchTouchEvent", {"type": "touchMove" if step else "touchStart", "touchPoints": points}
        )
    window._command("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


@contextmanager
def phone(window, url):
    window.emulate(360)
    window._command("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 2})
    try:
        window.open(url)
        wait(lambda: window.run("return document.querySelector('.connection.open') !== null"))
        yield
    finally:
        window._command("Emulation.setTouchEmulationEnabled", {"enabled": False})


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", ["world", "stream"])
def test_it_fits_the_screen_in_light_and_dark_and_loads_nothing_from_elsewhere(request, window, name, width, scheme):
    _, url = request.getfixturevalue(name)
    window.emulate(width, scheme=scheme)
    window.open(url)
    wait(lambda: window.run(f"return document.querySelectorAll('#{name} canvas').length >= 3"))
    wait(lambda: window.run("return document.querySelector('.connection.open') !== null"))
    assert window.run("return document.documentElement.scrollWidth") <= width
    heights = (
        "return [...document.querySelectorAll('button, select')].filter(b => b.offsetParent).map(b => b.offsetHeight)"
    )
    assert min(window.run(heights)) >= 24
    unnamed = (
        "return [...document.querySelectorAll('button, select, input, canvas[role]')].filter("
        "e => e.offsetParent && !(e.ariaLabel || e.textContent.trim() || e.labels?.length)).map(e => e.id)"
    )
    assert window.run(unnamed) == []
    assert window.console() == []
    assert all(each.startswith((url, url.replace("http", "ws"))) for each in window.requests())


def test_every_control_of_the_world_does_what_its_label_promises(window, world):
    page, url = world
    window.emulate(1280)
    window.open(url)
    wait(lambda: window.run("return document.querySelectorAll('#kinds button').length === 5"))
    click(window, "[data-kind=clothes]")
    wait(lambda: page.world.settings.kind == "clothes")
    for name, value in (("objects", 4), ("speed", 0.2), ("occlusion", 10)):
        window.run(
            f"const i = document.getElementById('{name}'); i.value = {value}; i.dispatchEvent(new Event('change'))"
        )
        wait(lambda name=name, value=value: getattr(page.world.settings, name) == value)
    wait(lambda: window.run("return !document.getElementById('strip').hidden"))
    assert window.run("return document.getElementById('pad-use').disabled")
    drag(window, "#pad", (0.2, 0.5), (0.8, 0.5))
    click(window, "#pad-use")
    wait(lambda: page.world.settings.kind == "drawing")
    assert (page.world.drawing.pixels > 0).sum() > 20
    click(window, "#pad-clear")
    assert window.run("return document.getElementById('pad-use').disabled")
    for name, flag, words in (
        ("freeze", "frozen", "Weights are frozen"),
        ("dream", "dreaming", "Both learners dream"),
        ("pause", "paused", "The world is paused"),
    ):
        for on in (True, False):
            click(window, f"#{name}")
            wait(lambda flag=flag, on=on: getattr(page, flag) is on)
            wait(lambda name=name, on=on: pressed(window, name) is on)
            wait(lambda words=words, on=on: (words in text(window, "story")) is on)
    click(window, "#lesions [data-part='layer 2']")
    wait(lambda: page.runners[0].lesions == ["layer 2"])
    wait(lambda: "Lesioned: layer 2 of the P-TNCN" in text(window, "story"))
    click(window, "#snapshot")
    wait(lambda: window.run("return !document.getElementById('back').disabled"))
    number = page.state()["snapshot"]
    click(window, "#lesions [data-part='layer 2']")
    wait(lambda: page.runners[0].lesions == [])
    click(window, "#back")
    wait(lambda: page.runners[0].lesions == ["layer 2"])
    assert number is not None
    before = page.runners
    click(window, "#restart")
    wait(lambda: page.runners is not before)
    put(window, "rival", "copy")
    wait(lambda: page.runners[1].name == "copy")
    wait(lambda: "has no weights" in text(window, "honest"))
    assert window.console() == []


def test_pictures_change_while_the_world_runs_and_the_keyboard_pauses_it(window, world):
    page, url = world
    window.emulate(1280)
    window.open(url)
    click(window, "[data-kind=digits]")
    picture = "return document.getElementById('truth').toDataURL()"
    first = window.run(picture)
    wait(lambda: window.run(picture) != first)
    window.run("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'p', bubbles: true}))")
    wait(lambda: page.paused)
    number = page.number

    def step():  # repeated in case the page does not know of the pause yet
        window.run("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'n', bubbles: true}))")
        return page.number > number

    wait(step)
    click(window, "#pause")
    wait(lambda: not page.paused)


def test_a_preference_for_reduced_motion_is_respected(window, world):
    window.emulate(1280, motion="reduce")
    window.open(world[1])
    wait(lambda: window.run("return document.getElementById('calm').checked"))
    window.emulate(1280)


def test_visitors_draw_with_a_finger_or_the_keyboard(window, world):
    page, url = world
    page.world.drawing = None
    with phone(window, url):
        touch(window, "#pad", [(0.1, 0.5), (0.4, 0.5), (0.7, 0.5), (0.9, 0.5)])
        assert window.run("return !document.getElementById('pad-use').disabled")
        click(window, "#pad-use")
        wait(lambda: page.world.drawing is not None)
        rows, columns = np.nonzero(page.world.drawing.pixels[0] == 255)
        assert columns.min() <= 3  # a single line across the pad
        assert columns.max() >= 24
        assert set(np.diff(np.unique(columns))) == {1}
        assert set(rows) <= {13, 14, 15}
        assert window.run("return scrollX") == 0
    click(window, "#pad-clear")
    keys = "".join(f"p.dispatchEvent(new KeyboardEvent('keydown', {{key: {key!r}}}));" for key in ("ArrowUp", " "))
    window.run(f"const p = document.getElementById('pad'); p.focus(); {keys}")
    click(window, "#pad-use")
    wait(lambda: (page.world.drawing.pixels == 255).sum() == 4)  # one dot of the pen


def rows_in_sight(window):
    result = text(window, "window-note").split(" ", 1)[0].replace(",", "")
    return int(result) if result.isdigit() else 0


def test_a_stream_is_zoomed_moved_and_followed(window, stream):
    window.emulate(1280)
    window.open(stream[1])
    rows = partial(rows_in_sight, window)
    download_url = partial(window.run, "return document.getElementById('download').href")
    wait(lambda: rows() == 120)
    click(window, "#all")
    wait(lambda: rows() == 900)
    drag(window, "#anomaly .u-over", (0.2, 0.5), (0.5, 0.5))
    inside = wait(lambda: rows() if 200 < rows() < 300 else None)
    assert not pressed(window, "follow")
    for name in ("earlier", "later"):
        before = download_url()
        click(window, f"#{name}")
        wait(lambda before=before: download_url() != before)
    before = download_url()
    drag(window, "#anomaly .u-over", (0.7, 0.5), (0.3, 0.5), modifiers=8)  # with shift
    wait(lambda: download_url() != before)
    assert abs(rows() - inside) <= 2
    click(window, "#out")
    wait(lambda: rows() > 1.5 * inside)
    click(window, "#in")
    wait(lambda: rows() < 1.1 * inside)
    left, top, width, height = place(window, "#anomaly .u-over")
    wheel = {"type": "mouseWheel", "x": left + width / 2, "y": top + height / 2, "deltaX": 0}
    window._command("Input.dispatchMouseEvent", {**wheel, "deltaY": -120, "modifiers": 2})  # with control
    wait(lambda: rows() < 0.9 * inside)
    window.run("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'f', bubbles: true}))")
    wait(lambda: rows() == 120)
    assert pressed(window, "follow")


def test_fingers_move_a_chart_and_zoom_it(window, stream):
    with phone(window, stream[1]):
        wait(lambda: rows_in_sight(window) == 120)
        touch(window, "#anomaly .u-over", [(0.3, 0.5), (0.5, 0.5), (0.8, 0.5)])
        wait(lambda: not pressed(window, "follow"))
        moved = wait(lambda: rows_in_sight(window))
        touch(window, "#anomaly .u-over", [(0.4, 0.5), (0.3, 0.5), (0.1, 0.5)], [(0.6, 0.5), (0.7, 0.5), (0.9, 0.5)])
        wait(lambda: 0 < rows_in_sight(window) < 0.5 * moved)


def test_a_replay_is_paused_and_changes_its_speed(window):
    with serving(StreamPage(Stream(feed(9000)), "feed.csv", Pace("20/s"))) as (page, url):
        window.emulate(1280)
        window.open(url)
        wait(lambda: rows_in_sight(window) > 2)
        assert window.run("return document.getElementById('pace').selectedOptions[0].text") == "20 rows a second"
        click(window, "#stream-pause")
        wait(lambda: page.pace.paused and pressed(window, "stream-pause"))
        wait(lambda: text(window, "stream-story").startswith("Paused."))
        put(window, "pace", "600x")
        wait(lambda: page.pace.speed == "600x")
        click(window, "#stream-pause")
        wait(lambda: not page.pace.paused)


def test_keys_are_chosen_from_a_list(window):
    rows = [row for pair in zip(feed(300, device="a"), feed(300, device="b"), strict=True) for row in pair]
    with serving(StreamPage(Stream(rows, key="device"), "feed.csv", Pace("max"))) as (_, url):
        window.emulate(1280)
        window.open(url)
        for name in ("a", "b"):
            click(window, f"#keys [data-name={name}] button")
            wait(lambda name=name: f"Showing {name}." in text(window, "stream-story"))
            assert f"key={name}" in wait(lambda: window.run("return document.getElementById('download').search"))
        count = int(wait(lambda: window.run("return document.querySelector('[data-name=a] .badge').textContent")))
        listed = "return [...document.querySelectorAll('#alarms .what')].map(e => e.firstChild.data)"
        assert count == sum(each.startswith("a:") for each in window.run(listed)) > 0


def test_an_alarm_is_shown_and_acknowledged(window, stream):
    page, url = stream
    window.emulate(1280)
    window.open(url)
    count = wait(lambda: window.run("return document.querySelectorAll('#alarms li').length"))
    assert count == page.stream.stats.alarms
    assert window.run("return document.title").startswith(f"({count}) feed.csv")
    click(window, "#alarms li:last-child [data-row]")
    wait(lambda: not pressed(window, "follow"))
    oldest = window.run("return Number(document.querySelector('#alarms li.chosen [data-row]').dataset.row)")
    wait(
        lambda: window.run(
            f"return Number(document.getElementById('download').href.match(/start=(\\d+)/)[1]) % 86400 / 60 <= {oldest}"
        )
    )
    (why,) = (alarm.why for alarm in page._alarms if alarm.row == oldest)
    assert why in text(window, "chosen")
    click(window, "#alarms li:last-child button:last-child")
    wait(lambda: text(window, "open") == str(count - 1))
    click(window, "#acknowledge-all")
    wait(lambda: text(window, "open") == "0")
    assert window.run("return document.title").startswith("feed.csv")
    assert window.console() == []
