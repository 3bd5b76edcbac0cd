"""`ptncn demo`: a network learns bouncing digits, and leaves a picture to look at."""

from __future__ import annotations

import io
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
import typer
from PIL import Image, ImageDraw, ImageFont
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from ptncn.data import BouncingVideo, bouncing
from ptncn.files import write_atomically
from ptncn.learners.run import run
from ptncn.learners.trivial import Copy
from ptncn.metrics import SE
from ptncn.network import PTNCN

BATCH = 20
CANVAS = 48  # large enough for two digits to pass each other, small enough for a minute
STEP_SIZE, LAST_STEP_SIZE = 0.4, 0.02


@dataclass(frozen=True)
class Size:
    """How long it takes."""

    films: int
    test_films: int
    units: int


FULL = Size(films=4_000, test_films=200, units=800)
QUICK = Size(films=100, test_films=20, units=100)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("demo"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Seconds instead of a minute, and hardly anything learnt.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the films and of the initial weights.")] = 0,
) -> None:
    """Watch a network learn: two handwritten digits bounce about, and it predicts the next frame.

    Takes about a minute, needs no download, and writes a filmstrip and an animated picture.
    """
    torch.set_num_threads(1)  # a minute will do, and threads that wait for each other crawl on a busy machine
    console = Console(highlight=False)
    try:
        out.mkdir(parents=True, exist_ok=True)
        _demo(QUICK if quick else FULL, out, seed, console)
    except OSError as error:
        print(f"Error: {out}: cannot be written: {error.strerror or error}", file=sys.stderr)
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        print("Stopped. Nothing was written.", file=sys.stderr)
        raise typer.Exit(130) from None


def _demo(size: Size, out: Path, seed: int, console: Console) -> None:
    films = bouncing("digits", "train", size=size.films, canvas=CANVAS, seed=seed)
    unseen = bouncing("digits", "test", size=size.test_films, canvas=CANVAS, seed=seed).batch(range(size.test_films)).x
    net = make_network(size, films, seed)
    console.print(
        f"Two handwritten digits bounce about on a canvas of {CANVAS}×{CANVAS} pixels. A P-TNCN of {size.units} units "
        f"watches {size.films:,} such films of {films.length} frames, each of them once. At each frame it says what "
        "comes next, looks, corrects its state, and learns: nothing is stored, nothing is unrolled.\n"
    )
    seconds = watch(net, films, console)
    predictions = run(net, unseen).predictions
    assert predictions is not None
    copies = run(Copy(films.input_size), unseen).predictions
    assert copies is not None
    errors = {
        "the network": squared_error(predictions, unseen),
        "the last frame again": squared_error(copies, unseen),
        "an all-black frame": squared_error(torch.zeros_like(unseen), unseen),
    }
    strip, film = out / "filmstrip.png", out / "film.gif"
    write_atomically(strip, filmstrip(unseen[:, :3], predictions[:, :3]))
    write_atomically(film, animation(unseen[:, :4], predictions[:, :4]))
    console.print(
        f"\nIt took {seconds:.0f} seconds. Then the weights were frozen, and the network was shown {size.test_films} "
        "films with digits and motions that it had never seen. Squared error a frame, first frames left out:\n"
    )
    for name, error in errors.items():
        console.print(f"  {name:<21} {error:6.1f}")
    console.print(
        f"\n{_verdict(errors)}\n\nLook at it:\n  {strip}   truth above prediction\n  {film}        the same, moving"
    )


def make_network(size: Size, films: BouncingVideo, seed: int) -> PTNCN:
    """One layer; E stays as it is, which serves images best."""
    updates = math.ceil(size.films / BATCH) * films.length
    return PTNCN(
        films.input_size,
        [size.units],
        output="bernoulli",
        seed=seed,
        beta=0.5,
        error_rule="fixed",
        lr=STEP_SIZE,
        schedule={"kind": "cosine", "steps": updates, "final": LAST_STEP_SIZE / STEP_SIZE},
    )


