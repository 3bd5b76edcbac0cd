"""The server: access, rejected requests, and slow visitors, which delay neither the learner nor other visitors."""

import asyncio
import base64
import json
import re
import struct
import time
from contextlib import contextmanager
from functools import partial
from importlib.resources import files

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from ptncn.live import Pace, Server, StreamPage, WorldPage, make_app
from ptncn.live import server as module
from ptncn.live.messages import LARGEST
from ptncn.streaming import Stream

HOME = {"origin": "http://127.0.0.1"}
WAIT = 60
"""Seconds to wait for a message: the machine may be busy."""
PIXELS, EMPTY = (base64.b64encode(bytes(783) + last).decode() for last in (b"\xff", b"\0"))


def unpacked(message):
    if isinstance(message, str):
        return json.loads(message)
    (length,) = struct.unpack("<I", message[:4])
    return json.loads(message[4 : 4 + length])


@contextmanager
def serving(page):
    """Serve a page and yield a function that connects to it.

    Starlette's test client has no timeout for messages. Without pings, a busy machine cannot time out a connection.
    """
    server = Server(page)
    server.start()
    address, origin = server.url.replace("http", "ws") + "live", server.url.rstrip("/")
    try:
        yield partial(connect, address, origin=origin, open_timeout=WAIT, close_timeout=WAIT, ping_interval=None)
    finally:
        server.stop()


def until(socket, kind):
    """Wait for the next message of a type."""
    deadline = time.monotonic() + WAIT
    while True:
        message = unpacked(socket.recv(timeout=max(0, deadline - time.monotonic())))
        if message["type"] == kind:
            return message


def wait_for_commands(page, count):
    """Wait until this many commands have reached a page."""
    deadline = time.monotonic() + WAIT
    while page._commands.qsize() < count:
        assert time.monotonic() < deadline, f"expected {count} commands, got {page._commands.qsize()}"
        time.sleep(0.001)


@pytest.fixture
def page():
    return WorldPage(units=(8, 4))


@pytest.fixture
def client(page):
    with TestClient(make_app(page), base_url="http://127.0.0.1") as opened:
        yield opened


@pytest.fixture
def visit(page):
    with serving(page) as visiting:
        yield visiting


@pytest.fixture
def replay():
    return StreamPage(Stream([[float(i % 9)] for i in range(300)]), "feed.csv", Pace("max"))


def test_the_page_and_its_files_come_from_the_server_and_link_nowhere_else(client):
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    urls = re.findall(r'(?:src|href)="([^"#:]+)"', page.text)
    assert {"main.js", "page.css", "uPlot.iife.min.js", "uPlot.min.css"} <= set(urls)
    for name in {*urls, "world.js", "stream.js", "chart.js", "gestures.js", "lists.js"} - {"download"}:
        assert client.get(f"/{name}").status_code == 200
    for file in (files("ptncn.live") / "static").iterdir():
        if not file.name.startswith("uPlot"):
            assert "//" not in re.sub(r"(?m)^\s*//.*$|\s// .*$", "", file.read_text())
    assert "MIT" in client.get("/uPlot.LICENSE").text


def test_nothing_else_is_served(client):
    for path in ("/secret", "/../server.py", "/%2e%2e/server.py", "/static/main.js"):
        assert client.get(path).status_code == 404
    assert client.post("/", content=b"x" * 100_000).status_code == 405
    assert client.get("/download").status_code == 404  # a world has nothing to download


def test_every_answer_forbids_what_the_page_does_not_need(client):
    for answer in (client.get("/"), client.get("/nothing"), client.get("/", headers={"host": "evil.example"})):
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
    assert "<script>" not in client.get("/").text
    assert " style=" not in client.get("/").text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.5", "", "0.0.0.0"])
