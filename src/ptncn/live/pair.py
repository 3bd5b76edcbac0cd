"""Two learners side by side: the same data, equal size if possible, and clocks that count only each learner's work."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ptncn.demo.simulate import LSTM, LSTM_OPTIONS, PIXELS, PTNCN, count_weights
from ptncn.learner import Learner, Surprising
from ptncn.learners import make
from ptncn.learners.registry import LEARNERS, describe

UNITS = (128, 64)
FIXED: dict[str, dict[str, Any]] = {
    PTNCN: {
        "optimizer": "rmsprop",
        "rescale": "none",  # RMSprop sets the step size itself
        "error_rule": "transpose",
        "error_lr_factor": 0.03,  # on videos a slowly learning E is best
        "biases": False,
    },
    LSTM: LSTM_OPTIONS,
}
"""Options that were not searched."""
SEARCHED: dict[str, dict[str, Any]] = {PTNCN: {"lr": 1.2e-3, "beta": 0.5}, LSTM: {"lr": 4.8e-3, "stride": 1}}
"""The best of twelve settings for each learner, found by `benchmarks/live_rates.py` on worlds that the page does not
show. Step sizes are larger than in the demo, because a visitor watches for minutes, not for 30,000 frames."""
EXACT_UNITS = 16
"""Units for exact RTRL, which would be too slow to watch at equal size."""
SMOOTH = 0.05
"""Weight of the newest frame in running means."""


class Runner:
    """A learner in the world: its state, running error, clock and lesions."""

    def __init__(self, name: str, learner: Learner, options: Mapping[str, Any], *, equal: bool = True) -> None:
        self.name, self.learner, self.equal = name, learner, equal
        entry = describe(name)
        self.label = entry.label or name
        self.about = entry.about.partition(", window")[0]
        """Its label; the window is one of the options."""
        self.options = ", ".join(f"{option} {value}" for option, value in options.items())
        self.weights = count_weights(learner) if isinstance(learner, nn.Module) else 0
        self.state = learner.begin(1)
        self.error = self.milliseconds = math.nan
        self.surprise: list[float] = []
        self._lesions: dict[str, dict[str, Tensor]] = {}

    def show(self, x: Tensor, *, begins: bool, learn: bool, dream: bool) -> Tensor:
        """The prediction of `x`, (1, pixels). The learner then sees `x`, unless it dreams."""
        start = time.thread_time()
        if begins and not dream:
            self.learner.end(self.state)
            self.state = self.learner.begin(1)
        seen = self.learner.predict(self.state).clone() if dream else x
        step = self.learner.step(seen, self.state, learn=learn and not dream)
        self._smooth("milliseconds", 1e3 * (time.thread_time() - start))
        self._zero_lesions()
        if not bool(step.scored[0]):
            return torch.zeros_like(x)
        self._smooth("error", float((step.prediction - x).double().square().sum()))
        if isinstance(step, Surprising):
            now = [float(layer[0]) for layer in step.surprise]
            before = self.surprise or now
            self.surprise = [(1 - SMOOTH) * b + SMOOTH * n for b, n in zip(before, now, strict=True)]
        return step.prediction.detach()

    def parts(self) -> list[str]:
        """Parts that can be lesioned: each layer of a P-TNCN, the hidden layer of other networks."""
        if self.name == PTNCN:
            return [f"layer {number}" for number in range(1, len(self.learner.options()["hidden_sizes"]) + 1)]
        return ["hidden layer"] if self._weights_of("hidden layer") else []

    def lesion(self, part: str, on: bool) -> None:
        """Keep all weights of a part at zero, or restore them."""
        weights = self._weights_of(part)
        if on and part not in self._lesions:
            self._lesions[part] = {name: weight.detach().clone() for name, weight in weights.items()}
            self._zero_lesions()
        elif not on and part in self._lesions:
            for name, before in self._lesions.pop(part).items():
                weights[name].data.copy_(before)

    @property
    def lesions(self) -> list[str]:
        return list(self._lesions)

    def snapshot(self) -> dict[str, Any]:
        """A copy of everything that `go_back` needs."""
        lesions = {part: {name: each.clone() for name, each in held.items()} for part, held in self._lesions.items()}
        running = self.error, self.milliseconds, list(self.surprise)
        return {
            "learner": self.learner.snapshot(),
            "state": self.state.clone(),
            "lesions": lesions,
            "running": running,
        }

    def go_back(self, tree: dict[str, Any]) -> None:
        self.learner.restore(tree["learner"])
        self.state = tree["state"].clone()
        self._lesions = {part: dict(held) for part, held in tree["lesions"].items()}
        self.error, self.milliseconds, self.surprise = tree["running"]

    def _weights_of(self, part: str) -> dict[str, nn.Parameter]:
        if not isinstance(self.learner, nn.Module):
            return {}
        named = dict(self.learner.named_parameters())
        if self.name == PTNCN:
            return {name: weight for name, weight in named.items() if name.endswith(part.removeprefix("layer "))}
        return {name: weight for name, weight in named.items() if not name.startswith("readout")}

    def _zero_lesions(self) -> None:
        for part in self._lesions:
            for weight in self._weights_of(part).values():
                weight.data.zero_()

    def _smooth(self, name: str, value: float) -> None:
        before = getattr(self, name)
        setattr(self, name, value if math.isnan(before) else (1 - SMOOTH) * before + SMOOTH * value)


def make_pair(rival: str = LSTM, seed: int = 0, units: Sequence[int] = UNITS) -> list[Runner]:
    """A P-TNCN and another learner of the registry with as many weights, both untrained."""
    entry = describe(rival)
    settings = {name: {**FIXED[name], **SEARCHED[name]} for name in FIXED}
    options = settings.get(rival, entry.default_options("video", online=True))
    network = make(PTNCN, input_size=PIXELS, hidden_size=list(units), seed=seed, **settings[PTNCN])
    exact = entry.size_class == "exact"
    hidden = EXACT_UNITS if exact else equal_units(rival, count_weights(network))
    other = make(rival, input_size=PIXELS, hidden_size=hidden, seed=seed, **options)
    mine = Runner(PTNCN, network, settings[PTNCN])
    return [mine, Runner(rival, other, options, equal=not exact and entry.size_class != "none")]


def equal_units(name: str, weights: int) -> int:
    """The number of hidden units that gives a learner about this many weights, which grow quadratically with the units.

    >>> equal_units("lstm-tbptt", 62_740)
    12
    """
    if describe(name).size_class == "none":
        return 1
    few = (2, 4, 6)
    counts = [count_weights(make(name, input_size=PIXELS, hidden_size=units)) for units in few]
    quadratic = np.polyfit(few, counts, 2)
    return min(range(1, weights // PIXELS + 2), key=lambda units: abs(float(np.polyval(quadratic, units)) - weights))


def rivals() -> dict[str, str]:
    """{name: label} of every registered learner except the P-TNCN."""
    return {name: entry.label or name for name, entry in LEARNERS.items() if name != PTNCN}
