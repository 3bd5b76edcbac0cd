"""The live page in a real browser: every control does what it says."""

import time

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


@pytest.fixture(scope="module")
def world():
    page = WorldPage(units=(8, 4))
    server = Server(page)
    server.start()
    page.start()
    yield page, server.url
    page.stop()
    server.stop()


@pytest.fixture(scope="module")
def stream():
    rng = np.random.default_rng(0)
    times = np.datetime64("2026-01-01", "s") + 60 * np.arange(900)
    values = np.sin(np.arange(900) / 8) + rng.normal(0, 0.05, 900) + 9.0 * (np.arange(900) % 200 == 150)
    rows = [{"time": str(time), "load": float(value)} for time, value in zip(times, values, strict=True)]
    page = StreamPage(Stream(rows, horizon=12), "feed.csv", Pace("max"))
    page.replay()
    server = Server(page)
    server.start()
    yield page, server.url
    server.stop()


def wait(check, seconds=120.0):
    """What `check` returns, once it is something."""
    ended = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < ended, "it did not happen"
        time.sleep(0.05)
    return found


def click(window, selector):
    """Click an element as soon as it is there and the page is connected."""
    ready = "document.querySelector('.connection.open') && e"
    wait(lambda: window.run(f"const e = document.querySelector({selector!r}); return !!({ready}) && !e.click()"))


def put(window, name, value):
    """Choose a value of a slider or a list."""
    window.run(
        f"const e = document.getElementById('{name}'); e.value = {value!r}; e.dispatchEvent(new Event('change'))"
    )


def drag(window, selector, start, end, modifiers=0):
    """Press the mouse at a share of an element's width and height, move it, and let go."""
    window.run(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center'}})")
    box = window.run(
        f"const b = document.querySelector({selector!r}).getBoundingClientRect(); return [b.x, b.y, b.width, b.height]"
    )
    places = [(box[0] + x * box[2], box[1] + y * box[3]) for x, y in (start, ((start[0] + end[0]) / 2, start[1]), end)]
    for kind, (x, y) in zip(
        ("mousePressed", "mouseMoved", "mouseMoved", "mouseReleased"), [*places, places[-1]], strict=True
    ):
        buttons = {"button": "left", "buttons": 1, "clickCount": 1, "modifiers": modifiers}
        window._command("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **buttons})


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", ["world", "stream"])
def test_it_fits_the_screen_in_both_schemes_and_asks_for_nothing_elsewhere(request, window, name, width, scheme):
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


def test_every_control_of_the_world_does_what_it_says(window, world):
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
    drag(window, "#pad", (0.2, 0.5), (0.8, 0.5))
    click(window, "#pad-use")
    wait(lambda: page.world.settings.kind == "drawing")
    assert (page.world.drawing.pixels > 0).sum() > 20
    for name, flag in (("freeze", "frozen"), ("dream", "dreaming"), ("pause", "paused")):
        for on in (True, False):
            click(window, f"#{name}")
            wait(lambda flag=flag, on=on: getattr(page, flag) is on)
            pressed = f"return document.getElementById('{name}').getAttribute('aria-pressed') === '{str(on).lower()}'"
            wait(lambda pressed=pressed: window.run(pressed))
    click(window, "#lesions [data-part='layer 2']")
    wait(lambda: page.runners[0].lesions == ["layer 2"])
    wait(lambda: "Lesioned: layer 2 of the P-TNCN" in window.run("return document.getElementById('story').textContent"))
    click(window, "#snapshot")
    wait(lambda: window.run("return !document.getElementById('back').disabled"))
    number = page.state()["snapshot"]
    click(window, "#lesions [data-part='layer 2']")
    wait(lambda: page.runners[0].lesions == [])
    click(window, "#back")
    wait(lambda: page.runners[0].lesions == ["layer 2"])
    assert number is not None
    put(window, "rival", "copy")
    wait(lambda: page.runners[1].name == "copy")
    wait(lambda: "has no weights" in window.run("return document.getElementById('honest').textContent"))
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
    window.run("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'n', bubbles: true}))")
    wait(lambda: page.number == number + 1)
    click(window, "#pause")
    wait(lambda: not page.paused)


def test_a_visitor_who_prefers_less_motion_gets_it(window, world):
    window.emulate(1280, motion="reduce")
    window.open(world[1])
    wait(lambda: window.run("return document.getElementById('calm').checked"))
    window.emulate(1280)


def test_a_stream_can_be_zoomed_panned_and_followed(window, stream):
    _, url = stream
    window.emulate(1280)
    window.open(url)
    note = "return document.getElementById('window-note').textContent"

    def rows():
        found = window.run(note).split(" ", 1)[0].replace(",", "")
        return int(found) if found.isdigit() else 0

    wait(lambda: rows() == 600)
    drag(window, "#anomaly .u-over", (0.2, 0.5), (0.5, 0.5))
    inside = wait(lambda: rows() if 100 < rows() < 300 else None)
    assert window.run("return document.getElementById('follow').getAttribute('aria-pressed')") == "false"
    before = window.run("return document.getElementById('download').href")
    click(window, "#earlier")
    wait(lambda: window.run("return document.getElementById('download').href") != before)
    click(window, "#out")
    wait(lambda: rows() > inside)
    click(window, "#all")
    wait(lambda: rows() == 900)
    click(window, "#follow")
    wait(lambda: rows() == 600)


def test_an_alarm_is_shown_and_acknowledged(window, stream):
    page, url = stream
    window.emulate(1280)
    window.open(url)
    count = wait(lambda: window.run("return document.querySelectorAll('#alarms li').length"))
    assert count == page.stream.stats.alarms
    click(window, "#alarms li:last-child [data-row]")
    wait(lambda: window.run("return document.getElementById('follow').getAttribute('aria-pressed')") == "false")
    opened = int(window.run("return document.getElementById('open').textContent"))
    click(window, "#alarms li:last-child button:last-child")
    wait(lambda: int(window.run("return document.getElementById('open').textContent")) == opened - 1)
    click(window, "#acknowledge-all")
    wait(lambda: window.run("return document.getElementById('open').textContent") == "0")
    assert window.console() == []
