"""Second-order prediction weights: W of the first layer by recursive least squares, and direct forecasts.

The prediction of a Gaussian observation is linear in the state, W z + c. Recursive least squares fits it online, from
its own error and presynaptic activity, so the rule is as local as ΔW = e zᵀ::

    k = P φ / (μ + φᵀ P φ)        [W c] ← [W c] + (x − W z − c) kᵀ        φ = [z ; 1]

A forecast h steps ahead is another linear map of the same state. It learns when that step arrives, with the φ and k
from when it was made, so no forecast is ever fed back into the network. Errors are clipped at a multiple of the usual
error, because least squares is sensitive to outliers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from ptncn.updates.rls import absorb, reminder

WARM_UP = 20
"""Updates before errors are clipped, while the usual error is unknown."""
PACE = 0.01
"""Weight of the newest step in the usual error."""


class SecondOrder(nn.Module):
    """The state of `readout="rls"`, apart from the network's W and c.

    Maps are (F, n₀), where F is the number of units of the first layer, plus one for the constant if there are biases.
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
        """Features and gains of steps with pending forecasts; the last row belongs to the prior."""
        return {name: self.P.new_zeros(shape) for name, shape in self.waiting(rows).items()}

    def waiting(self, rows: int) -> dict[str, tuple[int, ...]]:
        """The shapes of what `begin` returns."""
        shape = (rows + 1, self.later[-1] - 1, len(self.P)) if self.later else ()
        return {name: shape for name in ("features", "gains") if shape}

    def features(self, z: Tensor) -> Tensor:
        """(B, F) the state, and a constant 1 if there are biases."""
        z = z.to(self.P)
        return z if z.shape[1] == len(self.P) else torch.cat([z, z.new_ones(len(z), 1)], 1)

    def learn(
        self, z: Tensor, x: Tensor, W: Tensor, rows: Tensor | None, mask: Tensor | None, waiting: dict[str, Tensor]
    ) -> Tensor:
        """Update the maps for later steps, and return the change (F, n₀) of W, the map for the next step.

        Only `rows` (B,) are learnt from, and only `mask` (B,) are observed; None means all.
        """
        config, features = self.config, self.features(z)
        features = features if rows is None else features * rows[:, None]
        features = torch.cat([features, reminder(self.P, config.ridge, config.forgetting, self.updates)])
        gains = absorb(self.P, features, config.forgetting, self.updates).T  # (B+1, F)
        self.updates += 1
        observed = torch.cat([x.to(features), features.new_zeros(1, x.shape[1])])
        for place, (horizon, later) in enumerate(zip(self.later, self.ahead, strict=True), start=1):
            then, pull = waiting["features"][:, horizon - 2], waiting["gains"][:, horizon - 2]
            if mask is not None:
                pull = torch.cat([pull[:-1] * mask[:, None], pull[-1:]])
            later.addmm_(pull.T, self._cut(observed - then @ later, place, pull[:-1].any(1)))
        self._wait(waiting, features, gains, mask)
        return gains.T @ self._cut(observed - features @ W.to(features), 0, features[:-1].any(1))

    def skip_step(self, waiting: dict[str, Tensor], mask: Tensor | None) -> None:
        """Advance the pending forecasts by a step without learning."""
        nothing = self.P.new_zeros(len(waiting["features"]), len(self.P)) if self.later else self.P
        self._wait(waiting, nothing, nothing, mask)

    def forecast(self, z: Tensor, prediction: Tensor) -> Tensor:
        """(horizons, B, n₀) the forecast for each horizon; `prediction` (B, n₀) is that of the next step."""
        features = self.features(z)
        later = {h: (features @ W).to(prediction) for h, W in zip(self.later, self.ahead, strict=True)}
        return torch.stack([later.get(h, prediction) for h in self.horizons])

    def _wait(self, waiting: dict[str, Tensor], features: Tensor, gains: Tensor, mask: Tensor | None) -> None:
        """Queue the features of this step; rows outside the mask (B,) stay unchanged."""
        if not self.later:
            return
        for name, newest in (("features", features), ("gains", gains)):
            moved = torch.cat([newest[:, None], waiting[name][:, :-1]], 1)
            if mask is not None:
                moved[:-1] = torch.where(mask[:, None, None], moved[:-1], waiting[name][:-1])
            waiting[name] = moved

    def _cut(self, errors: Tensor, place: int, rows: Tensor) -> Tensor:
        """Clip errors (B+1, n₀) at a multiple of the usual error, and update that from `rows` (B,); not the prior's."""
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
