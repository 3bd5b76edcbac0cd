"""`ptncn demo`: two learners live through a changing stream, and leave a page to look at."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ptncn.demo import words
from ptncn.demo.contestants import LSTM, NAMES, PTNCN, contestants, count_weights
from ptncn.demo.figures import pictures
from ptncn.demo.findings import findings
from ptncn.demo.life import Moment, Size, live
from ptncn.demo.page import page
from ptncn.demo.worlds import LIFE
from ptncn.files import write_atomically

FULL = Size(scenes=375, looks=50, units=(200, 100))
QUICK = Size(scenes=6, looks=2, units=(20, 10))
LINES = (
    "Digits come. Neither of the two has ever seen anything.",
    "Letters come, for the first time, and weights go on learning.",
    "Shapes come, for the first time.",
    "Digits are back. What is left of what was known about them?",
)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page and its pictures.")] = Path("demo"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Seconds instead of two minutes, and hardly anything learnt.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the stream and of the initial weights.")] = 0,
) -> None:
    """Watch a P-TNCN and an LSTM of equal size live through digits, letters, shapes, and digits again.

    Takes about two minutes, needs no download, and leaves one page that tells the story, with its film and figures.
    """
    torch.set_num_threads(1)  # threads that wait for each other crawl on a busy machine
    console = Console(highlight=False)
    command = f"ptncn demo --seed {seed}{' --quick' if quick else ''}"
    try:
        out.mkdir(parents=True, exist_ok=True)
        record = experience(QUICK if quick else FULL, seed, command, console)
        console.print("\nDrawing the page …")
        write(record, out)
    except OSError as error:
        print(f"Error: {out}: cannot be written: {error.strerror or error}", file=sys.stderr)
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        print("Stopped. Nothing was written.", file=sys.stderr)
        raise typer.Exit(130) from None
    console.print(f"\n{words.plain_headline(record)}\n\nLook at it:")
    console.print(f"  {out / 'index.html'}", soft_wrap=True)


def experience(size: Size, seed: int, command: str, console: Console) -> dict[str, Any]:
    """Live, and tell about it; the record."""
    learners = contestants(size.units, seed)
    weights = " and an ".join(f"{NAMES[name]} with {count_weights(each):,} weights" for name, each in learners.items())
    console.print(
        f"Two learners: a {weights}. They watch one stream of {len(LIFE) * size.frames:,} frames, each of them once. "
        "At each frame they say what comes next, then look, and learn. The world changes three times, and nobody tells "
        "them. An error of 100% is that of repeating the last frame.\n"
    )
    start = time.perf_counter()
    with Bars(size, console) as bars:
        life = live(learners, size, seed, bars.tell)
    return {**findings(life, learners, size, seed, command), "seconds": round(time.perf_counter() - start, 1)}


class Bars:
    """One bar a part, with the errors of late as shares of that of repeating the last frame."""

    def __init__(self, size: Size, console: Console) -> None:
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[told]}"),
            TimeRemainingColumn(),
            console=console,
        )
        names = words.part_names({"life": LIFE})
        self.tasks = [
            self.progress.add_task(f"{name:<12}", total=size.scenes, start=False, visible=part == 0, told="")
            for part, name in enumerate(names)
        ]
        self.late: dict[str, float] = {}

    def __enter__(self) -> Bars:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def tell(self, moment: Moment) -> None:
        """Take in one more scene."""
        task = self.tasks[moment.part]
        if moment.scene == 1:
            self.progress.console.print(LINES[moment.part])
            self.progress.start_task(task)
            self.late = dict(moment.errors)
        self.late = {name: 0.9 * self.late[name] + 0.1 * error for name, error in moment.errors.items()}
        told = "  ".join(
            f"{NAMES[name]} {words.share(self.late[name], self.late['copy']):>4}" for name in (PTNCN, LSTM)
        )
        self.progress.update(task, completed=moment.scene, visible=True, told=f"error: {told}")


def write(record: Mapping[str, Any], out: Path) -> None:
    """The record, the pictures, and the page, which are made from the record alone, and only then written."""
    drawn = pictures(record)
    text = page(record, drawn)
    write_atomically(out / "demo.json", (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())
    for picture in drawn.values():
        moving = picture.gif is not None
        write_atomically(out / f"{picture.name}.{'gif' if moving else 'png'}", picture.gif or picture.png)
    write_atomically(out / "index.html", text.encode())