def test_requests_to_another_host_name_are_rejected(client, host):
    assert client.get("/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://127.0.0.1:9999", "null", "http://127.0.0.1.evil.example"]
)
def test_requests_from_other_origins_are_rejected(client, origin):
    assert client.get("/", headers={"origin": origin}).status_code == 403
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect("ws://127.0.0.1/live", headers={"origin": origin}),
    ):
        pass


def test_a_socket_without_an_origin_is_rejected(client):
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("ws://127.0.0.1/live"):
        pass


def test_another_address_needs_the_token(page):
    client = TestClient(make_app(page, token="open-sesame"), base_url="http://10.0.0.5")
    origin = {"origin": "http://10.0.0.5"}
    for wrong in ("/", "/?token=", "/?token=open", "/?token=open-sesame2", "/main.js", "/?token=ö"):
        assert client.get(wrong).status_code == 403
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("ws://10.0.0.5/live", headers=origin):
        pass
    first = client.get("/?token=open-sesame")
    assert first.status_code == 200
    assert {"HttpOnly", "SameSite=strict"} <= set(first.headers["set-cookie"].split("; "))
    assert client.get("/main.js").status_code == 200  # by the cookie
    with client.websocket_connect("ws://10.0.0.5/live", headers=origin) as socket:
        assert socket.receive_json()["page"] == "world"


@pytest.mark.parametrize(("host", "needs_token"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_any_address_but_loopback_gets_a_token(page, host, needs_token):
    server = Server(page, host)
    server._socket.close()
    assert (server.token is not None) == needs_token
    assert ("?token=" in server.url) == needs_token
    assert not needs_token or len(server.token) >= 32


def test_two_visitors_share_one_world(page, visit):
    with visit() as first, visit() as second:
        assert until(first, "visitors")["count"] >= 1
        assert until(second, "visitors")["count"] == 2
        for socket in (first, second):
            until(socket, "state")
        first.send(json.dumps({"type": "objects", "value": 4}))
        wait_for_commands(page, 1)
        page.tick()
        assert until(second, "state")["objects"] == 4
        assert until(second, "frame")["point"][0] == 1
        assert until(first, "frame")["point"][0] == 1
    with visit() as third:
        while until(third, "visitors")["count"] > 1:  # until both have left
            pass


WORLD = [
    *(("kind", kind) for kind in ("digits", "clothes")),
    ("objects", 1),
    ("speed", 0.05),
    ("occlusion", 6),
    ("drawing", PIXELS),
    ("rival", "copy"),
    ("freeze", True),
    ("dream", True),
    ("pause", True),
    ("step", None),
    ("snapshot", None),
    ("restart", None),
    ("lesion", {"learner": 0, "part": "layer 2", "on": True}),
]


def test_every_message_of_a_world_is_accepted(page, visit):
    assert {kind for kind, _ in WORLD} | {"back"} == set(page.checks)
    with visit() as socket:
        until(socket, "state")
        for kind, value in WORLD:
            socket.send(json.dumps({"type": kind, "value": value}))
        wait_for_commands(page, len(WORLD))
        page.tick()
        state = until(socket, "state")
    expected = {"kind": "drawing", "objects": 1, "speed": 0.05, "occlusion": 6, "frozen": True, "dreaming": True}
    assert {name: state[name] for name in expected} == expected
    assert state["learners"][1]["name"] == "copy"


STREAM = [
    ("view", {"points": 500, "last": 100}),
    ("acknowledge", 3),
    ("acknowledge_all", None),
    ("pause", True),
    ("speed", "5/s"),
]


def test_every_message_of_a_stream_is_accepted(replay):
    assert {kind for kind, _ in STREAM} == set(replay.checks)
    replay.replay()
    with serving(replay) as visit, visit() as socket:
        assert until(socket, "hello")["source"] == "feed.csv"
        for kind, value in STREAM[::-1]:
            socket.send(json.dumps({"type": kind, "value": value}))
        window = until(socket, "window")
    assert window["rows"] == 100
    assert (window["paused"], window["speed"]) == (True, "5/s")


def test_the_visible_rows_can_be_downloaded(replay):
    replay.replay()
    client = TestClient(make_app(replay), base_url="http://127.0.0.1")
    assert len(client.get("/download?start=10&end=19").text.splitlines()) == 11
    assert client.get("/download?start=ten").status_code == 400
    assert client.get("/download?start=nan").status_code == 400


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"type": "objects", "value": 99}', '{"type": "fly"}', '{"type": "kind", "value": "../x"}',
     '{"type": "back"}', '{"type": "lesion", "value": {"learner": 0, "part": "layer 9", "on": true}}',
     '{"type": "drawing", "value": "AAAA"}', f'{{"type": "drawing", "value": "{EMPTY}"}}',
     '{"type": "speed", "value": NaN}'],
)  # fmt: skip
def test_an_invalid_message_is_rejected_and_changes_nothing(page, visit, text):
    before = page.state()
    with visit() as good, visit() as bad:
        bad.send(text)
        assert until(bad, "refused")["why"]
        assert page._commands.empty()
        assert page.state() == before
        page.tick()
        assert until(bad, "frame")["point"][0] == until(good, "frame")["point"][0] == 1


