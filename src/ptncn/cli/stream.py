"""`ptncn stream`: learn from a feed row by row: predictions, forecasts, anomaly scores and alarms."""

from __future__ import annotations

import gc
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
from ptncn.streaming.options import TARGET, LearnerSpec, hidden_sizes
from ptncn.streaming.session import Alerts, Session, can_draw, summarise
from ptncn.streaming.sources import StreamError
from ptncn.streaming.storage import CheckpointLock
from ptncn.streaming.stream import Stream
from ptncn.system import keep_freed_memory


@dataclass
class InputOptions:
    """Input."""

    input_format: str | None = option(
        f"{', '.join(readable())}; default: from the file name, else the first character.", None
    )
    follow: bool = option("At the end of the file, wait for more, like tail -F.", False, "--follow", "-f")
    header: bool = option("Whether the first line of a CSV names the columns.", True)
    delimiter: str | None = option("Field separator of a CSV; default: detected in the first line.", None)
    decimal: str = option("Decimal mark: . or ,", ".")
    max_line: int = option("Maximum length of a line, in bytes.", 1_000_000, min=100)
    on_error: str = option("On a bad line: stop, skip it, or mask what cannot be read.", "stop")


@dataclass
class ColumnOptions:
    """Columns: names or patterns separated by commas, such as 'temp*,load'."""

    targets: str | None = option(
        "Columns to predict; default: all columns of numbers.", None, "--targets", "--columns", "-c"
    )
    features: str | None = option("Columns known before the targets of their row, such as a planned price.", None)
    categorical: str | None = option("Columns of labels.", None)
    slots: int = option("Slots for labels of a categorical column; the last one holds all other labels.", 16, min=2)
    missing: str = option("Strings that mark a missing value.", ",".join(MISSING[1:]))
    columns_change: str = option("If columns appear or disappear: refuse the row, or mask it.", "refuse")


@dataclass
class TimeOptions:
    """Time."""

    timestamp: str | None = option("Column with the time; default: time, timestamp, date, datetime or ts.", None)
    time_format: str | None = option("Format, such as '%d.%m.%Y %H:%M'; default: ISO 8601 or seconds since 1970.", None)
    gaps: str = option("Missing time steps: ignore, report, or fill with unobserved rows.", "report")
    order: str = option("If a row is not later than the one before: keep it, skip it, or stop.", "keep")


@dataclass
class KeyOptions:
    """Many streams in one feed."""

    key: str | None = option("Column that names the stream of a row, such as device.", None)
    key_limit: int | None = option(
        "Maximum number of streams in memory; the least recently used go to disk.", None, min=1
    )
    weights: str = option("own: each stream has its own network; shared: all share one.", "own")


@dataclass
class LearnerOptions:
    """Learner."""

    learner: str | None = option(
        "A name from `ptncn learners`; default: the forecaster, which combines a P-TNCN with the last values and "
        "seasonal profiles.",
        None,
    )
    hidden: str | None = option("Units of each layer. Default: 32,32, and 32 with --key.", None)
    lr: float | None = option("Step size; default: the learner's.", None)
    options: list[str] | None = option("Any other option of the learner, as NAME=VALUE.", None, "--option", "--set")
    seed: int = option("Seed for weight initialisation.", 0)
    target: str = option("What the learner sees of each column: level, change or both.", TARGET)
    freeze: bool = option("Freeze the weights; states are still corrected.", False, "--freeze")


@dataclass
class ForecastOptions:
    """Forecasts and alarms."""

    horizon: int = option("Steps to forecast after each row, with bounds.", 0, "--horizon", "-H", min=0)
    level: float = option("Probability that a value lies within the bounds of its forecast.", 0.9)
    season: int | None = option("Length of a season in rows, such as 24; default: detected.", None)
    alarm_rate: float = option("Alarms per row, such as 0.001 for one in a thousand.", 0.01)
    alarm_per: str = option("One alarm per event, or one for each row of it.", "event")
    layer_errors: bool = option("Also write the error of each layer.", False, "--layer-errors")


