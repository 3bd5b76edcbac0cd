"""The part of the walk (`live_walk.py`) about visitors: two at once, a lost server, refused requests, and a check that
a page does not change what is learnt."""

from __future__ import annotations

import contextlib
import csv
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
from websockets.exceptions import ConnectionClosed, InvalidStatus, InvalidUpgrade
from websockets.sync.client import ClientConnection, connect

from live_walk import Walk, serving
from live_walk_stream import feed, in_sight
from live_walk_world import frames, unpack
from ptncn.live import Pace, Server, StreamPage, WorldPage
from ptncn.live.messages import LARGEST
from ptncn.live.server import MOST_VISITORS
from ptncn.streaming import Stream


def two(walk: Walk) -> None:
    """Two visitors see and change the same world; each looks at a separate part of a stream."""
    page, other = WorldPage(units=(16, 8)), walk.another()
    with serving(page) as url:
        walk.open(url)
        other.emulate(360, 740, phone=True)
        other.open(url)
        for window in (walk.window, other):
            said = "document.getElementById('connection').textContent"
            walk.check("both are counted", lambda w=window, s=said: "2 visitors share this page" in w.run(s))
        walk.window.click("[data-kind=shapes]")
        walk.check(
            "a change by one visitor reaches the other",
            lambda: other.run("document.querySelector('[data-kind=shapes]').ariaChecked === 'true'"),
        )
        other.click("#freeze")
        walk.check("and vice versa", lambda: walk.pressed("#freeze"))
        count = "document.getElementById('frames').textContent"
        numbers = [[w.run(count) for w in (walk.window, other)] for _ in range(2) if not frames(page, 30)]
        walk.check("both continue", all(a != b for a, b in zip(*numbers, strict=True)))
        other.command("Page.navigate", url="about:blank")
        walk.check("one leaves", lambda: "no other visitors" in walk.text("connection"))
        walk.finish()
    stream = StreamPage(Stream(feed(), horizon=24), "feed.csv", Pace("max"))
    stream.replay()
    with serving(stream, start=False) as url:
        walk.open(url)
        other.emulate(1280)
        other.open(url)
        walk.window.click("#all")
        walk.check("one visitor looks at all rows", lambda: in_sight(walk) == 1500)
        walk.check(
            "the other at the newest rows",
            lambda: other.run("document.getElementById('window-note').textContent").startswith("192 rows"),
        )
        other.click("#acknowledge-all")
        walk.check("an alarm is acknowledged for both", lambda: walk.text("open") == "0")


def lost(walk: Walk) -> None:
    """The server ends and is restarted at the same address."""
    page = WorldPage(units=(16, 8))
    server = Server(page)
    server.start()
    page.start()
    port = int(server.url.rstrip("/").rpartition(":")[2])
    walk.open(server.url)
    frames(page, 5)
    page.stop()
    server.stop()
    walk.check(
        "the page says that the connection is lost", lambda: "Connection lost; trying again" in walk.text("connection")
    )
    box = walk.window.run("(b => [b.top, b.bottom])(document.getElementById('connection').getBoundingClientRect())")
    walk.check("in sight", 0 <= box[0] < box[1] <= 900)
    walk.picture("world-lost", whole=False)
    page = WorldPage(units=(16, 8))
    server = Server(page, port=port)
    server.start()
    page.start()
    try:
        walk.check("it reconnects by itself", lambda: "Connected" in walk.text("connection"))
        frames(page, 30)
        walk.check(
            "and continues with the new world",
            lambda: 0 < int(walk.text("frames").split()[0].replace(",", "")) <= page.number,
        )
        walk.window.click("#pause")
        walk.check("its controls work", lambda: page.paused)
    finally:
        page.stop()
        server.stop()
    stream = StreamPage(Stream(feed(), horizon=24), "feed.csv", Pace("max"))
    stream.replay()
    server = Server(stream, port=port)
    server.start()
    try:
        shown = "['world', 'stream'].filter(id => document.getElementById(id)?.hidden === false)"
        walk.check("a stream replaces the world", lambda: walk.window.run(shown) == ["stream"])
        walk.check("with its rows", lambda: in_sight(walk) == 192)
    finally:
        server.stop()


