"""Use both live pages in Chromium as a visitor would, and check everything they do: `results/live/walk.json`.

    python benchmarks/live_walk.py --pictures FOLDER --axe FOLDER/axe.min.js

Each check compares what the page shows with the state of the server, which runs in this process. Key, mouse and touch
events come from the browser itself. `--pictures` saves screenshots, `--axe` runs axe-core (`npm install axe-core`) on
both pages at two sizes and in two colour schemes, and `--only` selects some parts.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
import torch

from live_browser import Browser, Window, chromium, until
from ptncn.live import Server, StreamPage, WorldPage

ROOT = Path(__file__).resolve().parents[1]
SIZES = ((1280, "light"), (1280, "dark"), (360, "light"), (360, "dark"))
P = TypeVar("P", WorldPage, StreamPage)


class Walk:
    """One part of the walk: its browser, and a list of its checks."""

    def __init__(self, browser: Browser, pictures: Path | None, axe: str | None) -> None:
        self.browser, self.pictures, self.axe = browser, pictures, axe
        self.checked: list[str] = []
        self.failed: list[str] = []
        self.window = browser.window()
        self.hosts: set[str] = set()
        """The servers that were opened."""

    def check(self, what: str, happens: Callable[[], Any] | bool, seconds: float = 30.0) -> None:
        """Record whether something is true, or becomes true in time."""
        try:
            happened = until(happens, what, seconds) if callable(happens) else happens
        except TimeoutError:
            happened = False
        self.checked.append(what)
        if not happened:
            self.failed.append(what)
        print(f"{'  ok' if happened else 'FAIL'}  {what}", flush=True)

    def picture(self, name: str, *, whole: bool = True) -> None:
        if self.pictures is not None:
            time.sleep(0.3)
            self.window.picture(self.pictures / f"{name}.png", whole=whole)

    def another(self) -> Window:
        return self.browser.window()

    def open(self, url: str, width: int = 1280, **how: Any) -> None:
        self.hosts.add(urlsplit(url).netloc)
        height = 740 if width < 600 else 900
        self.window.emulate(width, height, phone=width < 600, **how)
        self.window.open(url)

    def finish(self) -> None:
        """Check that the console is empty, and that requests went only to the servers that were opened."""
        complaints = [each for each in self.window.complaints() if "willReadFrequently" not in each]  # of `pixels`
        self.check(f"nothing in the browser's console {complaints or ''}", complaints == [])
        foreign = [each for each in self.window.requests() if urlsplit(each).netloc not in self.hosts]
        self.check(f"no request goes elsewhere {foreign or ''}", foreign == [])
        self.window.events.clear()

    def looks(self, name: str, url: str, ready: Callable[[], Any]) -> None:
        """Check, for both sizes and colour schemes, that the page fits, controls are large, and axe-core is clean."""
        for width, scheme in SIZES:
            self.open(url, width, scheme=scheme)
            until(ready, f"{name} is ready")
            time.sleep(1.0)
            self.picture(f"{name}-{width}-{scheme}")
            wide = self.window.run("document.documentElement.scrollWidth")
            self.check(f"{name} at {width} in {scheme} fits the width", wide <= width)
            beyond = self.window.run(
                "[...document.querySelectorAll('main button, main select, main a.button, main input, main canvas')]"
                ".filter(e => e.offsetParent && e.getBoundingClientRect().right > "
                "document.querySelector('main').getBoundingClientRect().right + 1).map(e => e.id || e.className)"
            )
            self.check(f"{name} at {width} in {scheme}: nothing reaches into the margin {beyond or ''}", beyond == [])
            small = self.window.run(
                "[...document.querySelectorAll('button, select, a.button, input')].filter(e => e.offsetParent && "
                "(e.closest('label') ?? e).getBoundingClientRect().height < 24).map(e => e.id || e.textContent)"
            )
            self.check(f"{name} at {width} in {scheme}: controls are at least 24 pixels high {small}", small == [])
            if self.axe is not None:
                self.window.run(self.axe)
                violations = self.window.run(
                    "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => v.id + ': ' + "
                    "v.nodes.map(n => n.target.join(' ') + ' ' + n.any.map(a => a.message).join(' ')).join(', ')))"
                )
                self.check(
                    f"{name} at {width} in {scheme}: axe-core finds nothing {violations or ''}", violations == []
                )

    def tab_round(self, name: str, wanted: set[str]) -> None:
        """Check that the Tab key reaches every control, and that each shows when it has the focus."""
        self.window.run("document.activeElement.blur(); scrollTo(0, 0)")
        reached, dim = set(), []
        for _ in range(150):
            self.window.press("Tab")
            at = self.window.run(
                "(() => { const e = document.activeElement, s = getComputedStyle(e); return [e.id || e.dataset.kind || "
                "e.dataset.part || e.dataset.row || e.dataset.name || e.tagName, s.outlineStyle !== 'none']; })()"
            )
            if at[0] == "BODY" or (at[0] in reached and at[0] == "main"):
                break
            reached.add(at[0])
            if not at[1] and at[0] != "main":
                dim.append(at[0])
        self.check(f"{name}: the Tab key reaches every control {sorted(wanted - reached)}", wanted <= reached)
        self.check(f"{name}: what has the focus shows it {dim}", dim == [])

    # Shorthand for elements of the page

    def text(self, name: str) -> str:
        return str(self.window.run(f"document.getElementById('{name}')?.textContent ?? ''"))

    def pressed(self, selector: str) -> bool:
        return bool(self.window.run(f"document.querySelector({selector!r}).getAttribute('aria-pressed') === 'true'"))

    def disabled(self, name: str) -> bool:
        return bool(self.window.run(f"document.getElementById('{name}').disabled"))

    def choose(self, name: str, value: str) -> None:
        """Choose an entry of a list. The browser's menu is not part of the page, so send the event that it sends."""
        change = f"(e => {{ e.value = {value!r}; e.dispatchEvent(new Event('change')); }})"
        self.window.run(f"{change}(document.getElementById('{name}'))")

    def pixels(self, name: str) -> np.ndarray:
        """(height, width) grey values of a canvas."""
        data = "c.getContext('2d').getImageData(0, 0, c.width, c.height).data"
        code = f"(c => [...{data}].filter((_, i) => i % 4 === 0))(document.getElementById('{name}'))"
        side = int(self.window.run(f"document.getElementById('{name}').width"))
        return np.array(self.window.run(code), np.uint8).reshape(-1, side)