FLOOD = 100 * module.MOST_MESSAGES  # above the limit per second, even if sending takes a minute
TOO_MUCH = {"long": ["x" * (LARGEST + 1)], "bytes": [b"hello"], "flood": ["{}"] * FLOOD}


@pytest.mark.parametrize("kind", TOO_MUCH)
def test_exceeding_a_limit_ends_only_that_connection(page, visit, kind):
    with visit() as good, visit() as bad:
        with pytest.raises(ConnectionClosed):  # noqa: PT012
            for message in TOO_MUCH[kind]:
                bad.send(message)
            until(bad, "no such type")  # read until the connection is closed
        page.tick()
        assert until(good, "frame")["point"][0] == 1


def test_there_is_a_limit_to_visitors(page, visit, monkeypatch):
    monkeypatch.setattr(module, "MOST_VISITORS", 1)
    with visit() as first, visit() as second:
        with pytest.raises(ConnectionClosed) as refused:
            until(second, "hello")
        assert (refused.value.rcvd.code, refused.value.rcvd.reason) == (1013, "limit of 1 visitors reached")
        assert until(first, "hello")["page"] == "world"


def pixels(page, count):
    """The pixels of the next frames."""
    frames = []
    for _ in range(count):
        page.tick()
        frames.append(page.latest[-3072:])
    return frames


def test_the_learners_compute_the_same_bytes_with_and_without_visitors(page, visit):
    alone = pixels(WorldPage(units=(8, 4)), 40)
    with visit() as reader, visit() as idle:
        watched = pixels(page, 40)
        while until(reader, "frame")["point"][0] < 40:  # earlier frames may be skipped, the last one is not
            pass
        assert idle.protocol.state.name == "OPEN"
    assert watched == alone


def test_a_visitor_who_never_reads_misses_frames_and_uses_no_memory(page):
    """Only one frame waits for a stuck browser, in addition to those in the system's buffers."""

    class Stuck:
        def __init__(self):
            self.sent, self.blocked = 0, asyncio.Event()

        async def send_text(self, text):
            pass

        async def send_bytes(self, data):
            self.sent += 1
            self.blocked.set()
            await asyncio.Event().wait()

    async def frames_sent():
        stuck, visitor = Stuck(), module.Visitor()
        task = asyncio.create_task(module._send(page, "run", stuck, visitor, [visitor]))
        page.tick()
        await asyncio.wait_for(stuck.blocked.wait(), WAIT)
        for _ in range(9):
            page.tick()
            await asyncio.sleep(2 * module.LOOK)
        task.cancel()
        return stuck.sent

    assert asyncio.run(frames_sent()) == 1
    assert page.number == 10
