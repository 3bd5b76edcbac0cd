"""`ptncn live`: watch learners learn in your browser, on a moving world or a replayed feed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
import typer

from ptncn.cli.common import Notices, grouped, note, one_line_errors, option
from ptncn.cli.stream import (
    ColumnOptions,
    DriftOptions,
    ForecastOptions,
    InputOptions,
    KeyOptions,
    LearnerOptions,
    ServerOptions,
    TimeOptions,
    import_live,
    make_stream,
)


@dataclass
class ReplayOptions(ServerOptions):
    """Page."""

    speed: str = option("Speed of a replay: 1x or 60x by timestamps, 20/s in rows per second, or max.", "max")


@dataclass
class LiveForecastOptions(ForecastOptions):
    """Forecasts and alarms of a feed."""

    horizon: int = option("Steps to forecast after each row, with bounds.", 24, "--horizon", "-H", min=0)


@grouped
def live(
    server: ReplayOptions,
    inputs: InputOptions,
    columns: ColumnOptions,
    times: TimeOptions,
    keys: KeyOptions,
    learning: LearnerOptions,
    forecasts: LiveForecastOptions,
    drift: DriftOptions,
    file: Annotated[str | None, typer.Argument(help="Feed to replay: CSV, JSON lines or Parquet.")] = None,
) -> None:
    """Watch learners learn in your browser: moving objects, or a feed replayed at any speed.

    Without a file, a P-TNCN and another learner (--learner; an LSTM by default) predict bouncing objects side by side
    as they learn. On the page you can change the objects, freeze or lesion the learners, and let them dream.

    With a file, the page shows each target with its forecast, the anomaly score, alarms and drift. The options for
    input, columns, time, keys, learner and forecasts are those of `ptncn stream`. No file is written.

    Everything runs on this machine, and all visitors see the same world or feed. Ctrl-C ends it.

    \b
    Examples:
      ptncn live
      ptncn live --learner gru-tbptt
      ptncn live sensors.csv --speed 60x --horizon 24
      ptncn live sensors.csv --key device --speed 200/s
    """
    torch.set_num_threads(1)
    with one_line_errors():
        package = import_live()
        if file is None:
            page = package.WorldPage(
                **({} if learning.learner is None else {"rival": learning.learner}), seed=learning.seed
            )
        else:
            pace = package.Pace(server.speed)
            groups = (inputs, columns, times, keys, learning, forecasts, drift)
            stream, _ = make_stream(file, *groups, Notices())
            page = package.StreamPage(stream, file, pace)
        served = package.Server(page, server.host, server.port)
        note(f"Open {served.url}\nPress Ctrl-C to stop.")
        page.start()
        try:
            served.run()
        finally:
            page.stop()
