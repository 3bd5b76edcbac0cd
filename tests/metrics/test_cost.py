"""Cost with a fake clock and tensors of known size."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from ptncn.learner import Learner, State, Step
from ptncn.learners.esn import ESN
from ptncn.metrics import Cost, Meter, bytes_of, cost
from ptncn.training import run


@dataclass(kw_only=True)
class FrameState(State):
    frames: list[Tensor]


class Clockwork:
    """Keeps every frame; its steps take the given time and its end half a second, on a fake clock."""

    registry_name, input_size = "clockwork", 3

    def __init__(self, seconds: list[float]) -> None:
        self.now, self.seconds = 0.0, iter(seconds)

    def begin(self, batch_size: int) -> FrameState:
        return FrameState(batch_size=batch_size, frames=[])

    def step(self, x: Tensor, state: FrameState, *, learn: bool = True, mask: Tensor | None = None) -> Step:
        self.now += next(self.seconds)
        state.frames.append(x.clone())
        state.advance(mask)
        return Step(x, x, (), torch.ones(len(x), dtype=torch.bool))

    def end(self, state: FrameState) -> None:
        self.now += 0.5
        state.frames.clear()

    def predict(self, state: FrameState) -> Tensor:
        return torch.zeros(state.batch_size, 3)

    def options(self) -> dict[str, Any]:
        return {"input_size": 3}

    def snapshot(self) -> dict[str, Any]:
        return {"weight": torch.zeros(4, 5), "moments": [torch.zeros(7, dtype=torch.float64)], "lr": 0.1}

    def restore(self, tree: Any) -> None:
        self.restored = tree


def clockwork(monkeypatch: pytest.MonkeyPatch, seconds: list[float], **options: int) -> Cost:
    learner = Clockwork(seconds)
    monkeypatch.setattr(cost.time, "perf_counter", lambda: learner.now)
    return Cost(learner, **options)


def test_step_times_exclude_the_end_and_frame_times_include_it(monkeypatch):
    meter = clockwork(monkeypatch, [1.0, 2.0, 3.0, 4.0, 10.0])
    run(meter, torch.zeros(5, 2, 3), meters=[meter])
    result = meter.compute()
    assert result["step_median"] == pytest.approx(3.0)
    assert result["step_iqr"] == pytest.approx(4.0 - 2.0)
    assert result["seconds_a_frame"] == pytest.approx((20 + 0.5) / 5)


def test_bytes_are_the_peak_of_the_state_and_all_of_the_snapshot(monkeypatch):
    meter = clockwork(monkeypatch, [1.0] * 4)
    run(meter, torch.zeros(4, 2, 3))
    result = meter.compute()
    assert result["state_bytes"] == 4 * (2 * 3 * 4)
    assert result["learner_bytes"] == 4 * 5 * 4 + 7 * 8


def test_the_window_bounds_memory(monkeypatch):
    meter = clockwork(monkeypatch, [9.0, 9.0, 1.0, 2.0, 3.0], window=3)
    run(meter, torch.zeros(5, 1, 3))
    assert meter.compute()["step_median"] == pytest.approx(2.0)


def test_a_saved_meter_continues_exactly(monkeypatch):
    meter = clockwork(monkeypatch, [0.1, 0.7, 0.3])
    run(meter, torch.zeros(3, 1, 3))
    resumed = Cost(meter.learner)
    resumed.load_tree(json.loads(json.dumps(meter.tree())))
    assert resumed.compute() == meter.compute()
    meter.reset()
    assert math.isnan(meter.compute()["step_median"])
    assert math.isnan(meter.compute()["seconds_a_frame"])


def test_it_wraps_a_learner_and_is_a_meter():
    plain, measured = (ESN(3, 8, readout="rls", output="gaussian") for _ in range(2))
    meter = Cost(measured)
    assert isinstance(meter, Learner)
    assert isinstance(meter, Meter)
    frames = torch.randn(6, 2, 3, generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[True, True], [True, False]]).repeat(3, 1)
    expected, state = run(plain, frames, learn=True, mask=mask)
    measured_predictions, measured_state = run(meter, frames, learn=True, mask=mask, meters=[meter])
    assert torch.equal(expected, measured_predictions)
    assert torch.equal(plain.predict(state), meter.predict(measured_state))
    assert (meter.registry_name, meter.options()) == (plain.registry_name, plain.options())
    fresh = ESN(3, 8, readout="rls", output="gaussian")
    Cost(fresh).restore(meter.snapshot())
    assert torch.equal(fresh.readout.weight, plain.readout.weight)
    result = meter.compute()
    assert 0 < result["step_median"] < 1
    assert result["state_bytes"] == 2 * 8 * 4 + 2 * 8 + 2  # reservoir, frames observed, rows seen
    assert result["learner_bytes"] == 4 * (8 * 8 + 3 * 8 + 8 + 9 * 3 + 3) + 8 * 9 * 9  # P alone is float64


def test_shared_memory_counts_once_and_only_tensors_count():
    buffer = torch.zeros(4, 6)
    tree = {"columns": buffer[:, 2:4], "all": buffer, "row": (buffer[1], None, 3, "text"), "none": torch.zeros(0)}
    assert bytes_of(tree) == 4 * 6 * 4
    assert bytes_of([torch.zeros(3), torch.zeros(2, dtype=torch.float64)]) == 3 * 4 + 2 * 8


def test_a_window_without_steps_is_refused():
    with pytest.raises(ValueError, match="window: expected at least 1 step, got 0"):
        Cost(Clockwork([]), window=0)
