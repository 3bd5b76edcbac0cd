"""Control Chromium through its DevTools protocol: windows, keys, mouse, touch and screenshots of the live page.

This needs Chromium and the package `websockets`, which the page itself needs too. There is no other driver whose work
could distort the measurements.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-background-timer-throttling", "--disable-renderer-backgrounding"),
    *("--disable-backgrounding-occluded-windows", "--remote-debugging-port=0"),
)
CODES = {
    "Tab": 9,
    "Enter": 13,
    " ": 32,
    "Home": 36,
    "End": 35,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}
SHIFT, CONTROL = 8, 2


class Window:
    """One page of a browser."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._number = 0
        self.events: list[dict[str, Any]] = []
        """Events that the browser reported, the oldest first."""
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.command(f"{domain}.enable")

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The response to a command; raises a RuntimeError if the browser rejects it."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=300))
            if "id" not in message:
                self.events.append(message)
            elif message["id"] == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                result: dict[str, Any] = message["result"]
                return result

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression; waits for a promise."""
        response = self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in response:
            raise RuntimeError(f"{expression}: {json.dumps(response['exceptionDetails'])[:400]}")
        return response["result"].get("value")

    def open(self, url: str) -> None:
        """Open an address, and wait until the page is connected to its server."""
        self.command("Page.navigate", url=url)
        until(lambda: self.run("document.querySelector('.connection.open') !== null"), "the page connects")

    def emulate(
        self,
        width: int,
        height: int = 900,
        *,
        scheme: str = "light",
        motion: str = "no-preference",
        phone: bool = False,
    ) -> None:
        """Set the size of the screen in pixels, and the preferences of its user."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self.command("Emulation.setDeviceMetricsOverride", **size)
        features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": motion}
        preferences = [{"name": name, "value": value} for name, value in features.items()]
        self.command("Emulation.setEmulatedMedia", features=preferences)
        self.command("Emulation.setTouchEmulationEnabled", enabled=phone, maxTouchPoints=2 if phone else 1)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """A PNG of the visible part, or of the whole page."""
        path.write_bytes(base64.b64decode(self.command("Page.captureScreenshot", captureBeyondViewport=whole)["data"]))

    # Actions of a visitor

    def place(self, selector: str, x: float = 0.5, y: float = 0.5) -> tuple[float, float]:
        """A point of an element, at a share of its width and height, after scrolling it into view.

        Waits until the element stands still, because the page itself may still be scrolling to an earlier choice.
        """
        find = (
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); "
            "e.scrollIntoView({block: 'center', behavior: 'instant'}); const b = e.getBoundingClientRect(); "
            "return [b.x, b.y, b.width, b.height]; })()"
        )
        before, box = None, self.run(find)
        while box != before:
            time.sleep(0.04)
            before, box = box, self.run(find)
        return box[0] + x * box[2], box[1] + y * box[3]

    def click(self, selector: str, x: float = 0.5, y: float = 0.5) -> None:
        """Click with the mouse. As for a real visitor, anything that covers the element gets the click instead."""
        self.drag(selector, [(x, y)])

    def drag(self, selector: str, path: Sequence[tuple[float, float]], modifiers: int = 0) -> None:
        """Press the mouse button at the first point of a path across an element, move along it, and release."""
        spots = [self.place(selector, *spot) for spot in path]
        pointer = {"button": "left", "clickCount": 1, "modifiers": modifiers}
        self._mouse("mouseMoved", spots[0])
        self._mouse("mousePressed", spots[0], buttons=1, **pointer)
        for spot in spots[1:]:
            self._mouse("mouseMoved", spot, buttons=1, **pointer)
        self._mouse("mouseReleased", spots[-1], **pointer)

    def wheel(self, selector: str, down: float, modifiers: int = 0, x: float = 0.5) -> None:
        self._mouse("mouseWheel", self.place(selector, x), deltaX=0, deltaY=down, modifiers=modifiers)

    def touch(self, selector: str, *fingers: Sequence[tuple[float, float]]) -> None:
        """Touch an element with fingers, each at the first of its points, move them along the others, and lift them."""
        for step, spots in enumerate(zip(*fingers, strict=True)):
            places = [self.place(selector, *spot) for spot in spots]
            points = [{"x": x, "y": y, "id": finger} for finger, (x, y) in enumerate(places)]
            kind = "touchMove" if step else "touchStart"
            self.command("Input.dispatchTouchEvent", type=kind, touchPoints=points)
        self.command("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def press(self, *keys: str, modifiers: int = 0) -> None:
        for key in keys:
            code = CODES.get(key) or ord(key.upper())
            text = {} if len(key) > 1 and key != "Enter" else {"text": "\r" if key == "Enter" else key}
            for kind in ("keyDown", "keyUp"):
                extra = text if kind == "keyDown" else {}
                self.command(
                    "Input.dispatchKeyEvent",
                    **{"type": kind, "key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers, **extra},
                )

    def _mouse(self, kind: str, spot: tuple[float, float], **how: Any) -> None:
        self.command("Input.dispatchMouseEvent", type=kind, x=spot[0], y=spot[1], **how)

    # What the browser reports

    def complaints(self) -> list[str]:
        """Errors and warnings of the page since it was opened."""
        self.run("0")
        wrong = ("Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(event["params"])[:300] for event in self.events if event["method"] in wrong]

    def requests(self) -> set[str]:
        """Every address that was requested by HTTP or as a WebSocket, except data inside the page."""
        self.run("0")
        addresses = [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"
        ]
        addresses += [event["params"]["url"] for event in self.events if event["method"] == "Network.webSocketCreated"]
        return {url for url in addresses if not url.startswith("data:")}


class Browser:
    """A running Chromium; each of its windows has its own size and preferences."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._sockets: list[ClientConnection] = []

    def window(self) -> Window:
        """Open another window. It is not a tab, because a browser draws nothing in background tabs."""
        with urllib.request.urlopen(f"http://{self._address}/json/version", timeout=60) as answer:
            whole = json.load(answer)["webSocketDebuggerUrl"]
        with connect(whole) as socket:
            wanted = {"url": "about:blank", "newWindow": True}
            socket.send(json.dumps({"id": 1, "method": "Target.createTarget", "params": wanted}))
            target = json.loads(socket.recv(timeout=60))["result"]["targetId"]
        address = f"ws://{self._address}/devtools/page/{target}"
        self._sockets.append(connect(address, max_size=None, max_queue=None, compression=None, ping_interval=None))
        return Window(self._sockets[-1])

    def close(self) -> None:
        for socket in self._sockets:
            socket.close()


@contextlib.contextmanager
def chromium(*flags: str, before: Sequence[str] = ()) -> Iterator[Browser]:
    """Start a separate browser, which ends with the block; `before` is a command to start it with, such as taskset."""
    if PROGRAM is None:
        raise FileNotFoundError("chromium: not found")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [*before, PROGRAM, *FLAGS, *flags, f"--user-data-dir={folder}", "about:blank"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        try:
            match = next(match for line in process.stderr if (match := re.search(r"listening on ws://([^/]+)/", line)))
            browser = Browser(match[1])
            try:
                yield browser
            finally:
                browser.close()
        finally:
            process.terminate()
            process.wait()
            process.stderr.close()


def until(check: Callable[[], Any], what: str, seconds: float = 60.0) -> Any:
    """The result of `check` once it is true."""
    ended = time.monotonic() + seconds
    while not (value := check()):
        if time.monotonic() > ended:
            raise TimeoutError(f"timed out waiting until {what}")
        time.sleep(0.03)
    return value
