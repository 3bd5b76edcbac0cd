"""`ptncn stream`: learn from a feed, forecast it, and say when it surprises."""

from __future__ import annotations

import functools
import json
import os
from importlib import import_module
from typing import Annotated, Any

import torch
import typer

from ptncn.streaming.columns import MISSING
from ptncn.streaming.defaults import HIDDEN, TARGET, default_learner
from ptncn.streaming.drift import ACTIONS, DriftListener
from ptncn.streaming.errors import StreamError
from ptncn.streaming.formats import FORMATS
from ptncn.streaming.lock import CheckpointLock
from ptncn.streaming.opening import open_source
from ptncn.streaming.reporting import Reporter, one_line_errors
from ptncn.streaming.session import Session
from ptncn.streaming.status import choose_status
from ptncn.streaming.stream import Stream


def stream(
    file: Annotated[str, typer.Argument(help="CSV, JSON lines or Parquet; - is standard input.")] = "-",
    input_format: Annotated[
        str | None, typer.Option(help="csv, jsonl or parquet; otherwise the name or the first character tells.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more at the end of the file.")] = False,
    header: Annotated[bool, typer.Option(help="Whether the first line of a CSV names the columns.")] = True,
    delimiter: Annotated[str | None, typer.Option(help="Of a CSV; otherwise the first line tells.")] = None,
    max_line: Annotated[int, typer.Option(help="Bytes that a line may have.", min=100)] = 1_000_000,
    columns: Annotated[
        str | None, typer.Option("--columns", "-c", help="Names or patterns with commas between: 'temp*,load'.")
    ] = None,
    categorical: Annotated[str | None, typer.Option(help="Columns that hold one of several values; likewise.")] = None,
    timestamp: Annotated[str | None, typer.Option(help="The column to pass through.")] = None,
    slots: Annotated[int, typer.Option(help="Values of a categorical column, the last for all others.", min=2)] = 16,
    missing: Annotated[str, typer.Option(help="Texts that say that nothing was observed.")] = ",".join(MISSING[1:]),
    columns_change: Annotated[str, typer.Option(help="If columns appear or vanish: refuse or mask.")] = "refuse",
    on_error: Annotated[str, typer.Option(help="What a bad line does: stop, skip or mask.")] = "stop",
    learner: Annotated[str, typer.Option(help="Any learner of the library.")] = "ptncn",
    hidden: Annotated[str, typer.Option(help="Units of each layer.")] = ",".join(map(str, HIDDEN)),
    lr: Annotated[float | None, typer.Option(help="Step size of learning.")] = None,
    set_option: Annotated[
        list[str] | None, typer.Option("--set", help="Any other option of the learner, as key=value.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the initial weights.")] = 0,
    target: Annotated[
        str, typer.Option(help="What is learnt: the level of each column, its change, or both.")
    ] = TARGET,
    freeze: Annotated[bool, typer.Option("--freeze", help="Learn nothing; states are still corrected.")] = False,
    horizon: Annotated[int, typer.Option("--horizon", "-H", help="Steps to forecast.", min=0)] = 0,
    alarm_rate: Annotated[float, typer.Option(help="Share of ordinary observations that may give an alarm.")] = 0.01,
    layer_errors: Annotated[bool, typer.Option("--layer-errors", help="Write the error of each layer, too.")] = False,
    drift: Annotated[str | None, typer.Option(help="Listen for drift: page-hinkley, or adwin (needs River).")] = None,
    drift_action: Annotated[str, typer.Option(help=f"What a drift does: {', '.join(ACTIONS)}.")] = "report",
    drift_factor: Annotated[float, typer.Option(help="What raise-lr multiplies the step size by.")] = 5.0,
    drift_steps: Annotated[int, typer.Option(help="For how many observations.", min=1)] = 200,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Otherwise standard output.")] = None,
    output_format: Annotated[str | None, typer.Option(help="csv or jsonl; otherwise the name tells, or csv.")] = None,
    checkpoint: Annotated[str | None, typer.Option(help="File from which --resume goes on.")] = None,
    checkpoint_every: Annotated[float, typer.Option(help="Seconds between two checkpoints.")] = 60.0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint, if there is one.")] = False,
    live: Annotated[
        bool, typer.Option("--live", help="With --resume: the pipe goes on by itself; skip nothing of it.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No live status on the terminal.")] = False,
) -> None:
    """Learn from a feed line by line: predict each observation beforehand, forecast, and score the surprise.

    One line an observation: what was observed, what was expected, the surprise, its score, and an alarm where the
    score is among the highest. The same command with --resume goes on where the last checkpoint was made, and the
    output is the same, byte for byte, as if nothing had happened, also after kill -9.

    Exit codes: 0 at the end of the source; 1 after an error; 130 or 143 after SIGINT or SIGTERM, with a checkpoint;
    141 if nobody reads the output any more.
    """
    torch.set_num_threads(1)  # these networks are small: threads would only get in each other's way
    with one_line_errors():
        _check_files(file, out, checkpoint, resume)
        output_format = output_format or ("jsonl" if out and out.endswith((".jsonl", ".ndjson", ".json")) else "csv")
        if output_format not in FORMATS:
            raise ValueError(f"unknown output format {output_format!r}; choose one of: {', '.join(FORMATS)}")
        options: dict[str, Any] = {
            "name": learner,
            "hidden": _whole_numbers(hidden),
            "lr": lr,
            "seed": seed,
            "options": dict(map(_key_and_value, set_option or [])),
        }
        shape: dict[str, Any] = {
            "columns": _split(columns),
            "categorical": _split(categorical),
            "timestamp": timestamp,
            "slots": slots,
            "missing": _split(missing),
            "columns_change": columns_change,
            "target": target,
            "horizon": horizon,
            "alarm_rate": alarm_rate,
            "layer_errors": layer_errors,
            "learn": not freeze,
        }
        listening: dict[str, Any] = {
            "detector": drift,
            "action": drift_action,
            "factor": drift_factor,
            "steps": drift_steps,
        }
        reporter = Reporter()
        source = open_source(file, input_format, follow=follow, delimiter=delimiter, header=header, longest=max_line)
        running = Stream(
            functools.partial(default_learner, **options),
            source,
            on_error=on_error,
            drift=_listener(**listening),
            report=reporter.tell,
            **shape,
        )
        session = Session(
            running,
            FORMATS[output_format](),
            out=out,
            checkpoint=checkpoint,
            every=checkpoint_every,
            settings={"learner": options, **shape, "drift": listening, "output_format": output_format},
            status=choose_status(quiet, out is None),
        )
        if checkpoint is None:
            session.run()
        else:
            with CheckpointLock(checkpoint):
                _check_unused(checkpoint, resume)
                if os.path.exists(checkpoint):
                    session.resume(live=live)
                elif resume:
                    reporter.tell(f"{checkpoint}: there is no checkpoint yet; beginning at the beginning")
                session.run()
        reporter.close()
    if session.caught is not None:
        raise typer.Exit(128 + session.caught)


