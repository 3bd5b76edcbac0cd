"""Chromium by its own driver: the WebDriver protocol is JSON over HTTP, and needs no package."""

import base64
import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

DRIVER = shutil.which("chromedriver")
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
AVAILABLE = DRIVER is not None and BROWSER is not None
OPTIONS = {
    "browserName": "chrome",
    "goog:chromeOptions": {
        "binary": BROWSER,
        "args": [
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
            # nothing but the page itself
            *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
        ],
    },
    "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
}


class Browser:
    """One window."""

    patience = 120.0
    """Seconds that an answer may take."""

    def __init__(self, address: str) -> None:
        self.address = address
        session = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": OPTIONS}})
        self.address = f"{address}/session/{session['sessionId']}"
        self.debugger: str = session["capabilities"]["goog:chromeOptions"]["debuggerAddress"]

    def emulate(self, width: int, *, scheme: str = "light", motion: str = "no-preference", media: str = "") -> None:
        """Set the size of the screen and the preferences of the reader."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self._command("Emulation.setDeviceMetricsOverride", size)
        features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": motion}
        preferences = [{"name": name, "value": value} for name, value in features.items()]
        self._command("Emulation.setEmulatedMedia", {"features": preferences, "media": media})

    def open(self, url: str) -> None:
        """Open a page and wait until every picture is decoded."""
        self._ask("POST", "/url", {"url": url})
        waiting = (
            "const done = arguments[0]; Promise.all([...document.images].map(i => i.decode())).then(() => done(0))"
        )
        self.wait_for(waiting)

    def run(self, script: str) -> Any:
        """Run a script and return its result."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": []})

    def wait_for(self, script: str) -> Any:
        """Run a script and return what it passes to its last argument, a callback."""
        return self._ask("POST", "/execute/async", {"script": script, "args": []})

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            code = {"Tab": 9, "Enter": 13, " ": 32}[key]
            self._command("Input.dispatchKeyEvent", {"type": kind, "key": key, "windowsVirtualKeyCode": code})

    def console(self) -> list[str]:
        return [entry["message"] for entry in self._log("browser")]

    def requests(self) -> list[str]:
        """Every requested address, without data URLs."""
        events = [json.loads(entry["message"])["message"] for entry in self._log("performance")]
        sent = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return [url for url in sent if not url.startswith("data:")]

    def picture(self) -> bytes:
        """A PNG of the whole page."""
        taken = self._command("Page.captureScreenshot", {"captureBeyondViewport": True, "format": "png"})
        return base64.b64decode(taken["data"])

    def quit(self) -> None:
        self._ask("DELETE", "", None)

    def _log(self, kind: str) -> Any:
        return self._ask("POST", "/se/log", {"type": kind})

    def _command(self, name: str, parameters: dict[str, Any]) -> Any:
        return self._ask("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def _ask(self, method: str, path: str, body: Any) -> Any:
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.address + path, content, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=self.patience) as answer:
            return json.load(answer)["value"]


@contextmanager
def browser() -> Iterator[Browser]:
    """A window, which is closed at the end together with its driver."""
    assert DRIVER is not None
    process = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        window = Browser(_address(process.stdout))
        try:
            yield window
        finally:
            window.quit()
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def _address(lines: Iterable[str]) -> str:
    """The address of the driver: it prints the port that the system chose once it is ready."""
    for line in lines:
        match = re.search(r"started successfully on port (\d+)", line)
        if match:
            return f"http://127.0.0.1:{match[1]}"
    raise RuntimeError(f"{DRIVER} does not start")