def refused(walk: Walk) -> None:
    """Other origins and host names, malformed and oversized messages, too many connections; the world continues."""
    page = WorldPage(units=(16, 8))
    with serving(page) as url:
        home, socket = url.rstrip("/"), url.replace("http", "ws") + "live"
        for name in ("evil.example", "10.0.0.5", "0.0.0.0", "localhost.evil.example"):
            walk.check(f"a request by the name {name} is refused", _status(url, {"Host": name}) == 403)
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "https://" + home[7:] + ".evil.example"):
            walk.check(f"a request from {origin} is refused", _status(url, {"Origin": origin}) == 403)
            walk.check(f"a socket from {origin} is refused", not _opens(socket, origin))
        walk.check("a socket without an origin is refused", not _opens(socket, None))
        for path in ("secret", "../server.py", "%2e%2e/server.py", "static/main.js", "download"):
            walk.check(f"/{path} does not exist", _status(url + path) == 404)
        walk.check("an upload is refused", _status(url, data=b"x" * 1_000_000) == 405)
        _malformed(walk, page, socket, home)
        walk.check("a message above 4 kB ends the connection", _ends(socket, home, ["x" * (LARGEST + 1)]))
        walk.check("so does a binary message", _ends(socket, home, [b"x"]))
        walk.check("and a flood of messages", _ends(socket, home, ['{"type": "step"}'] * 200))
        with contextlib.ExitStack() as stack:
            opened = [stack.enter_context(visit(socket, home)) for _ in range(MOST_VISITORS)]
            walk.check(
                f"{MOST_VISITORS} visitors get in", all("hello" in str(each.recv(timeout=30)) for each in opened)
            )
            walk.check("one more is refused", _ends(socket, home, []))
            walk.window.command("Page.navigate", url=url)
            walk.check("and a browser says why", lambda: "limit of 16 visitors reached" in walk.text("connection"))
            walk.picture("world-full", whole=False)
        walk.check("a visitor can take a place that has become free", lambda: "Connected" in walk.text("connection"))
        count = page.number
        walk.check("the world continued all the time", lambda: page.number > count and page.problem is None)


def _malformed(walk: Walk, page: WorldPage, socket: str, home: str) -> None:
    rng = np.random.default_rng(0)
    wrong: list[Any] = ["", "{", "[]", "null", "1e999", "NaN", '{"type": 1}', '{"type": "nothing"}', "[" * 2000]
    for kind in page.checks:
        for value in ('"x"', "1e308", "-1", "NaN", "{}", "[[[]]]", '{"learner": 7, "part": "layer 1", "on": true}'):
            wrong.append(f'{{"type": "{kind}", "value": {value}}}')
    wrong += ["".join(map(chr, rng.integers(32, 1000, rng.integers(1, 400)))) for _ in range(200)]
    settings, runners, refusals = page.world.settings, page.runners, 0
    for start in range(0, len(wrong), 8):
        with visit(socket, home) as opened:
            several = wrong[start : start + 8]
            for each in several:
                opened.send(each)
            ends, refused_count = time.monotonic() + 20, 0
            while refused_count < len(several) and time.monotonic() < ends:
                message = opened.recv(timeout=20)
                refused_count += isinstance(message, str) and '"refused"' in message
            refusals += refused_count
    walk.check(f"{refusals} malformed messages are refused, each with a reason", refusals == len(wrong))
    walk.check("none has an effect", (page.world.settings, page.runners) == (settings, runners))


