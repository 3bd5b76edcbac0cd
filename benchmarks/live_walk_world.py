"""The part of the walk (`live_walk.py`) about the moving world."""

from __future__ import annotations

import json
import struct
import time
from typing import Any

import numpy as np
import torch

from live_browser import until
from live_walk import Walk, serving
from ptncn.live import WorldPage
from ptncn.live.objects import bar
from ptncn.live.pair import Runner, rivals

SIDE = 32
STRIP = """
(() => {
  const [a, b] = ['strip', 'truth'].map(i => document.getElementById(i).getBoundingClientRect());
  return [(a.left - b.left) / b.width, a.width / b.width];
})()
"""
"""The left edge and the width of the bar that hides the middle, as shares of the picture."""
COUNT_PICTURES = """
(() => {
  window.count = 0;
  window.put ??= CanvasRenderingContext2D.prototype.putImageData;
  CanvasRenderingContext2D.prototype.putImageData = function (...all) {
    if (this.canvas.id === 'truth') window.count += 1;
    return window.put.apply(this, all);
  };
})()
"""
"""JavaScript that makes `count` the number of pictures drawn from now on."""


def weights(page: WorldPage, learner: int) -> list[torch.Tensor]:
    return [each.detach().clone() for each in page.runners[learner].learner.parameters()]  # type: ignore[attr-defined]


def same(before: list[torch.Tensor], after: list[torch.Tensor]) -> bool:
    return all(torch.equal(*pair) for pair in zip(before, after, strict=True))


def unpack(frame: bytes) -> tuple[dict[str, Any], bytes]:
    (length,) = struct.unpack("<I", frame[:4])
    return json.loads(frame[4 : 4 + length]), frame[4 + length :]


def frames(page: WorldPage, count: int) -> None:
    """Wait for this many frames."""
    goal = page.number + count
    until(lambda: page.number >= goal, f"{count} frames pass")


def shown(walk: Walk, page: WorldPage) -> bool:
    """Whether the three pictures are those that the server made; call it while the world is paused."""
    _, payload = unpack(page.latest)
    made = np.frombuffer(payload, np.uint8).reshape(3, SIDE, SIDE)
    drawn = [walk.pixels(name) for name in ("truth", "expected-0", "expected-1")]
    return all(np.array_equal(*pair) for pair in zip(made, drawn, strict=True))


def pause(walk: Walk, page: WorldPage, on: bool) -> None:
    if page.paused is not on:
        walk.window.click("#pause")
        until(lambda: page.paused is on and walk.pressed("#pause") is on, "the world pauses")


def slide(walk: Walk, name: str, keys: list[str]) -> None:
    walk.window.run(f"document.getElementById('{name}').focus()")
    walk.window.press(*keys)


def look(walk: Walk) -> None:
    page = WorldPage()
    for _ in range(400):
        page.tick()
    with serving(page) as url:
        walk.looks("world", url, lambda: "error of repeating" in walk.text("story"))
        walk.open(url)
        wanted = {"rival", "digits", "objects", "speed", "occlusion", "pad", "pad-clear", "pause", "freeze", "dream"}
        walk.tab_round("world", wanted | {"layer 1", "layer 2", "hidden layer", "snapshot", "restart", "calm"})
        walk.window.run(
            "window.said = 0; document.querySelectorAll('[role=status], [aria-live]').forEach(e => "
            "new MutationObserver(() => { window.said += 1; }).observe(e, "
            "{childList: true, characterData: true, subtree: true}))"
        )
        frames(page, 50)
        walk.check("a screen reader does not announce every frame", walk.window.run("window.said") == 0)
        walk.window.press("f")
        walk.check("but it announces that weights are frozen", lambda: walk.window.run("window.said") > 0)
        walk.finish()


