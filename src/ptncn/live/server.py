"""Serve one page and its messages; nothing is loaded from or sent to other machines.

A visitor who reads slowly misses frames but does not delay others: each visitor has a coroutine that sends the newest
frame as soon as the previous message has been sent.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import secrets
import socket
import threading
import time
from importlib.resources import files
from typing import Any, Protocol
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, QueryParams
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from ptncn.live.messages import LARGEST, Check, Command, Visitor, number, optional, parse, text

COOKIE = "ptncn-token"
MOST_VISITORS = 16
MOST_MESSAGES = 60
"""Maximum messages of a visitor per second."""
LOOK = 0.008
"""Seconds between checks for updates."""
PATIENCE = 30.0
"""Seconds after which a visitor who accepts no message is disconnected."""
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".LICENSE": "text/plain"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Page(Protocol):
    """What a server shows."""

    name: str
    checks: dict[str, Check]

    def hello(self) -> dict[str, Any]: ...

    def receive(self, command: Command, visitor: Visitor) -> None: ...

    def news(self, visitor: Visitor) -> list[bytes | dict[str, Any]]: ...


def make_app(page: Page, *, token: str | None = None) -> ASGIApp:
    """The application.

    Arguments:
        token: the token that visitors must present; None admits anyone who uses a loopback name of this machine.
    """
    static = {file.name: file.read_bytes() for file in (files("ptncn.live") / "static").iterdir() if file.is_file()}
    visitors: list[Visitor] = []
    run = secrets.token_hex(8)  # a page that finds a different server at its address reloads itself

    async def file(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in static:
            return PlainTextResponse("There is no such page.\n", 404)
        kind = next(kind for ending, kind in TYPES.items() if name.endswith(ending))
        response = Response(static[name], media_type=kind)
        if token is not None and name == "index.html":
            response.set_cookie(COOKIE, token, httponly=True, samesite="strict")
        return response

    async def download(request: Request) -> Response:
        if not hasattr(page, "download"):
            return PlainTextResponse("There is nothing to download.\n", 404)
        try:
            wanted = _parse_range(request.query_params)
        except ValueError as error:
            return PlainTextResponse(f"{error}\n", 400)
        headers = {"Content-Disposition": 'attachment; filename="ptncn.csv"'}
        return StreamingResponse(page.download(*wanted), media_type="text/csv", headers=headers)

    async def live(websocket: WebSocket) -> None:
        if len(visitors) >= MOST_VISITORS:
            await websocket.accept()  # a browser can read why a connection was closed, but not why one was refused
            await websocket.close(1013, f"limit of {MOST_VISITORS} visitors reached")
            return
        visitor = Visitor()
        visitors.append(visitor)  # before the first await, so that the limit cannot be exceeded
        try:
            await websocket.accept()
            sending = asyncio.create_task(_send(page, run, websocket, visitor, visitors))
            try:
                code = await _receive(page, websocket, visitor)
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
        finally:
            visitors.remove(visitor)
        if code is not None:
            await websocket.close(code)

    routes = [
        Route("/", file),
        Route("/download", download),
        Route("/{name}", file),
        WebSocketRoute("/live", live),
    ]
    return Guard(Starlette(routes=routes), token)


async def _receive(page: Page, websocket: WebSocket, visitor: Visitor) -> int | None:
    """Receive a visitor's messages; an invalid one is rejected and has no other effect.

    Returns None when the visitor has left, or the code for closing the connection after a violation.
    """
    begun, count = time.monotonic(), 0
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            return None
        text = message.get("text")
        now = time.monotonic()
        begun, count = (now, 1) if now - begun >= 1 else (begun, count + 1)
        if text is None or len(text) > LARGEST or count > MOST_MESSAGES:
            return 1009 if text is not None and len(text) > LARGEST else 1008
        try:
            page.receive(parse(text, page.checks), visitor)
        except ValueError as error:
            visitor.notices.append({"type": "refused", "why": str(error)})


async def _send(page: Page, run: str, websocket: WebSocket, visitor: Visitor, visitors: list[Visitor]) -> None:
    """Send updates as fast as the visitor accepts them."""
    try:
        await _send_message(websocket, {"type": "hello", "page": page.name, "run": run, **page.hello()})
        while True:
            while visitor.notices:
                await _send_message(websocket, visitor.notices.popleft())
            if visitor.changed("visitors", len(visitors)):
                await _send_message(websocket, {"type": "visitors", "count": len(visitors)})
            for news in page.news(visitor):
                await _send_message(websocket, news)
            await asyncio.sleep(LOOK)
    except (WebSocketDisconnect, RuntimeError):  # the visitor left during a message
        return
    except TimeoutError:
        await websocket.close(1008)


async def _send_message(websocket: WebSocket, message: bytes | dict[str, Any]) -> None:
    async with asyncio.timeout(PATIENCE):
        if isinstance(message, bytes):
            await websocket.send_bytes(message)
        else:
            await websocket.send_text(json.dumps(message, ensure_ascii=False, separators=(",", ":")))


def _parse_range(query: QueryParams) -> tuple[str | None, float | None, float | None]:
    def limit(name: str) -> float | None:
        value = query.get(name)
        try:
            checked: float | None = optional(number(-1e15, 1e15))(None if value is None else float(value))
        except ValueError:
            raise ValueError(f"{name}: expected a number") from None
        return checked

    return optional(text(200))(query.get("key")), limit("start"), limit("end")


class Guard:
    """Admits only requests to this host, from this page, and with the token if there is one."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(HTTPConnection(scope), websocket=scope["type"] == "websocket")
        if refusal is None:
            await self.app(scope, receive, _with_headers(send))
        elif scope["type"] == "http":
            await PlainTextResponse(f"{refusal}\n", 403, headers=HEADERS)(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008, "reason": refusal})

    def _refusal(self, connection: HTTPConnection, *, websocket: bool) -> str | None:
        host, origin = connection.headers.get("host", ""), connection.headers.get("origin")
        if self.token is None and not is_loopback(urlsplit(f"//{host}").hostname or ""):
            return "The host name does not belong to this machine."
        if (websocket and origin is None) or (origin is not None and urlsplit(origin).netloc != host):
            return "The request comes from another page."
        if self.token is not None:
            known = connection.query_params.get("token") or connection.cookies.get(COOKIE) or ""
            if not hmac.compare_digest(known.encode(), self.token.encode()):
                return "The token is missing or wrong: open the address that `ptncn` printed."
        return None


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = Headers(raw=message["headers"]).mutablecopy()
            headers.update(HEADERS)
            message["headers"] = headers.raw
        await send(message)

    return sending


def is_loopback(host: str) -> bool:
    """
    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Server:
    """Listens at an address; `url` includes the token, which every address except loopback needs."""

    def __init__(self, page: Page, host: str = "127.0.0.1", port: int = 0) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family)
        self.token = None if is_loopback(host) else secrets.token_urlsafe(24)
        shown = f"[{host}]" if ":" in host else host
        query = "" if self.token is None else f"?token={self.token}"
        self.url = f"http://{shown}:{self._socket.getsockname()[1]}/{query}"
        config = uvicorn.Config(
            make_app(page, token=self.token),
            log_level="warning",
            access_log=False,
            ws="websockets-sansio",
            ws_max_size=LARGEST,
            ws_max_queue=4,
            ws_per_message_deflate=False,
            server_header=False,
            timeout_graceful_shutdown=1,
            lifespan="off",
        )
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Serve until Ctrl-C."""
        self._server.run(sockets=[self._socket])

    def start(self) -> None:
        """Serve in a thread, until `stop`."""
        self._thread = threading.Thread(target=self.run, name="ptncn server", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()
