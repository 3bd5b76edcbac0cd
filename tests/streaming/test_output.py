"""The status line, silence in a pipe, and numbers as text."""

import io
import json
import os
import time
from collections import deque

import numpy as np
import pytest

from ptncn.streaming import Stream, formats, session
from ptncn.streaming.formats import CsvWriter, JsonWriter, format_floats
from ptncn.streaming.output import BATCH, Output, OutputError
from ptncn.streaming.results import RunningStats
from ptncn.streaming.session import Session, StatusLine, can_draw, describe, sparkline
from ptncn.streaming.sources import Block


def test_there_is_no_status_line_in_a_pipe(monkeypatch):
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert not can_draw(writes_to_stdout=False)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_on_a_terminal_it_shows_rate_error_and_surprise(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(session, "PERIOD", 0.0)
    assert can_draw(writes_to_stdout=False)
    line = StatusLine(RunningStats(observations=7, error=1.0, copy_error=4.0))
    line.update([float("nan"), 0.99, 0.5])
    line.close()
    assert "7 rows" in terminal.getvalue()
    assert "error 50 % of copy-last" in terminal.getvalue()
    assert "█" in terminal.getvalue()


def test_at_the_end_it_shows_the_number_of_observations(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    clock = iter([100.0, 100.01, 100.02, 110.0])
    monkeypatch.setattr(session.time, "monotonic", lambda: next(clock))
    stats = RunningStats(observations=1000)
    line = StatusLine(stats)
    for _ in range(2):
        stats.observations += 1
        line.update([float("nan")])
    assert "rows" not in terminal.getvalue()
    line.close()
    assert "1,002 rows  0/s" in terminal.getvalue()


def test_it_shows_drifts_and_bad_rows_only_if_there_are_any():
    assert "2 drifts  3 bad rows" in describe(RunningStats(drifts=2, bad_rows=3), 1.0, deque())
    assert "drift" not in describe(RunningStats(), 1.0, deque())


def test_a_sparkline_goes_from_low_to_high():
    assert sparkline(deque([0.0, 0.5, 1.0])) == "▁▅█"


def draw_numbers():
    """Ordinary and difficult numbers: ties, carries, limits of both notations, infinities and NaN."""
    rng = np.random.default_rng(0)
    scales = 10.0 ** rng.integers(-8, 12, 5000)
    special = [0.0, -0.0, np.inf, 1e-4, 9.9999999999e-5, 999999999.4999, 999999999.5, 1e9, 5e-324, 0.1, 123456789.5]
    return np.concatenate((rng.normal(size=5000) * scales, (rng.integers(0, 10**9, 5000) + 0.5) / scales, special))


def test_numbers_have_nine_digits_as_python_writes_them():
    numbers = draw_numbers()
    assert format_floats([numbers, -numbers], [" % "], "") == [f"{x:.9g} % {-x:.9g}" for x in numbers.tolist()]


def test_without_a_compiler_the_text_is_the_same(monkeypatch):
    numbers = draw_numbers()[::50]
    columns = [numbers, np.full_like(numbers, np.nan)]
    compiled = format_floats(columns, [","], "null")
    monkeypatch.setattr(formats, "_load_formatter", lambda: None)
    assert format_floats(columns, [","], "null") == compiled


def test_a_line_of_json_has_the_values_of_the_observation():
    rows = np.random.default_rng(0).normal(size=(40, 2)).tolist()
    results = Stream(horizon=3).feed_block(Block(("a", "b"), rows, list(range(1, 41))))
    for line, out in zip(JsonWriter().lines(results.table()).splitlines(), results, strict=True):
        parsed = json.loads(line)
        for name in ("forecast", "lower", "upper"):
            for step, expected in zip(parsed[name], getattr(out, name), strict=True):
                assert step == pytest.approx(expected, rel=1e-8)
        assert parsed["observed"] == out.observed


def test_a_wide_block_is_written_in_the_background_with_the_same_bytes(tmp_path, monkeypatch):
    rows = np.random.default_rng(0).normal(size=(300, 3))

    def written(name, wide):
        monkeypatch.setattr(session, "WIDE", wide)
        Session(
            Stream(rows.tolist(), horizon=4),
            CsvWriter(),
            out=str(tmp_path / name),
            checkpoint=str(tmp_path / f"{name}.c"),
        ).run()
        return (tmp_path / name).read_bytes()

    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    background = []
    monkeypatch.setattr(
        Output, "write_later", lambda output, make, call=Output.write_later: background.append(call(output, make))
    )
    assert written("later.csv", 1) == written("now.csv", 10**9)
    assert len(background) == 2  # blocks of 256 rows


def test_text_keeps_its_order_whether_it_is_made_now_or_in_the_background(tmp_path):
    output = Output(str(tmp_path / "out"))
    output.write("a\n")
    output.write_later(lambda: time.sleep(0.05) or b"b\n" * BATCH)
    output.write("c\n")
    output.write_later(lambda: "d\n")
    output.flush()
    assert (tmp_path / "out").read_text() == "a\n" + "b\n" * BATCH + "c\nd\n"
    assert output.length == 2 * BATCH + 6
    output.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_an_error_in_the_background_is_raised_by_the_next_call(tmp_path):
    output = Output("/dev/full")
    output.write_later(lambda: b"x" * BATCH)
    with pytest.raises(OutputError, match="/dev/full: cannot be written: No space left on device"):
        output.write("y")
    output.close()