def change_the_world(walk: Walk) -> None:
    page, window = WorldPage(), walk.window
    with serving(page) as url:
        walk.open(url)
        until(lambda: page.number > 5, "frames come")
        for kind in ("letters", "shapes", "clothes", "digits"):
            window.click(f"[data-kind={kind}]")
            walk.check(f"“{kind}” changes the world", lambda kind=kind: page.world.settings.kind == kind)
            checked = f"document.querySelector('[data-kind={kind}]').ariaChecked === 'true'"
            walk.check(f"“{kind}” is selected on the page", lambda checked=checked: window.run(checked))
            frames(page, 12)
            walk.picture(f"world-kind-{kind}", whole=False)
            pause(walk, page, True)
            walk.check(f"{kind}: all three pictures equal the server's", lambda: shown(walk, page))
            pause(walk, page, False)
        window.run("document.querySelector('[data-kind=digits]').focus()")
        for key, kind in (("ArrowRight", "letters"), ("ArrowDown", "shapes"), ("ArrowLeft", "letters")):
            window.press(key)
            walk.check(f"{key} chooses {kind}", lambda kind=kind: page.world.settings.kind == kind)
        for count in (1, 2, 3, 4, 5):
            slide(walk, "objects", ["Home"] + ["ArrowRight"] * (count - 1))
            walk.check(f"{count} objects", lambda count=count: page.world.settings.objects == count)
            walk.check(f"the page says {count}", lambda count=count: walk.text("objects-value") == str(count))
        slide(walk, "objects", ["Home"])
        slide(walk, "speed", ["Home"])
        walk.check("at speed 0 the world stands still", lambda: page.world.settings.speed == 0)
        walk.check("the page says “standing still”", lambda: walk.text("speed-value") == "standing still")
        frames(page, 3)
        before = page.world.scene
        pictures = [walk.pixels("truth") for _ in range(2) if not frames(page, 4)]
        walk.check("the picture stands still", page.world.scene != before or np.array_equal(*pictures))
        slide(walk, "speed", ["End"])
        walk.check("the highest speed", lambda: page.world.settings.speed == 0.3)
        slide(walk, "speed", ["Home"] + ["ArrowRight"] * 10)
        walk.check("the usual speed again", lambda: abs(page.world.settings.speed - 0.1) < 1e-9)
        slide(walk, "occlusion", ["End"])
        walk.check("24 columns are hidden", lambda: page.world.settings.occlusion == 24)
        frames(page, 10)
        left, right = bar(24)
        walk.check("nothing is seen in the hidden columns", not walk.pixels("truth")[:, left:right].any())
        close = np.allclose(window.run(STRIP), [left / SIDE, (right - left) / SIDE], atol=0.02)
        walk.check("the bar is drawn over just these columns", close)
        walk.picture("world-hidden", whole=False)
        slide(walk, "occlusion", ["Home"])
        walk.check("nothing is hidden any more", lambda: page.world.settings.occlusion == 0)
        walk.check("and the bar is gone", lambda: window.run("document.getElementById('strip').hidden"))
        window.drag("#speed", [(0.33, 0.5), (0.6, 0.5), (0.8, 0.5)])
        walk.check("a slider follows the mouse", lambda: 0.2 < page.world.settings.speed < 0.28)
        walk.finish()


