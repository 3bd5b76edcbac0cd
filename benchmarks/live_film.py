"""Record an animation of both live pages for the README: `docs/figures/live.webp`.

    python benchmarks/live_film.py

Both learners first see 900 frames. Then a visitor uses the controls, and finally a stream with two planted jumps is
replayed.
"""

from __future__ import annotations

import base64
import io
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from live_browser import Window, chromium
from ptncn.live import Pace, Server, StreamPage, WorldPage
from ptncn.streaming import Stream

ROOT = Path(__file__).resolve().parents[1]
WIDTH, HEIGHT = 1100, 760
SHOWN = 660
"""Width of the animation in pixels."""
PERIOD = 0.2
"""Seconds between two frames."""


def main() -> None:
    torch.set_num_threads(1)
    pictures = []
    with chromium() as browser:
        window = browser.window()
        window.emulate(WIDTH, HEIGHT)
        world = WorldPage()
        for _ in range(900):
            world.tick()
        presses = {6: "[data-kind=clothes]", 13: "#dream", 19: "#dream"}
        pictures += film(window, world, 24, presses)
        stream = StreamPage(Stream(feed(), horizon=24), "feed.csv", Pace("max"))
        while stream.stream.stats.observations < 1400:
            results = stream.stream.read(256)
            assert results is not None
            stream.observe(results)
        assert stream.pace is not None
        stream.pace.set("25/s")
        pictures += film(window, stream, 22, {2: "#in", 14: "#alarms [data-row]", 19: "#follow"})
    path = ROOT / "docs" / "figures" / "live.webp"
    first, *others = pictures
    first.save(path, save_all=True, append_images=others, duration=round(1000 * PERIOD), loop=0, quality=55, method=6)
    print(f"{path}: {path.stat().st_size / 1e6:.2f} MB, {len(pictures)} pictures")


def film(window: Window, page: WorldPage | StreamPage, count: int, presses: dict[int, str]) -> list[Image.Image]:
    server = Server(page)
    server.start()
    page.start()
    try:
        window.open(server.url)
        time.sleep(3)
        return [picture(window, lambda number=number: press(window, presses.get(number))) for number in range(count)]
    finally:
        page.stop()
        server.stop()


def press(window: Window, selector: str | None) -> None:
    if selector is not None:
        window.run(f"void document.querySelector({selector!r})?.click()")


def picture(window: Window, before: Callable[[], None]) -> Image.Image:
    begun = time.monotonic()
    before()
    taken = window.command("Page.captureScreenshot", format="jpeg", quality=85)
    image = Image.open(io.BytesIO(base64.b64decode(taken["data"]))).convert("RGB")
    time.sleep(max(0.0, begun + PERIOD - time.monotonic()))
    return image.resize((SHOWN, SHOWN * HEIGHT // WIDTH), Image.Resampling.LANCZOS)


def feed() -> list[dict[str, object]]:
    rng = np.random.default_rng(1)
    t = np.arange(3000)
    load = 400 + 120 * np.sin(2 * np.pi * t / 144) + 30 * np.sin(2 * np.pi * t / 36) + rng.normal(0, 8, len(t))
    for jump in (1340, 1425, 1480):
        load[jump : jump + 5] += 160
    times = np.datetime64("2026-03-01", "s") + 600 * t
    return [{"time": str(each), "load": float(value)} for each, value in zip(times, load, strict=True)]


if __name__ == "__main__":
    main()
