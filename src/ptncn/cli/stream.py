"""`ptncn stream`: learn from a feed, forecast it, and raise an alarm when it surprises."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import torch
import typer

from ptncn.cli.common import Notices, grouped, note, one_line_errors, option, parse_option
from ptncn.streaming.columns import MISSING
from ptncn.streaming.drift import ACTIONS, make_listener
from ptncn.streaming.formats import make_writer, open_source, readable, writable
from ptncn.streaming.options import HIDDEN, TARGET, LearnerSpec
from ptncn.streaming.session import Alerts, Session, can_draw, summarise
from ptncn.streaming.sources import StreamError
from ptncn.streaming.storage import CheckpointLock
from ptncn.streaming.stream import Stream


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
    slots: int = option("Distinct values of a categorical column; the last slot is for all others.", 16, min=2)
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
    alarm_per: str = option("Alarms count once per event that lasts, or per row of it.", "event")
    layer_errors: bool = option("Also write the error of each layer.", False, "--layer-errors")


@dataclass
class Alerting:
    """Messages about alarms."""

    webhook: str | None = option("Address that gets each alarm by POST, as JSON.", None)
    exec: str | None = option("Program that gets each alarm on its standard input, as JSON.", None, "--exec")


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
    continues: bool = option("With --resume: the pipe itself continues there; skip nothing.", False, "--continues")
    quiet: bool = option("No live status and no summary on standard error.", False, "--quiet", "-q")


@dataclass
class Serving:
    """Page."""

    host: str = option("Address of the page; another than loopback needs the token in the printed URL.", "127.0.0.1")
    port: int = option("Port of the page; 0 takes a free one.", 8425, min=0, max=65535)


@dataclass
class Showing(Serving):
    """Live page."""

    live: bool = option("Show the stream on a page while it runs, and after it until Ctrl-C.", False, "--live")


@grouped
def stream(
    reading: Reading,
    choosing: Choosing,
    timing: Timing,
    keys: Keys,
    learning: Learning,
    forecasting: Forecasting,
    alerting: Alerting,
    drifting: Drifting,
    writing: Writing,
    showing: Showing,
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

      ptncn stream sensors.csv --horizon 24 -o out.csv --live

    Exit codes: 0 at the end of the source; 1 after an error; 130 or 143 after SIGINT or SIGTERM, with a checkpoint;
    141 if the output was closed.
    """
    torch.set_num_threads(1)  # these networks are small: more threads only get in each other's way
    with one_line_errors():
        _check_files(file, writing)
        notices = Notices()
        stream, settings = make_stream(file, reading, choosing, timing, keys, learning, forecasting, drifting, notices)
        session = _make_session(stream, settings, alerting, writing, notices)
        with _shown(session, file, showing):
            _run(session, writing, notices)
            notices.close(None if writing.quiet else summarise(session.stream.stats))
    if session.caught is not None:
        raise typer.Exit(128 + session.caught)


def make_stream(
    file: str,
    reading: Reading,
    choosing: Choosing,
    timing: Timing,
    keys: Keys,
    learning: Learning,
    forecasting: Forecasting,
    drifting: Drifting,
    notices: Notices,
) -> tuple[Stream, dict[str, Any]]:
    """The stream that the options describe, and those that a checkpoint only resumes under."""
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
        "alarm_per": forecasting.alarm_per,
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
    stream = Stream(source, learner, network=spec, drift=listener, report=notices.notice, **options)
    return stream, {"learner": learning.learner, "network": spec.tree(), **options, "drift": list(detector)}


def _make_session(
    stream: Stream, settings: dict[str, Any], alerting: Alerting, writing: Writing, notices: Notices
) -> Session:
    writer = make_writer(writing.output_format, writing.out)
    if writing.checkpoint is not None:
        stream.store_folder = os.path.dirname(os.path.realpath(writing.checkpoint))
    wants_alerts = alerting.webhook is not None or alerting.exec is not None
    return Session(
        stream,
        writer,
        out=writing.out,
        checkpoint=writing.checkpoint,
        every=writing.checkpoint_every,
        settings={**settings, "output_format": type(writer).__name__},
        show_status=not writing.quiet and can_draw(writing.out is None),
        alerts=Alerts(alerting.webhook, alerting.exec, notices.notice) if wants_alerts else None,
    )


@contextmanager
def _shown(session: Session, file: str, showing: Showing) -> Iterator[None]:
    """With a page, if there is to be one: it stays after the end of the stream, until Ctrl-C."""
    if not showing.live:
        yield
        return
    live = import_live()
    page = live.StreamPage(session.stream, file)
    session.watch = page.observe
    server = live.Server(page, showing.host, showing.port)
    note(f"Watch it at {server.url}")
    server.start()
    try:
        yield
        page.finish()
        if session.caught is None:
            note("The stream has ended. The page stays until Ctrl-C.")
            wait_for_ctrl_c()
    finally:
        server.stop()


def import_live() -> Any:
    """`ptncn.live`, which needs an extra."""
    try:
        return import_module("ptncn.live")
    except ImportError as error:
        raise StreamError(f"the live page needs more packages: pip install 'ptncn[live]' ({error})") from error


def wait_for_ctrl_c() -> None:
    with suppress(KeyboardInterrupt):
        threading.Event().wait()


def _run(session: Session, writing: Writing, notices: Notices) -> None:
    """Run, under the lock of the checkpoint if there is one."""
    checkpoint = writing.checkpoint
    if checkpoint is None:
        session.run()
        return
    with CheckpointLock(checkpoint):
        if os.path.exists(checkpoint):
            if not writing.resume:
                raise StreamError(f"{checkpoint}: exists already; --resume continues it, another name starts anew")
            session.resume(live=writing.continues)
        elif writing.resume:
            notices.notice(f"{checkpoint}: no checkpoint yet; starting at the beginning")
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