def draw(walk: Walk) -> None:
    page, window = WorldPage(units=(8, 4)), walk.window
    with serving(page) as url:
        walk.open(url)
        walk.check("an empty pad cannot be used", walk.disabled("pad-use"))
        walk.check(
            "nor selected as what moves", lambda: window.run("document.querySelector('[data-kind=drawing]').disabled")
        )
        window.drag("#pad", [(0.2, 0.2), (0.8, 0.2), (0.8, 0.8), (0.2, 0.8), (0.2, 0.2)])
        drawn = walk.pixels("pad")
        walk.check(
            "the mouse draws lines without gaps", bool((drawn[6, 7:22] > 0).all() and (drawn[22, 7:22] > 0).all())
        )
        window.click("#pad-use")
        walk.check("“Let it move” makes it the world", lambda: page.world.settings.kind == "drawing")
        sent = None if page.world.drawing is None else page.world.drawing.pixels[0]
        walk.check("it equals the pad pixel by pixel", sent is not None and np.array_equal(sent, walk.pixels("pad")))
        frames(page, 10)
        walk.check("the world shows it", lambda: int((walk.pixels("truth") > 100).sum()) > 20)
        walk.picture("world-drawing", whole=False)
        window.click("#pad-clear")
        walk.check("“Clear” empties the pad", lambda: not walk.pixels("pad").any() and walk.disabled("pad-use"))
        window.click("[data-kind=digits]")
        until(lambda: page.world.settings.kind == "digits", "digits")
        window.click("[data-kind=drawing]")
        walk.check("“My drawing” brings it back", lambda: page.world.settings.kind == "drawing")
        window.run("document.getElementById('pad').focus()")
        window.press("ArrowLeft", " ", "ArrowDown", " ")
        window.press("Tab", "Enter")
        walk.check(
            "the keyboard alone draws it",
            lambda: page.world.drawing is not None and 4 <= int((page.world.drawing.pixels == 255).sum()) <= 6,
        )
        walk.open(url, 360)
        window.touch("#pad", [(0.1, 0.5), (0.3, 0.5), (0.6, 0.5), (0.9, 0.5)])
        walk.check("a finger draws", lambda: bool((walk.pixels("pad")[14, 4:24] > 0).all()))
        walk.check("and does not scroll the page", window.run("scrollX") == 0)
        walk.picture("world-360-finger", whole=False)
        window.click("#pad-use")
        walk.check("its drawing moves", lambda: int((page.world.drawing.pixels == 255).sum()) > 30)  # type: ignore[union-attr]
        walk.finish()


def do_to_the_learners(walk: Walk) -> None:
    page, window = WorldPage(), walk.window
    with serving(page) as url:
        walk.open(url)
        frames(page, 60)
        for learner, name in ((0, "P-TNCN"), (1, "LSTM")):
            before = weights(page, learner)
            frames(page, 5)
            walk.check(f"{name} learns", not same(before, weights(page, learner)))
        window.click("#freeze")
        walk.check("Freeze: the server froze the weights", lambda: page.frozen)
        walk.check("Freeze: the button is pressed, and the text says so", lambda: walk.pressed("#freeze"))
        walk.check("Freeze: the page says so", lambda: "Weights are frozen" in walk.text("story"))
        before, states = [weights(page, each) for each in (0, 1)], page.runners[0].state.clone()
        frames(page, 10)
        walk.check("Freeze: no weight changes", all(same(before[each], weights(page, each)) for each in (0, 1)))
        moved = not torch.equal(states.corrected[:, SIDE * SIDE :], page.runners[0].state.corrected[:, SIDE * SIDE :])  # type: ignore[attr-defined]
        walk.check("Freeze: states still correct themselves", moved)
        walk.picture("world-frozen", whole=False)
        window.click("#freeze")
        walk.check("Freeze again: learning continues", lambda: not same(before[0], weights(page, 0)))
        _dream(walk, page)
        _lesion(walk, page)
        _travel(walk, page)
        walk.finish()


def _dream(walk: Walk, page: WorldPage) -> None:
    window = walk.window
    window.click("#dream")
    walk.check("Dream: both learners dream", lambda: page.dreaming and walk.pressed("#dream"))
    before = [weights(page, each) for each in (0, 1)]
    until(lambda: "Both learners dream" in walk.text("story"), "the text says so")
    frames(page, 20)
    walk.check("Dream: nothing is learnt", all(same(before[each], weights(page, each)) for each in (0, 1)))
    walk.picture("world-dream", whole=False)
    window.click("#dream")
    walk.check("Dream again: the dream ends", lambda: not page.dreaming and not walk.pressed("#dream"))


