"""Section III of the paper: predict, correct, learn.

The paper uses column vectors. Here the activities of a batch are (B, n) and matrices are stored (from, to), so the
paper's W z becomes z @ W. Layers count from 1; layer 0 is the observation x.

======  =============================================================================
a, z    drive and state of a layer, computed before the observation is seen
z_o     prediction of the layer below
e       error units: prediction − target
y       corrected state
e_z     displacement of the state, from which M, V and U learn: z − y, or a small one divided by its size
======  =============================================================================

Each function of the first part computes one layer from the states of the previous step, so layers may be computed in
any order, or in parallel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ptncn.distributions import Distribution
from ptncn.network.config import Config
from ptncn.network.layers import Layer
from ptncn.network.memory import recall, teach
from ptncn.updates.factors import Activity, Factors, Synapses, inverse

TINY = 1e-30
"""Lower bound of a mean square, for networks without any error."""

# Prediction


def drive(before: Tensor, held: Mapping[str, Tensor], layer: Layer) -> Tensor:
    """a = M y₋ + V y + U y₊ + b, from [x, y¹, …, yᴸ] of the previous step (equations 3 and 5), plus the memory."""
    a = layer.MVU.send(before[:, layer.neighbours], onto=_bias(layer.b))  # (B, n) = (B, n₋+n+n₊) @ (n₋+n+n₊, n)
    if layer.memory is None:
        return a
    recalled = recall(held, layer.memory)
    layer.MVU.arrive()
    return a.add_(recalled)


def state(a: Tensor, layer: Layer) -> Tensor:
    """z = φ_z(a) (equations 4 and 6)."""
    return layer.phi(a)


def expectation(z: Tensor, layer: Layer) -> Tensor:
    """W z + c; φ_o of it is the prediction z_o of the layer below (equation 8)."""
    return layer.W.send(z, onto=_bias(layer.c))  # (B, n₋) = (B, n) @ (n, n₋)


# Correction


def error(predicted: Tensor, target: Tensor, observed: Tensor | None) -> Tensor:
    """e = −(z − z_o) (equations 11 and 12); zero for rows that are not `observed` (B, 1)."""
    e = predicted - target
    return e if observed is None else e * observed


def feedback(e_below: Tensor, layer: Layer, config: Config) -> Tensor:
    """−β E e₋, or −E e₋ if the displacement for learning has a separate size."""
    scale = -1.0 if config.teaching == "small" else -config.beta
    return layer.E.send(e_below, scale=scale)  # (B, n) = −β (B, n₋) @ (n₋, n)


def correction(a: Tensor, z: Tensor, back: Tensor, e_own: Tensor | None, config: Config) -> Tensor:
    """a − (β E e₋ − γ e + λ sign z), the drive of the corrected state y = φ_z(…) (equations 13 and 14).

    `back` comes from `feedback`. `e_own` is the error of the layer above in predicting this one; None for the top
    layer.
    """
    scope = config.beta if config.beta_scope == "all" else 1.0
    corrected = torch.add(back, a) if config.teaching == "coupled" else torch.add(a, back, alpha=config.beta)
    if e_own is not None:
        corrected.add_(e_own, alpha=scope * config.gamma)
    if config.lam:
        sign = -1 if config.sparsity_sign == "derived" else 1
        corrected.add_(torch.sign(z), alpha=sign * scope * config.lam)
    return corrected


def small_displacement(a: Tensor, z: Tensor, back: Tensor, square: Tensor, layer: Layer, config: Config) -> Tensor:
    """e_z = (z − φ(a − κ E e₋ / r)) / κ, with r² = `square` the usual mean square of E e₋.

    The γ and λ terms affect the state but not learning: relative to an error of unit size, their weight would grow as
    predictions improve. Where φ has no slope, only a displacement on the scale of the drives crosses its threshold.
    """
    kappa = layer.reach(a, config.reach) if layer.reach is not None else config.displacement
    return (z - layer.phi(a + back * (kappa * square.clamp_min(TINY).rsqrt()))) / kappa


# Learning: a rule is a pair (presynaptic activity, error signal), and the weights descend its outer product


def teach_error_weights(
    e_below: Activity, e_z: Tensor, e_z_before: Tensor | None, dW: Factors, config: Config
) -> Factors:
    """ΔE = (e_z − e_z of the step before) e₋ᵀ (equation 21), or the transpose of ΔW."""
    if config.error_rule == "transpose" or e_z_before is None:
        return Factors([dW.post], dW.pre[0])
    return Factors([e_below], Activity(config.temporal_sign * (e_z - e_z_before)))


def with_hebbian(rule: Factors, post: Tensor, weight: Tensor | None, xi: float) -> Factors:
    """Δ − ξ post preᵀ / ‖post preᵀ‖ (equations 22 and 23), with post-synaptic activity `post`."""
    if not xi:
        return rule
    hebbian = Factors(rule.pre, Activity(_weighed(post, weight)))
    return rule.plus(hebbian.post, -xi * inverse(hebbian.norms()))


# The three phases over all layers


@dataclass
class Guess:
    """Result of the prediction phase; lists run over layers 1 … L."""

    a: list[Tensor]
    z: list[Tensor]
    logits: Tensor  # W₁ z¹ + c₁, before the output nonlinearity
    z_o: list[Tensor]  # z_o⁰ … z_o^{L−1}


def predict(before: Tensor, held: Mapping[str, Tensor], layers: list[Layer], output: Distribution) -> Guess:
    """Drives, states and predictions from [x, y¹, …, yᴸ] of the previous step, (B, n₀+…+n_L), and memories."""
    a = [drive(before, held, layer) for layer in layers]
    layers[-1].MVU.arrive()
    z = [state(own, layer) for own, layer in zip(a, layers, strict=True)]
    logits, z_o = expectations(z, layers, output)
    return Guess(a, z, logits, z_o)


def expectations(z: list[Tensor], layers: list[Layer], output: Distribution) -> tuple[Tensor, list[Tensor]]:
    """The logits of the observation, and z_o⁰ … z_o^{L−1}."""
    logits, *hidden = [expectation(own, layer) for own, layer in zip(z, layers, strict=True)]
    layers[-1].W.arrive()
    z_o = [output.mean(logits), *(layer.phi_o(h) for h, layer in zip(hidden, layers[1:], strict=True))]
    return logits, z_o


def correct(
    x: Tensor, guess: Guess, layers: list[Layer], output: Distribution, config: Config, observed: Tensor | None
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Errors e⁰ … e^{L−1} of the guess, corrected states y¹ … yᴸ, and the feedback of these errors to each layer.

    With K > 1 the correction is repeated, with the errors of the corrected states.
    """
    a, y, z_o = guess.a, guess.z, guess.z_o
    first_e: list[Tensor] = []
    first_back: list[Tensor] = []
    for _ in range(config.corrections):
        if first_e:
            z_o = expectations(y, layers, output)[1]
        e = [error(o, target, observed) for o, target in zip(z_o, [x, *y[:-1]], strict=True)]
        first_e = first_e or e
        e_own = [*e[1:], None]
        back = [feedback(below, layer, config) for below, layer in zip(e, layers, strict=True)]
        layers[-1].E.arrive()
        first_back = first_back or back
        a = [correction(a[i], y[i], back[i], e_own[i], config) for i in range(len(layers))]
        y = [state(own, layer) for own, layer in zip(a, layers, strict=True)]
    return first_e, y, first_back


