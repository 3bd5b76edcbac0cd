"""Timestamps: parsed, rendered in their own form, steps and gaps noticed, and the calendar as inputs."""

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from ptncn.streaming import RowError, Stream
from ptncn.streaming.options import LearnerSpec
from ptncn.streaming.times import CALENDAR, Clock, TimeParser

TINY = LearnerSpec(hidden=(4,))
MOMENT = datetime(2024, 2, 28, 23, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "form",
    [
        lambda moment: moment.strftime("%Y-%m-%d %H:%M"),
        lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        lambda moment: moment.astimezone(tz=None).isoformat(),
        lambda moment: moment.timestamp(),
        lambda moment: int(moment.timestamp() * 1000),
    ],
)
def test_times_are_parsed_and_rendered_in_their_own_form(form):
    parser = TimeParser()
    seconds = parser.parse([form(MOMENT)])[0]
    assert seconds == MOMENT.timestamp()
    later = MOMENT + timedelta(minutes=30)
    assert parser.render(seconds + 1800, form(MOMENT)) == form(later)


def test_a_custom_format_is_used():
    parser = TimeParser("%d.%m.%Y %H:%M")
    assert parser.parse(["28.02.2024 23:30"])[0] == MOMENT.timestamp()
    assert parser.render(MOMENT.timestamp() + 1800, "28.02.2024 23:30") == "29.02.2024 00:00"
    assert math.isnan(TimeParser().parse(["28.02.2024 23:30"])[0])


def test_numbers_are_parsed_together_as_one_by_one():
    parser = TimeParser()
    numbers = [sign * 10.0**power for power in range(-3, 21) for sign in (1, -1)] + [0.0, math.nan, math.inf, 1e8, 1e11]
    np.testing.assert_array_equal(parser.parse(numbers), [parser.parse([number, 0])[0] for number in numbers])


@pytest.mark.parametrize("seed", range(5))
def test_rows_sorted_by_stream_advance_as_they_do_in_turn(seed):
    """The clock takes the rows of a stream together where they follow one another."""
    rng = np.random.default_rng(seed)
    together, in_turn = Clock(), Clock()
    for clock in (together, in_turn):
        clock.resize(3)
    for start in (0, 1000, 2000):
        times = start + 10.0 * np.arange(3 * 20).reshape(3, 20)
        times[1] = rng.permutation(times[1]) if start == 1000 else times[1] + 0.01 * start
        times[2, rng.integers(20, size=3)] = rng.choice([math.nan, 1.0, 1e6])
        slots = np.repeat(range(3), 20)
        steps = together.advance(slots.tolist(), times.ravel()) or [1] * 60
        mixed = rng.permutation(60)
        mixed = mixed[np.argsort(mixed % 20, kind="stable")]
        single = np.array(in_turn.advance(slots[mixed].tolist(), times.ravel()[mixed]) or [1] * 60)
        np.testing.assert_array_equal(np.array(steps)[mixed], single)
        for name, values in together.state(range(3)).items():
            np.testing.assert_array_equal(values, in_turn.state(range(3))[name])


def hourly(hours, skip=()):
    start = datetime(2024, 1, 1, tzinfo=UTC)
    return [
        {"time": (start + timedelta(hours=hour)).strftime("%Y-%m-%d %H:%M"), "x": math.sin(hour / 24 * 2 * math.pi)}
        for hour in range(hours)
        if hour not in skip
    ]


def test_forecasts_carry_dates():
    stream = Stream(hourly(40), network=TINY)
    for _ in stream:
        pass
    assert stream.forecast(3).times == ["2024-01-02 16:00", "2024-01-02 17:00", "2024-01-02 18:00"]


def test_gaps_are_reported_or_filled_so_that_cycles_keep_their_phase():
    notices = []
    rows = hourly(500, skip=range(400, 407))
    stream = Stream(rows, network=TINY, report=notices.append)
    errors = [abs(out.prediction["x"] - out.observed["x"]) for out in stream if out.index > 300]
    assert notices == ["source: line 401: 7 steps are missing before it"]
    assert stream.stats.gaps == 1
    filled = Stream(rows, network=TINY, gaps="fill")
    outs = list(filled)
    assert len(outs) == len(rows)
    better = [abs(out.prediction["x"] - out.observed["x"]) for out in outs if out.index > 300]
    assert better[400 - 301] < 0.5 * errors[400 - 301]


def test_late_rows_are_kept_skipped_or_stop_the_stream():
    rows = hourly(30)
    rows.insert(20, rows[10])
    assert len(list(Stream(rows, network=TINY))) == 31
    skipping = Stream(rows, network=TINY, order="skip")
    assert [out.line for out in skipping] == [line for line in range(1, 32) if line != 21]
    assert skipping.stats.late_rows == 1
    stopping = Stream(rows, network=TINY, order="stop")
    results = stopping.read(100)
    assert len(results) == 20
    with pytest.raises(RowError, match="line 21: not later than the row before"):
        stopping.read(100)


def test_the_calendar_becomes_input_once_two_cycles_were_covered():
    clock = Clock()
    times = TimeParser().parse([row["time"] for row in hourly(24 * 20)])
    calendars = []
    for time in times:
        clock.advance([0], np.array([time]))
        calendars.append(clock.calendar([0], np.array([time]), 1)[0])
    day, week, year = (np.array([np.abs(each[0, 2 * k : 2 * k + 2]).max() > 0 for each in calendars]) for k in range(3))
    assert day.argmax() == 48
    assert week.argmax() == 24 * 14
    assert not year.any()
    angle = 2 * math.pi * 7 / 24
    np.testing.assert_allclose(calendars[24 * 5 + 7][0, :2], [math.sin(angle), math.cos(angle)], atol=1e-9)
    assert calendars[0].shape == (2, CALENDAR)