def watch(net: PTNCN, films: BouncingVideo, console: Console) -> float:
    """Learn from every film once; the seconds that took."""
    columns = (
        BarColumn(bar_width=16),
        TextColumn("{task.completed:,} of {task.total:,} films"),
        TextColumn("error {task.fields[error]:.1f}"),
        TextColumn("{task.fields[speed]:,.0f} frames/s"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    start = time.perf_counter()
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(films), error=math.nan, speed=math.nan)
        for x, _ in films.batches(BATCH):
            meter = SE()
            run(net, x, learn=True, meters=[meter], keep_predictions=False)
            done = progress.tasks[task].completed + x.shape[1]
            speed = done * films.length / (time.perf_counter() - start)
            progress.update(task, completed=done, error=meter.compute(), speed=speed)
    return time.perf_counter() - start


def squared_error(predictions: Tensor, x: Tensor) -> float:
    """Summed over the pixels of a frame, mean over frames and films (T, B, n), without the first frames."""
    return (predictions - x)[1:].square().sum(-1).mean().item()


def _verdict(errors: dict[str, float]) -> str:
    network, copy, black = errors.values()
    if network >= min(copy, black):
        return "So few films are not enough: repeating the last frame, or black, would have been better."
    return (
        f"The network's error is {network / copy:.0%} of that of repeating the last frame: it has learnt where digits "
        "go next, and follows digits that it does not know."
    )


INK, PAPER, GAP = 70, 255, 3
LABELS = "what came", "expected"


def filmstrip(truth: Tensor, predictions: Tensor, every: int = 2, enlarge: int = 2) -> bytes:
    """A PNG: for each of the films (T, B, n) a row with what came, and below it what was expected."""
    moments = range(0, len(truth), every)
    side, left, top = CANVAS * enlarge, 84, 22
    height = 2 * (side + GAP) + 12
    sheet = Image.new("L", (left + len(moments) * (side + GAP), top + truth.shape[1] * height), PAPER)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(13)
    for column, moment in enumerate(moments):
        x = left + column * (side + GAP)
        pen.text((x + side // 2, 4), f"frame {moment + 1}", INK, font, anchor="ma")
        for film in range(truth.shape[1]):
            for row, frames in enumerate((truth, predictions)):
                sheet.paste(_picture(frames[moment, film], side), (x, top + film * height + row * (side + GAP)))
    for film in range(truth.shape[1]):
        for row, label in enumerate(LABELS):
            y = top + film * height + row * (side + GAP) + side // 2
            pen.text((left - 8, y), label, INK, font, anchor="rm")
    buffer = io.BytesIO()
    sheet.save(buffer, "PNG")
    return buffer.getvalue()


def animation(truth: Tensor, predictions: Tensor, enlarge: int = 3, milliseconds: int = 150) -> bytes:
    """An animated GIF: the films (T, B, n) side by side, what came above what was expected."""
    side, left = CANVAS * enlarge, 84
    stills = []
    for moment in range(len(truth)):
        sheet = Image.new("L", (left + truth.shape[1] * (side + GAP), 2 * (side + GAP)), PAPER)
        pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(13)
        for row, (label, frames) in enumerate(zip(LABELS, (truth, predictions), strict=True)):
            y = row * (side + GAP)
            pen.text((left - 8, y + side // 2), label, INK, font, anchor="rm")
            for film in range(truth.shape[1]):
                sheet.paste(_picture(frames[moment, film], side), (left + film * (side + GAP), y))
        stills.append(sheet)
    buffer = io.BytesIO()
    stills[0].save(buffer, "GIF", save_all=True, append_images=stills[1:], duration=milliseconds, loop=0)
    return buffer.getvalue()


def _picture(frame: Tensor, side: int) -> Image.Image:
    pixels = (frame.reshape(CANVAS, CANVAS).clamp(0, 1) * 255).round().byte().numpy()
    return Image.fromarray(pixels).resize((side, side), Image.Resampling.NEAREST)