@contextmanager
def serving(page: P, *, start: bool = True) -> Iterator[str]:
    """Serve a page from this process; yields its address."""
    server = Server(page)
    server.start()
    if start:
        page.start()
    try:
        yield server.url
    finally:
        page.stop()
        server.stop()


def main() -> None:
    import live_walk_replay
    import live_walk_stream
    import live_walk_visitors
    import live_walk_world

    parts: dict[str, Callable[[Walk], None]] = {
        **live_walk_world.PARTS,
        **live_walk_stream.PARTS,
        **live_walk_replay.PARTS,
        **live_walk_visitors.PARTS,
    }
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--pictures", type=Path, help="folder for screenshots")
    arguments.add_argument("--axe", type=Path, help="axe.min.js of the npm package axe-core")
    arguments.add_argument("--only", nargs="*", choices=parts, default=list(parts))
    arguments.add_argument("--out", type=Path, default=ROOT / "results" / "live" / "walk.json")
    options = arguments.parse_args()
    torch.set_num_threads(1)
    if options.pictures is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)
    axe = None if options.axe is None else options.axe.read_text()
    record: dict[str, Any] = {
        "command": "python benchmarks/live_walk.py" + (" --axe axe.min.js" if axe else ""),
        "axe": axe is not None,
        "parts": {},
    }
    with chromium() as browser:
        for name in options.only:
            print(f"\n{name}", flush=True)
            walk = Walk(browser, options.pictures, axe)
            try:
                parts[name](walk)
            except Exception:  # continue with the other parts
                walk.failed.append(traceback.format_exc(limit=-3))
                print(walk.failed[-1], flush=True)
            record["parts"][name] = {"checked": walk.checked, "failed": walk.failed}
    every = record["parts"].values()
    record["checked"], record["failed"] = (sum(len(part[what]) for part in every) for what in ("checked", "failed"))
    print(f"\n{record['checked']} checks, {record['failed']} failed")
    if options.only == list(parts):
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + os.linesep)


if __name__ == "__main__":
    main()