def token(walk: Walk) -> None:
    """At any address other than loopback a visitor needs the token; this test listens on all addresses."""
    page = WorldPage(units=(16, 8))
    server = Server(page, "0.0.0.0")
    server.start()
    page.start()
    try:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        bare, key = url.partition("?")[0], url.partition("?")[2]
        walk.check("the printed address has a token", len(key) > 30)
        for wrong in ("", "?token=", "?token=guess", f"?{key}x", f"?{key[:-1]}"):
            walk.check(f"“{wrong[:12]}” is refused", _status(bare + wrong) == 403)
        walk.check("a socket without it, too", not _opens(bare.replace("http", "ws") + "live", bare.rstrip("/")))
        walk.check("a file without it, too", _status(bare + "main.js") == 403)
        walk.open(url)
        walk.check("with the token the page opens and connects", lambda: "Connected" in walk.text("connection"))
        walk.check("the token leaves the address bar", walk.window.run("location.href") == bare)
        walk.check("scripts cannot read it", walk.window.run("document.cookie") == "")
        walk.window.open(bare)
        walk.check("the cookie is enough afterwards", "Connected" in walk.text("connection"))
        walk.finish()
    finally:
        server.stop()
    server = Server(page, "0.0.0.0", int(bare.rstrip("/").rpartition(":")[2]))
    server.start()
    try:
        walk.check("the page asks for a new token", lambda: "The token is missing or wrong" in walk.text("connection"))
    finally:
        page.stop()
        server.stop()


def bytes_(walk: Walk) -> None:
    """Check that what is learnt and written is the same with and without a page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "feed.csv"
        with source.open("w", newline="") as opened:
            rows = feed(20_000)
            writer = csv.DictWriter(opened, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        written = {}
        for live in (False, True):
            out = folder / f"{live}.csv"
            command = [
                "stream",
                str(source),
                "--horizon",
                "24",
                "-o",
                str(out),
                *(["--live", "--port", "0"] if live else []),
            ]
            process = subprocess.Popen(
                [sys.executable, "-m", "ptncn", *command],
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
            assert process.stderr is not None
            if live:
                address = next(match[0] for line in process.stderr if (match := re.search(r"http://\S+/", line)))
                for window in (walk.window, walk.another()):
                    window.emulate(1280)
                    window.open(address)
                    window.run("document.getElementById('all').click()")
                walk.check("two visitors watch `ptncn stream --live`", lambda: in_sight(walk) > 0, 120)
                walk.check("they cannot pause it", walk.window.run("document.getElementById('replay').hidden"))
                walk.check("all rows arrive", lambda: walk.text("rows") == "20,000", 300)
                walk.picture("stream-live", whole=False)
                process.terminate()
            process.wait()
            process.stderr.close()
            written[live] = out.read_bytes()
        size = len(written[True])
        walk.check(f"it writes the same {size:,} bytes with and without them", written[False] == written[True] != b"")
    alone, watched = (WorldPage(units=(16, 8)) for _ in range(2))
    made = [[], []]  # type: list[list[tuple[Any, bytes]]]
    with serving(watched, start=False) as url:
        walk.open(url)
        for page, published in zip((alone, watched), made, strict=True):
            for _ in range(200):
                page.tick()
                header, pixels = unpack(page.latest)
                published.append((header["point"], pixels))
        walk.check("the page saw the world", lambda: walk.text("frames").startswith("200"))
    walk.check("200 frames of the world are the same bytes with and without a page", made[0] == made[1])


def _status(url: str, headers: dict[str, str] | None = None, data: bytes | None = None) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers or {}), timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except (ConnectionError, urllib.error.URLError):
        return 405 if data else 0  # the server may close the connection before it has read everything


def visit(address: str, origin: str | None) -> ClientConnection:
    """A visitor without a browser, who does not have to read messages."""
    return connect(address, origin=origin, open_timeout=60, close_timeout=1, ping_interval=None)  # type: ignore[arg-type]


def _opens(address: str, origin: str | None) -> bool:
    try:
        with visit(address, origin):
            return True
    except (InvalidStatus, InvalidUpgrade, ConnectionClosed):
        return False


def _ends(address: str, origin: str, messages: list[Any]) -> bool:
    """Whether the server ends a connection after these messages."""
    try:
        with visit(address, origin) as socket:
            for message in messages:
                socket.send(message)
            ends = time.monotonic() + 20
            while time.monotonic() < ends:
                socket.recv(timeout=20)
    except (ConnectionClosed, InvalidStatus):
        return True
    return False


PARTS = {
    "visitors: two at once": two,
    "visitors: a lost server": lost,
    "visitors: refused": refused,
    "visitors: token": token,
    "visitors: the same bytes": bytes_,
}