def displacements(
    guess: Guess, y: list[Tensor], back: list[Tensor], squares: Tensor | None, layers: list[Layer], config: Config
) -> list[Tensor]:
    """e_z¹ … e_zᴸ: z − y (equation 20), or small ones, given the mean squares (L,) of the feedback."""
    if squares is None:
        return [own - corrected for own, corrected in zip(guess.z, y, strict=True)]
    return [
        small_displacement(a, z, returned, square, layer, config)
        for a, z, returned, square, layer in zip(guess.a, guess.z, back, squares, layers, strict=True)
    ]


def learn(
    x: Tensor,
    guess: Guess,
    e: list[Tensor],
    e_z: list[Tensor],
    before: Tensor,
    held: Mapping[str, Tensor],
    e_z_before: Tensor | None,
    layers: list[Layer],
    config: Config,
    weight: Tensor | None,
) -> dict[str, Factors]:
    """The update of each group of synapses: R1 (M1, V1 and U1 stacked), W1, E1, b1, c1, …, R2, …

    `before` is [x, y¹, …, yᴸ] (or z in place of y) and `e_z_before` [e_z¹, …, e_zᴸ] of the previous step. `weight`
    (B, 1) is the weight of each row, or None if all are 1.
    """
    sizes = [x.shape[1], *(own.shape[1] for own in guess.z)]
    pre = [Activity(part) for part in torch.split(before, sizes, dim=1)]  # x, y¹, …, yᴸ of the previous step
    e_z = [_weighed(own, weight) for own in e_z]
    e_z_old = (
        [None] * len(e_z)
        if e_z_before is None
        else [_weighed(old, weight) for old in torch.split(e_z_before, sizes[1:], dim=1)]
    )
    z = [x, *guess.z]
    ones = Activity(x.new_ones(len(x), 1))
    updates = {}
    for layer in layers:
        n = layer.number
        teach_z = Activity(e_z[n - 1])  # equation 20
        teach_o = Activity(e_z[n - 2] if n > 1 and config.prediction_error == "e_z" else _weighed(e[n - 1], weight))
        dR = Factors(pre[n - 1 : n + 2], teach_z)  # equations 17 to 19: e_z y₋ᵀ, e_z yᵀ, e_z y₊ᵀ
        dW = Factors([Activity(z[n])], teach_o)  # equation 15: e₋ zᵀ
        updates[f"R{n}"] = with_hebbian(dR, z[n], weight, config.xi)
        updates[f"W{n}"] = with_hebbian(dW, z[n - 1], weight, config.xi)
        if config.error_rule != "fixed":
            e_below = Activity(e[n - 1])
            updates[f"E{n}"] = teach_error_weights(e_below, e_z[n - 1], e_z_old[n - 1], dW, config)
        if config.biases:
            updates[f"b{n}"] = Factors([ones], teach_z)
            updates[f"c{n}"] = Factors([ones], teach_o)
        if layer.memory is not None:
            updates |= teach(held, pre[n - 1], teach_z, layer.memory)
    return updates


# Total discrepancy


def prediction_discrepancy(fit: Tensor, z: Tensor, e_own: Tensor | None, config: Config) -> Tensor:
    """(B,) β·fit + γ/2 ‖e‖² + λ |z| (equations 9 and 10), where `fit` is ½‖e₋‖² or a negative log-likelihood."""
    parts = config.beta * fit + config.lam * z.abs().sum(-1)
    return parts if e_own is None else parts + 0.5 * config.gamma * e_own.square().sum(-1)


def state_discrepancy(z: Tensor, y: Tensor) -> Tensor:
    """(B,) ½ ‖y − z‖² (equation 16)."""
    return 0.5 * (y - z).square().sum(-1)


def _weighed(signal: Tensor, weight: Tensor | None) -> Tensor:
    return signal if weight is None else signal * weight


def _bias(bias: Synapses | None) -> Tensor | None:
    return None if bias is None else bias.weight