def _lesion(walk: Walk, page: WorldPage) -> None:
    window = walk.window
    for learner, part in ((0, "layer 1"), (0, "layer 2"), (1, "hidden layer")):
        runner = page.runners[learner]
        button = f"[data-learner='{learner}'][data-part='{part}']"
        pause(walk, page, True)
        before = weights(page, learner)
        window.click(button)
        walk.check(f"Lesion of {part}: on", lambda r=runner, p=part, b=button: p in r.lesions and walk.pressed(b))
        held = runner._weights_of(part)
        walk.check(f"Lesion of {part}: all its weights are zero", held != {} and not any(map(torch.any, held.values())))
        pause(walk, page, False)
        frames(page, 5)
        walk.check(f"Lesion of {part}: they stay zero", not any(map(torch.any, held.values())))
        walk.check(f"Lesion of {part}: the page says so", lambda p=part: f"Lesioned: {p}" in walk.text("story"))
        pause(walk, page, True)
        window.click(button)
        walk.check(f"Lesion of {part}: off", lambda r=runner, b=button: not r.lesions and not walk.pressed(b))
        after, names = weights(page, learner), [name for name, _ in runner.learner.named_parameters()]  # type: ignore[attr-defined]
        kept = [torch.equal(b, a) for n, b, a in zip(names, before, after, strict=True) if n in held]
        walk.check(f"Lesion of {part}: the same weights are back", kept != [] and all(kept))
        pause(walk, page, False)


def _travel(walk: Walk, page: WorldPage) -> None:
    window = walk.window
    walk.check("Go back: disabled without a snapshot", walk.disabled("back"))
    pause(walk, page, True)
    window.click("#snapshot")
    walk.check("Snapshot: “Go back” is offered", lambda: not walk.disabled("back"))
    number, before = page.number, [weights(page, each) for each in (0, 1)]

    def record() -> list[tuple[Any, bytes]]:
        made = []
        for _ in range(5):
            last = page.number
            window.click("#step")
            until(lambda last=last: page.number == last + 1, "one frame")
            header, pixels = unpack(page.latest)
            made.append((header["point"], pixels))
        return made

    first = record()
    walk.check("One frame: one at a time", page.number == number + 5)
    pause(walk, page, False)
    window.click("[data-kind=clothes]")
    frames(page, 20)
    pause(walk, page, True)
    window.click("#back")
    walk.check("Go back: the frame of the snapshot is restored", lambda: page.number == number)
    walk.check("Go back: its world is restored", lambda: page.world.settings.kind == "digits")
    walk.check(
        "Go back: its weights are restored", lambda: all(same(before[each], weights(page, each)) for each in (0, 1))
    )
    walk.check("Go back: the same frames follow, byte for byte", record() == first)
    curve = "Number(document.querySelector('#errors .u-value').textContent.replaceAll(',', ''))"
    walk.check("Go back: the curves end there too", lambda: window.run(curve) <= number + 5)
    pause(walk, page, False)
    before_runners = page.runners
    window.click("#restart")
    walk.check("Start over: untrained learners", lambda: page.runners is not before_runners and page.number < 60)
    walk.check("Start over: no snapshot is left", lambda: walk.disabled("back"))


