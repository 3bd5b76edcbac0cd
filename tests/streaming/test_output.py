"""The live line, and silence in a pipe."""

import io
from collections import deque

from ptncn.streaming import session
from ptncn.streaming.results import RunningStats
from ptncn.streaming.session import StatusLine, can_draw, describe, sparkline


def test_in_a_pipe_there_is_no_status(monkeypatch):
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


def test_in_the_end_it_has_shown_every_observation(monkeypatch):
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