@dataclass
class AlertOptions:
    """Notifications."""

    webhook: str | None = option("URL to POST each alarm to, as JSON.", None)
    exec: str | None = option(
        "Program to start for each alarm, without a shell; it gets the alarm as JSON on stdin.", None, "--exec"
    )


@dataclass
class DriftOptions:
    """Drift."""

    drift: str | None = option("Drift detector: page-hinkley, or adwin (needs River).", None)
    drift_action: str = option(f"On drift: {', '.join(ACTIONS)}.", "report")
    drift_factor: float = option("Factor by which raise-lr multiplies the step size.", 5.0)
    drift_steps: int = option("Number of rows for which raise-lr lasts.", 200, min=1)


@dataclass
class OutputOptions:
    """Output and checkpoints."""

    out: str | None = option("Output file; default: standard output.", None, "--out", "-o")
    output_format: str | None = option(f"{', '.join(writable())}; default: from the file name, else csv.", None)
    checkpoint: str | None = option("Checkpoint file, from which --resume continues.", None)
    checkpoint_every: float = option("Seconds between checkpoints.", 60.0)
    resume: bool = option("Continue from the checkpoint, if there is one.", False, "--resume")
    continues: bool = option("With --resume: stdin starts at the checkpoint, so skip nothing.", False, "--continues")
    quiet: bool = option("Print neither status line nor summary.", False, "--quiet", "-q")


@dataclass
class ServerOptions:
    """Page."""

    host: str = option("Address of the page; other than loopback, it needs the token in the printed URL.", "127.0.0.1")
    port: int = option("Port of the page; 0 picks a free one.", 8425, min=0, max=65535)


@dataclass
class LiveOptions(ServerOptions):
    """Live page."""

    live: bool = option("Show the stream on a page while it runs and afterwards, until Ctrl-C.", False, "--live")


@grouped
def stream(
    inputs: InputOptions,
    columns: ColumnOptions,
    times: TimeOptions,
    keys: KeyOptions,
    learning: LearnerOptions,
    forecasts: ForecastOptions,
    alerts: AlertOptions,
    drift: DriftOptions,
    output: OutputOptions,
    live: LiveOptions,
    file: Annotated[str, typer.Argument(help="CSV, JSON lines or Parquet, also .gz or .zst; - is stdin.")] = "-",
) -> None:
    """Learn from a feed row by row: predict each row before reading it, then learn from it.

    Writes one line per row: the observed values, their predictions, the surprise, an anomaly score, and whether there
    is an alarm; with --horizon also forecasts with bounds.

    After an interruption, the same command with --resume continues from the last checkpoint. The output is the same,
    byte for byte, as without the interruption, even after kill -9.

    \b
    Examples:
      ptncn stream sensors.csv -o out.csv
      ptncn stream sensors.csv --horizon 24 --alarm-rate 0.001 -o out.jsonl
      ptncn stream sensors.csv -o out.csv --checkpoint s.ckpt --resume
      ptncn stream log.csv --follow --key device -o out.csv
      ptncn stream sensors.csv --horizon 24 -o out.csv --live

    Exit codes: 0 at the end of the source; 1 after an error; 130 or 143 after SIGINT or SIGTERM, with a checkpoint;
    141 if the output was closed.
    """
    torch.set_num_threads(1)  # the networks are small, so more threads would slow them down
    keep_freed_memory()
    with one_line_errors():
        _check_files(file, output)
        notices = Notices()
        stream, settings = make_stream(file, inputs, columns, times, keys, learning, forecasts, drift, notices)
        session = _make_session(stream, settings, alerts, output, notices)
        gc.collect()
        gc.freeze()  # what was imported stays, so the collector need not look through it again
        with _serve_page(session, file, live):
            _run(session, output, notices)
            notices.close(None if output.quiet else summarise(session.stream.stats))
    if session.caught is not None:
        raise typer.Exit(128 + session.caught)