def _check_files(file: str, out: str | None, checkpoint: str | None, resume: bool) -> None:
    if resume and checkpoint is None:
        raise ValueError("--resume wants to know from where: --checkpoint FILE")
    paths = {"the source": file, "--out": out, "--checkpoint": checkpoint}
    real = [(what, os.path.realpath(path)) for what, path in paths.items() if path not in (None, "-")]
    for index, (what, path) in enumerate(real):
        for other, same in real[:index]:
            if path == same:
                raise ValueError(f"{path}: cannot be both {other} and {what}")


def _check_unused(checkpoint: str, resume: bool) -> None:
    if os.path.exists(checkpoint) and not resume:
        raise StreamError(f"{checkpoint}: is there already; --resume goes on from it, another name begins anew")


def _listener(detector: str | None, action: str, factor: float, steps: int) -> DriftListener | None:
    if detector is None:
        return None
    if detector == "page-hinkley":
        from ptncn.streaming.page_hinkley import PageHinkley

        return DriftListener(PageHinkley(), action, factor=factor, steps=steps)
    if detector == "adwin":
        try:
            adwin = import_module("river.drift").ADWIN()
        except ImportError as error:
            raise StreamError("--drift adwin needs River: pip install 'ptncn[river]'") from error
        return DriftListener(adwin, action, factor=factor, steps=steps)
    raise ValueError(f"unknown drift detector {detector!r}; choose one of: page-hinkley, adwin")


def _split(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _whole_numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in _split(text)]
    except ValueError:
        raise ValueError(f"--hidden {text}: whole numbers with commas between would be right, such as 32,32") from None


def _key_and_value(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ValueError(f"--set {text}: key=value would be right")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value