def compare(walk: Walk) -> None:
    """Check that every learner sees the same frames and is about equal in size, and that clocks count its own work."""
    page, window = WorldPage(), walk.window
    seen: dict[int, list[bytes]] = {}
    show = Runner.show

    def noting(self: Runner, x: torch.Tensor, **how: Any) -> torch.Tensor:
        seen.setdefault(id(self), []).append(x.numpy().tobytes())
        return show(self, x, **how)

    Runner.show = noting  # type: ignore[method-assign]
    try:
        with serving(page) as url:
            walk.open(url)
            listed = window.run("[...document.getElementById('rival').options].map(o => o.value)")
            walk.check("the list has every learner of the registry", sorted(listed) == sorted(rivals()))
            for name in listed:
                walk.choose("rival", name)
                walk.check(f"{name} is running", lambda name=name: page.runners[1].name == name)
                until(lambda: page.number > 8 or page.problem, "frames come")
                mine, other = page.runners
                both = list(zip(seen.get(id(mine), []), seen.get(id(other), []), strict=False))
                walk.check(f"{name} sees the same frames", len(both) >= 8 and all(a == b for a, b in both))
                near = abs(other.weights - mine.weights) <= 0.06 * mine.weights
                size = near if other.equal else walk.text("honest").find("smaller") > 0 or other.weights == 0
                walk.check(f"{name} has about as many weights, or the page says otherwise ({other.weights:,})", size)
                label = "document.querySelectorAll('#errors .u-label')[2].textContent"
                walk.check(f"{name}: its curve has its name", lambda o=other, c=label: window.run(c) == o.label)
                walk.check(f"{name}: nothing went wrong", page.problem is None)
            walk.choose("rival", "lstm-tbptt")
            until(lambda: page.runners[1].name == "lstm-tbptt" and page.number > 30, "an LSTM again")
            costs = [runner.milliseconds for runner in page.runners]
            step = page.runners[0].learner.step

            def slow(*arguments: Any, **more: Any) -> Any:
                end = time.thread_time() + 0.02
                while time.thread_time() < end:
                    pass
                return step(*arguments, **more)

            page.runners[0].learner.step = slow  # type: ignore[method-assign]
            frames(page, 120)
            mine, other = (runner.milliseconds for runner in page.runners)
            walk.check("20 ms more work is 20 ms more on its clock", 18 < mine - costs[0] < 26)
            walk.check("and not on the clock of the other", other < costs[1] + 5)
            fact = f"{mine:.0f}"
            walk.check("the page shows that cost", lambda: fact[0] in walk.text("facts-0").split(" ms")[0][-5:])
            walk.finish()
    finally:
        Runner.show = show  # type: ignore[method-assign]


def keys(walk: Walk) -> None:
    page, window = WorldPage(units=(16, 8)), walk.window
    with serving(page) as url:
        walk.open(url)
        frames(page, 10)
        for key, flag in (("p", "paused"), ("f", "frozen"), ("d", "dreaming")):
            for on in (True, False):
                window.press(key)
                walk.check(f"the key {key}: {flag} is {on}", lambda f=flag, on=on: getattr(page, f) is on)
            window.press(key, key)
            time.sleep(0.3)
            walk.check(f"the key {key} twice in quick succession: as before", getattr(page, flag) is False)
            window.press(key, key, key)
            walk.check(f"three times: {flag}", lambda f=flag: getattr(page, f) is True)
            window.press(key)
            walk.check(f"and back: not {flag}", lambda f=flag: getattr(page, f) is False)
        window.press("s")
        walk.check("the key s takes a snapshot", lambda: not walk.disabled("back"))
        number = page.state()["snapshot"]
        frames(page, 20)
        window.press("p")
        until(lambda: page.paused, "paused")
        window.press("b")
        walk.check("the key b goes back", lambda: page.number == number)
        window.press("n", "n", "n")
        walk.check("each press of the key n makes a frame", lambda: page.number == number + 3)
        window.press("p")
        frames(page, 3)
        walk.open(url, motion="reduce")
        until(lambda: page.number > 0, "frames")
        walk.check(
            "a preference for reduced motion is adopted", lambda: window.run("document.getElementById('calm').checked")
        )
        for calm in (True, False):
            if not calm:
                window.click("#calm")
            window.run(COUNT_PICTURES)
            begun, first = time.monotonic(), page.number
            time.sleep(4)
            passed = time.monotonic() - begun
            drawn, made = window.run("window.count") / passed, (page.number - first) / passed
            words = f"{drawn:.1f} pictures a second of {made:.1f}"
            walk.check(f"{'calm' if calm else 'not calm'}: {words}", drawn <= 2.3 if calm else drawn > 0.6 * made)
        walk.finish()


PARTS = {
    "world: looks": look,
    "world: change the world": change_the_world,
    "world: draw": draw,
    "world: do something to the learners": do_to_the_learners,
    "world: every learner": compare,
    "world: keys": keys,
}
