"""The server: whom it lets in, what it refuses, and that a slow visitor delays neither learner nor other visitors."""

import asyncio
import base64
import json
import re
import struct
import time
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
PIXELS = base64.b64encode(bytes(784)).decode()


def unpacked(message):
    if message.get("type") == "websocket.close":
        raise WebSocketDisconnect(message["code"])
    if "text" in message and message["text"] is not None:
        return json.loads(message["text"])
    (length,) = struct.unpack("<I", message["bytes"][:4])
    return json.loads(message["bytes"][4 : 4 + length])


def visit(client, headers=HOME):
    return client.websocket_connect("ws://127.0.0.1/live", headers=headers)


def until(socket, kind, most=500):
    """The next message of a type."""
    for _ in range(most):
        message = unpacked(socket.receive())
        if message["type"] == kind:
            return message
    raise AssertionError(f"no {kind}")


@pytest.fixture
def page():
    return WorldPage(units=(8, 4))


@pytest.fixture
def client(page):
    with TestClient(make_app(page), base_url="http://127.0.0.1") as opened:
        yield opened


@pytest.fixture
def replay():
    return StreamPage(Stream([[float(i % 9)] for i in range(300)]), "feed.csv", Pace("max"))


def test_the_page_and_all_it_needs_come_from_here_and_point_nowhere_else(client):
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    wanted = re.findall(r'(?:src|href)="([^"#:]+)"', page.text)
    assert {"main.js", "page.css", "uPlot.iife.min.js", "uPlot.min.css"} <= set(wanted)
    for name in {*wanted, "world.js", "stream.js", "chart.js"} - {"download"}:
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
def test_requests_by_another_name_are_refused(client, host):
    assert client.get("/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://127.0.0.1:9999", "null", "http://127.0.0.1.evil.example"]
)
def test_other_origins_are_refused(client, origin):
    assert client.get("/", headers={"origin": origin}).status_code == 403
    with (
        pytest.raises(WebSocketDisconnect),
        visit(client, {"origin": origin}),
    ):
        pass


def test_a_socket_without_an_origin_is_refused(client):
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
        assert until(socket, "hello")["page"] == "world"


def test_a_token_is_made_for_any_address_but_loopback(page):
    for host, has in (("127.0.0.1", False), ("0.0.0.0", True)):
        server = Server(page, host)
        server._socket.close()
        assert (server.token is not None) == has
        assert ("?token=" in server.url) == has
        assert not has or len(server.token) >= 32


def test_two_visitors_share_one_world(page, client):
    with (
        visit(client) as first,
        visit(client) as second,
    ):
        assert until(first, "visitors")["count"] >= 1
        assert until(second, "visitors")["count"] == 2
        for socket in (first, second):
            until(socket, "state")
        first.send_json({"type": "objects", "value": 4})
        while page._commands.empty():
            time.sleep(0.001)
        page.tick()
        assert until(second, "state")["objects"] == 4
        assert until(second, "frame")["point"][0] == 1
        assert until(first, "frame")["point"][0] == 1
    with visit(client) as third:  # both are gone
        assert until(third, "visitors")["count"] == 1


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


def test_every_message_of_a_world_is_taken(page, client):
    assert {kind for kind, _ in WORLD} | {"back"} == set(page.checks)
    with visit(client) as socket:
        until(socket, "state")
        for kind, value in WORLD:
            socket.send_json({"type": kind, "value": value})
        while page._commands.qsize() < len(WORLD):
            time.sleep(0.001)
        page.tick()
        state = until(socket, "state")
    wanted = {"kind": "drawing", "objects": 1, "speed": 0.05, "occlusion": 6, "frozen": True, "dreaming": True}
    assert {name: state[name] for name in wanted} == wanted
    assert state["learners"][1]["name"] == "copy"


STREAM = [
    ("view", {"points": 500, "last": 100}),
    ("acknowledge", 3),
    ("acknowledge_all", None),
    ("pause", True),
    ("speed", "5/s"),
]