def make_stream(
    file: str,
    inputs: InputOptions,
    columns: ColumnOptions,
    times: TimeOptions,
    keys: KeyOptions,
    learning: LearnerOptions,
    forecasts: ForecastOptions,
    drift: DriftOptions,
    notices: Notices,
) -> tuple[Stream, dict[str, Any]]:
    """The stream that the options describe, and the settings that must not change when it is resumed."""
    spec = LearnerSpec(
        name=learning.learner or "ptncn",
        hidden=_parse_hidden(learning.hidden) if learning.hidden is not None else hidden_sizes(keys.key is not None),
        lr=learning.lr,
        seed=learning.seed,
        options=dict(map(parse_option, learning.options or [])),
    )
    options: dict[str, Any] = {
        "targets": _split(columns.targets),
        "features": _split(columns.features),
        "categorical": _split(columns.categorical),
        "slots": columns.slots,
        "missing": _split(columns.missing),
        "columns_change": columns.columns_change,
        "decimal": inputs.decimal,
        "on_error": inputs.on_error,
        **vars(times),
        **vars(keys),
        "target": learning.target,
        "learn": not learning.freeze,
        "horizon": forecasts.horizon,
        "level": forecasts.level,
        "season": forecasts.season,
        "alarm_rate": forecasts.alarm_rate,
        "alarm_per": forecasts.alarm_per,
        "layer_errors": forecasts.layer_errors,
    }
    source = open_source(
        file,
        inputs.input_format,
        follow=inputs.follow,
        delimiter=inputs.delimiter,
        header=inputs.header,
        longest=inputs.max_line,
    )
    detector = (drift.drift, drift.drift_action, drift.drift_factor, drift.drift_steps)
    listener = make_listener(*detector)
    learner = None if learning.learner is None else spec
    stream = Stream(source, learner, network=spec, drift=listener, report=notices.notice, **options)
    return stream, {"learner": learning.learner, "network": spec.tree(), **options, "drift": list(detector)}


def _make_session(
    stream: Stream, settings: dict[str, Any], alerts: AlertOptions, output: OutputOptions, notices: Notices
) -> Session:
    writer = make_writer(output.output_format, output.out)
    if output.checkpoint is not None:
        stream.store_folder = os.path.dirname(os.path.realpath(output.checkpoint))
    wants_alerts = alerts.webhook is not None or alerts.exec is not None
    return Session(
        stream,
        writer,
        out=output.out,
        checkpoint=output.checkpoint,
        every=output.checkpoint_every,
        settings={**settings, "output_format": type(writer).__name__},
        show_status=not output.quiet and can_draw(output.out is None),
        alerts=Alerts(alerts.webhook, alerts.exec, notices.notice) if wants_alerts else None,
    )


@contextmanager
def _serve_page(session: Session, file: str, live: LiveOptions) -> Iterator[None]:
    """With --live, serve the page while the stream runs, and afterwards until Ctrl-C."""
    if not live.live:
        yield
        return
    package = import_live()
    page = package.StreamPage(session.stream, file)
    session.watch = page.observe
    server = package.Server(page, live.host, live.port)
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


def _run(session: Session, output: OutputOptions, notices: Notices) -> None:
    """Run, under the lock of the checkpoint if there is one."""
    checkpoint = output.checkpoint
    if checkpoint is None:
        session.run()
        return
    with CheckpointLock(checkpoint):
        if os.path.exists(checkpoint):
            if not output.resume:
                raise StreamError(f"{checkpoint}: exists already; --resume continues it, another name starts a new one")
            session.resume(live=output.continues)
        elif output.resume:
            notices.notice(f"{checkpoint}: no checkpoint yet; starting at the beginning")
        session.run()


def _check_files(file: str, output: OutputOptions) -> None:
    if output.resume and output.checkpoint is None:
        raise ValueError("--resume: expected --checkpoint FILE to resume from")
    paths = {"the source": file, "--out": output.out, "--checkpoint": output.checkpoint}
    real = [(what, os.path.realpath(path)) for what, path in paths.items() if path is not None and path != "-"]
    for index, (what, path) in enumerate(real):
        for other, same in real[:index]:
            if path == same:
                raise ValueError(f"{path}: cannot be both {other} and {what}")


def _split(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _parse_hidden(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in _split(text))
    except ValueError:
        raise ValueError(f"--hidden: expected integers separated by commas, such as 32,32, got {text}") from None
