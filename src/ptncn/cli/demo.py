"""`ptncn demo`: two learners predict a changing stream, and a page shows the result."""

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
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBars

from ptncn.cli.common import note, one_line_errors
from ptncn.demo import narrative
from ptncn.demo.page import demo_page, make_pictures
from ptncn.demo.simulate import (
    LSTM,
    NAMES,
    PARTS,
    PTNCN,
    Progress,
    Size,
    count_weights,
    make_learners,
    make_record,
    simulate,
)
from ptncn.system import write_atomically

FULL = Size(scenes=375, test_scenes=50, units=(200, 100))
QUICK = Size(scenes=6, test_scenes=2, units=(20, 10))
ANNOUNCEMENTS = (
    "Digits. Neither learner has seen anything yet.",
    "The stream changes to letters, which are new.",
    "The stream changes to shapes, which are new.",
    "The digits return. How much do the learners remember?",
)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page and its pictures.")] = Path("demo"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Take seconds instead of two minutes; hardly anything is learnt.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed for the stream and the initial weights.")] = 0,
) -> None:
    """Watch a P-TNCN and an LSTM of equal size learn digits, letters, shapes, and digits again.

    Takes about two minutes, needs no download, and writes one page with an animation and plots.
    """
    torch.set_num_threads(1)  # several threads would be slow on a busy machine
    console = Console(highlight=False)
    command = f"ptncn demo --seed {seed}{' --quick' if quick else ''}"
    with one_line_errors():
        try:
            out.mkdir(parents=True, exist_ok=True)
            record = run_demo(QUICK if quick else FULL, seed, command, console)
            console.print("\nMaking the page …")
            write(record, out)
        except OSError as error:
            raise ValueError(f"cannot write to {out}: {error.strerror or error}") from error
        except KeyboardInterrupt:
            note("Stopped. Nothing was written.")
            raise typer.Exit(130) from None
    page = (out / "index.html").resolve()
    console.print(f"\n{narrative.plain_headline(record)}\n\nOpen the page in a browser:")
    console.print(f"  {page.as_uri()}", soft_wrap=True)
    console.print(f"\nTo watch and change them while they learn:\n  {_program()} live", soft_wrap=True)


def _program() -> str:
    """How to call this program: `ptncn`, or its path if its environment is not active."""
    program = Path(sys.argv[0])
    return str(program) if program.name == "ptncn" else "ptncn"


def run_demo(size: Size, seed: int, command: str, console: Console) -> dict[str, Any]:
    """Run the simulation with progress bars; return its record."""
    learners = make_learners(size.units, seed)
    weights = " and an ".join(f"{NAMES[name]} with {count_weights(each):,} weights" for name, each in learners.items())
    console.print(
        f"Two learners, a {weights}, see one stream of {len(PARTS) * size.frames:,} frames, each frame once. They "
        "predict each frame, then see it and learn from it. The stream changes three times, without any signal. An "
        "error of 100% is that of repeating the last frame.\n"
    )
    start = time.perf_counter()
    with Bars(size, console) as bars:
        simulation = simulate(learners, size, seed, bars.update)
    record = make_record(simulation, learners, size, seed, command)
    return {**record, "seconds": round(time.perf_counter() - start, 1)}


class Bars:
    """A progress bar per part, with recent errors relative to repeating the last frame."""

    def __init__(self, size: Size, console: Console) -> None:
        self.bars = ProgressBars(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[errors]}"),
            TimeRemainingColumn(),
            console=console,
        )
        names = narrative.part_names({"stream": PARTS})
        self.tasks = [
            self.bars.add_task(f"{name:<12}", total=size.scenes, start=False, visible=part == 0, errors="")
            for part, name in enumerate(names)
        ]
        self.recent: dict[str, float] = {}

    def __enter__(self) -> Bars:
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def update(self, progress: Progress) -> None:
        """Show one more scene."""
        task = self.tasks[progress.part]
        if progress.scene == 1:
            self.bars.console.print(ANNOUNCEMENTS[progress.part])
            self.bars.start_task(task)
            self.recent = dict(progress.errors)
        self.recent = {name: 0.9 * self.recent[name] + 0.1 * error for name, error in progress.errors.items()}
        shares = (
            f"{NAMES[name]} {narrative.share(self.recent[name], self.recent['copy']):>4}" for name in (PTNCN, LSTM)
        )
        self.bars.update(task, completed=progress.scene, visible=True, errors=f"error: {'  '.join(shares)}")


def write(record: Mapping[str, Any], out: Path) -> None:
    """Make all pictures and the page, then write them with the record."""
    pictures = make_pictures(record)
    page = demo_page(record, pictures)
    write_atomically(out / "demo.json", (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())
    for picture in pictures.values():
        extension = "png" if picture.gif is None else "gif"
        write_atomically(out / f"{picture.name}.{extension}", picture.files()[extension])
    write_atomically(out / "index.html", page.encode())