def test_every_message_of_a_stream_is_taken(replay):
    assert {kind for kind, _ in STREAM} == set(replay.checks)
    replay.replay()
    with TestClient(make_app(replay), base_url="http://127.0.0.1").websocket_connect(
        "ws://127.0.0.1/live", headers=HOME
    ) as socket:
        assert until(socket, "hello")["source"] == "feed.csv"
        for kind, value in STREAM[::-1]:
            socket.send_json({"type": kind, "value": value})
        window = until(socket, "window")
    assert window["rows"] == 100
    assert (window["paused"], window["speed"]) == (True, "5/s")


def test_what_is_in_sight_can_be_downloaded(replay):
    replay.replay()
    client = TestClient(make_app(replay), base_url="http://127.0.0.1")
    assert len(client.get("/download?start=10&end=19").text.splitlines()) == 11
    assert client.get("/download?start=ten").status_code == 400
    assert client.get("/download?start=nan").status_code == 400


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"type": "objects", "value": 99}', '{"type": "fly"}', '{"type": "kind", "value": "../x"}',
     '{"type": "back"}', '{"type": "lesion", "value": {"learner": 0, "part": "layer 9", "on": true}}',
     '{"type": "drawing", "value": "AAAA"}', '{"type": "speed", "value": NaN}'],
)  # fmt: skip
def test_a_wrong_message_is_refused_and_harms_nobody(page, client, text):
    before = page.state()
    with (
        visit(client) as good,
        visit(client) as bad,
    ):
        bad.send_text(text)
        assert until(bad, "refused")["why"]
        assert page._commands.empty()
        assert page.state() == before
        page.tick()
        assert until(bad, "frame")["point"][0] == until(good, "frame")["point"][0] == 1


TOO_MUCH = {"long": ["x" * (LARGEST + 1)], "bytes": [b"hello"], "flood": ["{}"] * (module.MOST_MESSAGES + 5)}


def send_and_listen(socket, messages):
    for message in messages:
        socket.send(message)
    for _ in range(500):
        socket.recv(timeout=120)


@pytest.mark.parametrize("kind", TOO_MUCH)
def test_what_is_too_much_ends_that_connection_alone(page, kind):
    server = Server(page)
    server.start()
    address = {"uri": server.url.replace("http", "ws") + "live", "origin": server.url.rstrip("/")}
    try:
        with connect(**address) as good, connect(**address) as bad:
            with pytest.raises(ConnectionClosed):
                send_and_listen(bad, TOO_MUCH[kind])
            page.tick()
            assert any(isinstance(good.recv(timeout=120), bytes) for _ in range(20))
    finally:
        server.stop()


def test_there_is_a_limit_to_visitors(client, monkeypatch):
    monkeypatch.setattr(module, "MOST_VISITORS", 1)
    with visit(client):
        with pytest.raises(WebSocketDisconnect) as refused, visit(client):
            pass
        assert refused.value.code == 1013


def made(page, count):
    frames = []
    for _ in range(count):
        page.tick()
        frames.append(page.latest[-3072:])
    return frames


def test_the_learners_compute_the_same_bytes_with_and_without_visitors(page):
    alone = made(WorldPage(units=(8, 4)), 40)
    server = Server(page)
    server.start()
    try:
        address, origin = server.url.replace("http", "ws") + "live", server.url.rstrip("/")
        with connect(address, origin=origin) as reader, connect(address, origin=origin) as sleeper:
            watched = made(page, 40)
            newest = 0
            while newest < 40:  # frames in between may be left out, the last one is not
                message = reader.recv(timeout=20)
                if isinstance(message, bytes):
                    newest = unpacked({"bytes": message})["point"][0]
            assert sleeper.protocol.state.name == "OPEN"
    finally:
        server.stop()
    assert watched == alone


def test_a_visitor_who_never_reads_misses_frames_and_keeps_no_memory(page):
    """What is waiting for a stuck browser is one frame and what the system buffers, however long it is stuck."""

    class Stuck:
        sent = 0

        async def send_text(self, text):
            pass

        async def send_bytes(self, data):
            self.sent += 1
            await asyncio.Event().wait()

    async def scene():
        stuck, visitor = Stuck(), module.Visitor()
        task = asyncio.create_task(module._send(page, stuck, visitor, [visitor]))
        for _ in range(10):
            page.tick()
            await asyncio.sleep(0.02)
        task.cancel()
        return stuck.sent

    assert asyncio.run(scene()) == 1
    assert page.number == 10
