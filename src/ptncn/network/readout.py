"""Prediction weights of second order: W of the first layer by recursive least squares, and forecasts taught directly.

The prediction of a Gaussian observation is linear in the state, W z + c, and is taught by its own error. Recursive
least squares solves for it as it goes, from presynaptic activity alone, so it is as local as ΔW = e zᵀ::

    k = P φ / (μ + φᵀ P φ)        [W c] ← [W c] + (x − W z − c) kᵀ        φ = [z ; 1]

A forecast for h steps ahead is another such map of the same state. It is taught when that step arrives, with the φ and
the k of when it was made, so that no forecast is ever fed back into the network. Errors are cut at a multiple of the
usual error before they teach, for least squares believes every spike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from ptncn.updates.rls import absorb, reminder

WARM_UP = 20
"""Updates before errors are cut: until then nothing is usual."""
PACE = 0.01
"""Share of the newest step in the usual error."""


class SecondOrder(nn.Module):
    """What `readout="rls"` keeps beside the network's own W and c.

    Maps are (F, n₀), F being the units of the first layer, and one more for a constant where there are biases.
    """

    P: Tensor
    ahead: Tensor
    usual: Tensor

    def __init__(self, features: int, outputs: int, horizons: Sequence[int], config: Any) -> None:
        super().__init__()
        self.config = config
        self.horizons = tuple(horizons)
        self.later = tuple(sorted({h for h in horizons if h > 1}))
        self.updates = 0
        double = {"dtype": torch.float64}
        self.register_buffer("P", torch.eye(features, **double) / config.ridge, persistent=False)  # type: ignore[call-overload]
        self.register_buffer("ahead", torch.zeros(len(self.later), features, outputs, **double), persistent=False)  # type: ignore[call-overload]
        self.register_buffer("usual", torch.zeros(1 + len(self.later), outputs, **double), persistent=False)  # type: ignore[call-overload]

    def begin(self, rows: int) -> dict[str, Tensor]:
        """Features and gains of steps whose forecasts are still to come true; the last row is the prior's."""
        if not self.later:
            return {}
        nothing = self.P.new_zeros(rows + 1, self.later[-1] - 1, len(self.P))
        return {"features": nothing, "gains": nothing.clone()}

    def features(self, z: Tensor) -> Tensor:
        """(B, F) the state, and 1 where there is a constant."""
        z = z.to(self.P)
        return z if z.shape[1] == len(self.P) else torch.cat([z, z.new_ones(len(z), 1)], 1)

    def learn(
        self, z: Tensor, x: Tensor, W: Tensor, rows: Tensor | None, mask: Tensor | None, waiting: dict[str, Tensor]
    ) -> Tensor:
        """(F, n₀) what to add to W, the map for the next step; those for later steps learn here.

        Only `rows` (B,) teach, and `mask` (B,) were observed; None: all of them.
        """
        config, features = self.config, self.features(z)
        features = features if rows is None else features * rows[:, None]
        features = torch.cat([features, reminder(self.P, config.ridge, config.forgetting, self.updates)])
        gains = absorb(self.P, features, config.forgetting, self.updates).T  # (B+1, F)
        self.updates += 1
        came = torch.cat([x.to(features), features.new_zeros(1, x.shape[1])])
        for place, (horizon, later) in enumerate(zip(self.later, self.ahead, strict=True), start=1):
            then, pull = waiting["features"][:, horizon - 2], waiting["gains"][:, horizon - 2]
            if mask is not None:
                pull = torch.cat([pull[:-1] * mask[:, None], pull[-1:]])
            later.addmm_(pull.T, self._cut(came - then @ later, place, pull[:-1].any(1)))
        self._wait(waiting, features, gains, mask)
        return gains.T @ self._cut(came - features @ W.to(features), 0, features[:-1].any(1))

    def pass_by(self, waiting: dict[str, Tensor], mask: Tensor | None) -> None:
        """A step that does not teach: what waits gets older."""
        nothing = self.P.new_zeros(len(waiting["features"]), len(self.P)) if self.later else self.P
        self._wait(waiting, nothing, nothing, mask)

    def forecast(self, z: Tensor, coming: Tensor) -> Tensor:
        """(horizons, B, n₀) the forecast for each horizon; `coming` (B, n₀) is the prediction."""
        features = self.features(z)
        later = {h: (features @ W).to(coming) for h, W in zip(self.later, self.ahead, strict=True)}
        return torch.stack([later.get(h, coming) for h in self.horizons])

    def _wait(self, waiting: dict[str, Tensor], features: Tensor, gains: Tensor, mask: Tensor | None) -> None:
        """Queue the features of this step; rows that were not observed (B,) stay where they are."""
        if not self.later:
            return
        for name, newest in (("features", features), ("gains", gains)):
            moved = torch.cat([newest[:, None], waiting[name][:, :-1]], 1)
            if mask is not None:
                moved[:-1] = torch.where(mask[:, None, None], moved[:-1], waiting[name][:-1])
            waiting[name] = moved

    def _cut(self, errors: Tensor, place: int, rows: Tensor) -> Tensor:
        """Errors (B+1, n₀) within a multiple of the usual one, which `rows` (B,) then change; the prior's is left."""
        clip = self.config.error_clip
        if clip is None or not rows.any():
            return errors
        usual, own = self.usual[place], errors[:-1]
        if self.updates > WARM_UP:
            own = torch.maximum(torch.minimum(own, clip * usual), -clip * usual)
        pace = max(1 / self.updates, PACE)
        usual += pace * (own[rows].abs().mean(0) - usual)
        return torch.cat([own, errors[-1:]])

    def snapshot(self) -> dict[str, Any]:
        tensors = {name: value.clone() for name, value in self.named_buffers()}
        return {"updates": self.updates, **tensors}

    def restore(self, tree: Mapping[str, Any]) -> None:
        for name, value in self.named_buffers():
            value.copy_(tree[name])
        self.updates = tree["updates"]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Follow the network to its device; least squares stays in double precision."""
        super()._apply(lambda tensor: tensor.to(fn(tensor).device), recurse)  # type: ignore[no-untyped-call]
        return self
