"""`ptncn stream`: learn from a feed, forecast it, and raise an alarm when it surprises."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, Any

import torch
import typer

from ptncn.cli.groups import grouped, option
from ptncn.cli.reporting import Reporter, one_line_errors
from ptncn.streaming.alerts import Alerts
from ptncn.streaming.columns import MISSING
from ptncn.streaming.defaults import HIDDEN, TARGET, LearnerSpec
from ptncn.streaming.drift import ACTIONS, make_listener
from ptncn.streaming.errors import StreamError
from ptncn.streaming.formats import make_writer, open_source, readable, writable
from ptncn.streaming.lock import CheckpointLock
from ptncn.streaming.session import Session
from ptncn.streaming.status import choose_status, summarise
from ptncn.streaming.stream import Stream
from ptncn.values import parse_option


@dataclass
class Reading:
    """Input."""

    input_format: str | None = option(
        f"{', '.join(readable())}; default: by the file name, then by the first character.", None
    )
    follow: bool = option("Wait for more at the end of the file, like tail -F.", False, "--follow", "-f")
    header: bool = option("Whether the first line of a CSV names the columns.", True)
    delimiter: str | None = option("Between the fields of a CSV; default: found in the first line.", None)
    decimal: str = option("The decimal mark: . or ,", ".")
    max_line: int = option("Bytes that a line may have.", 1_000_000, min=100)
    on_error: str = option("What a bad line does: stop, skip or mask.", "stop")


@dataclass
class Choosing:
    """Columns. Names or patterns, with commas between: 'temp*,load'."""

    targets: str | None = option(
        "Columns to predict; default: all that hold numbers.", None, "--targets", "--columns", "-c"
    )
    features: str | None = option("Columns that are known before the targets of their row.", None)
    categorical: str | None = option("Columns that hold one of several values.", None)
    slots: int = option("Values of a categorical column that are told apart, the last for all others.", 16, min=2)
    missing: str = option("Texts that say that nothing was observed.", ",".join(MISSING[1:]))
    columns_change: str = option("When columns appear or vanish: refuse or mask.", "refuse")


@dataclass
class Timing:
    """Time."""

    timestamp: str | None = option("The column with the time; default: one of a usual name.", None)
    time_format: str | None = option("Such as '%d.%m.%Y %H:%M'; default: ISO 8601, or seconds since 1970.", None)
    gaps: str = option("Missing time steps: ignore, report, or fill them with rows that are not observed.", "report")
    order: str = option("A row that is not later than the one before: keep, skip or stop.", "keep")


@dataclass
class Keys:
    """Many streams in one feed."""

    key: str | None = option("The column that says which stream a row belongs to, such as device.", None)
    key_limit: int | None = option("Streams in memory at a time; the least recently used go to disk.", None, min=1)
    weights: str = option("own: each stream learns by itself; shared: all learn together.", "own")


@dataclass
class Learning:
    """Learner."""

    learner: str | None = option(
        "Any learner of the library, to predict alone: see `ptncn learners`; default: the forecaster, which reads a "
        "P-TNCN out beside the last values and seasons.",
        None,
    )
    hidden: str = option("Units of each layer.", ",".join(map(str, HIDDEN)))
    lr: float | None = option("Step size of learning.", None)
    options: list[str] | None = option("Any other option of the learner, as NAME=VALUE.", None, "--option", "--set")
    seed: int = option("Seed for weight initialisation.", 0)
    target: str = option("What is learnt: the level of each column, its change, or both.", TARGET)
    freeze: bool = option("Learn nothing; states are still corrected.", False, "--freeze")


@dataclass
class Forecasting:
    """Forecasts and alarms."""

    horizon: int = option("Steps to forecast after each row, with bounds.", 0, "--horizon", "-H", min=0)
    level: float = option("Probability that a value lies within the bounds of its forecast.", 0.9)
    season: int | None = option("Rows of a season, such as 24; default: looked for.", None)
    alarm_rate: float = option("Share of ordinary rows that may give an alarm.", 0.01)
    webhook: str | None = option("Address that gets each alarm by POST, as JSON.", None)
    exec: str | None = option("Program that gets each alarm on its standard input, as JSON.", None, "--exec")
    layer_errors: bool = option("Also write the error of each layer.", False, "--layer-errors")


@dataclass
class Drifting:
    """Drift."""

    drift: str | None = option("Watch for lasting changes: page-hinkley, or adwin (needs River).", None)
    drift_action: str = option(f"What a drift does: {', '.join(ACTIONS)}.", "report")
    drift_factor: float = option("What raise-lr multiplies the step size by.", 5.0)
    drift_steps: int = option("For how many rows.", 200, min=1)


@dataclass
class Writing:
    """Output and checkpoints."""

    out: str | None = option("Output file; default: standard output.", None, "--out", "-o")
    output_format: str | None = option(f"{', '.join(writable())}; default: by the file name, or csv.", None)
    checkpoint: str | None = option("File from which --resume continues.", None)
    checkpoint_every: float = option("Seconds between two checkpoints.", 60.0)
    resume: bool = option("Continue from the checkpoint, if there is one.", False, "--resume")
    live: bool = option("With --resume: the pipe itself continues there; skip nothing of it.", False, "--live")
    quiet: bool = option("No live status and no summary on standard error.", False, "--quiet", "-q")


@grouped
def stream(
    reading: Reading,
    choosing: Choosing,
    timing: Timing,
    keys: Keys,
    learning: Learning,
    forecasting: Forecasting,
    drifting: Drifting,
    writing: Writing,
    file: Annotated[str, typer.Argument(help="CSV, JSON lines or Parquet, also .gz or .zst; - is stdin.")] = "-",
) -> None:
    """Learn from a feed line by line: predict each row beforehand, forecast the next ones, and score the surprise.

    Writes a line for each row: what was observed, what was expected, the surprise, an anomaly score, and an alarm
    where the score is among the highest. The same command with --resume continues at the last checkpoint, and the
    output is the same, byte for byte, as if nothing had happened, even after kill -9.

    Examples:

      ptncn stream sensors.csv -o out.csv

      ptncn stream sensors.csv --horizon 24 --level 0.9 --alarm-rate 0.001 -o out.jsonl

      ptncn stream live.csv --follow --key device -o out.csv --checkpoint feed.ckpt --resume

    Exit codes: 0 at the end of the source; 1 after an error; 130 or 143 after SIGINT or SIGTERM, with a checkpoint;
    141 if the output is no longer read.
    """
    torch.set_num_threads(1)  # these networks are small: more threads only get in each other's way
    with one_line_errors():
        _check_files(file, writing)
        reporter = Reporter()
        session = _make_session(
            file, reading, choosing, timing, keys, learning, forecasting, drifting, writing, reporter
        )
        _run(session, writing, reporter)
        reporter.close(None if writing.quiet else summarise(session.stream.stats))
    if session.caught is not None:
        raise typer.Exit(128 + session.caught)


def _make_session(
    file: str,
    reading: Reading,
    choosing: Choosing,
    timing: Timing,
    keys: Keys,
    learning: Learning,
    forecasting: Forecasting,
    drifting: Drifting,
    writing: Writing,
    reporter: Reporter,
) -> Session:
    writer = make_writer(writing.output_format, writing.out)
    spec = LearnerSpec(
        name=learning.learner or "ptncn",
        hidden=_whole_numbers(learning.hidden),
        lr=learning.lr,
        seed=learning.seed,
        options=dict(map(parse_option, learning.options or [])),
    )
    options: dict[str, Any] = {
        "targets": _split(choosing.targets),
        "features": _split(choosing.features),
        "categorical": _split(choosing.categorical),
        "slots": choosing.slots,
        "missing": _split(choosing.missing),
        "columns_change": choosing.columns_change,
        "decimal": reading.decimal,
        "on_error": reading.on_error,
        **vars(timing),
        **vars(keys),
        "target": learning.target,
        "learn": not learning.freeze,
        "horizon": forecasting.horizon,
        "level": forecasting.level,
        "season": forecasting.season,
        "alarm_rate": forecasting.alarm_rate,
        "layer_errors": forecasting.layer_errors,
    }
    source = open_source(
        file,
        reading.input_format,
        follow=reading.follow,
        delimiter=reading.delimiter,
        header=reading.header,
        longest=reading.max_line,
    )
    detector = (drifting.drift, drifting.drift_action, drifting.drift_factor, drifting.drift_steps)
    listener = make_listener(*detector)
    learner = None if learning.learner is None else spec
    stream = Stream(source, learner, network=spec, drift=listener, report=reporter.notice, **options)
    if writing.checkpoint is not None:
        stream.store_folder = os.path.dirname(os.path.realpath(writing.checkpoint))
    settings = {"learner": learning.learner, "network": spec.tree(), **options}
    settings |= {"drift": list(detector), "output_format": type(writer).__name__}
    wants_alerts = forecasting.webhook is not None or forecasting.exec is not None
    return Session(
        stream,
        writer,
        out=writing.out,
        checkpoint=writing.checkpoint,
        every=writing.checkpoint_every,
        settings={
            "learner": learning.learner,
            "network": spec.tree(),
            **options,
            "drift": list(detector),
            "output_format": type(writer).__name__,
        },
        status=choose_status(writing.quiet, writing.out is None),
        alerts=Alerts(forecasting.webhook, forecasting.exec, reporter.notice) if wants_alerts else None,
    )


def _run(session: Session, writing: Writing, reporter: Reporter) -> None:
    """Run, under the lock of the checkpoint if there is one."""
    checkpoint = writing.checkpoint
    if checkpoint is None:
        session.run()
        return
    with CheckpointLock(checkpoint):
        if os.path.exists(checkpoint):
            if not writing.resume:
                raise StreamError(f"{checkpoint}: exists already; --resume continues it, another name starts anew")
            session.resume(live=writing.live)
        elif writing.resume:
            reporter.notice(f"{checkpoint}: no checkpoint yet; starting at the beginning")
        session.run()


def _check_files(file: str, writing: Writing) -> None:
    if writing.resume and writing.checkpoint is None:
        raise ValueError("--resume: expected --checkpoint FILE to resume from")
    paths = {"the source": file, "--out": writing.out, "--checkpoint": writing.checkpoint}
    real = [(what, os.path.realpath(path)) for what, path in paths.items() if path is not None and path != "-"]
    for index, (what, path) in enumerate(real):
        for other, same in real[:index]:
            if path == same:
                raise ValueError(f"{path}: cannot be both {other} and {what}")


def _split(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _whole_numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in _split(text))
    except ValueError:
        raise ValueError(f"--hidden: expected whole numbers with commas between, such as 32,32, got {text}") from None
