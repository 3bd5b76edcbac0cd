"""A direct implementation of the network: separate matrices, dense gradients, every norm at every step.

The authors' released code works this way. It gives the same numbers as `ptncn.network`, and shows how much time the
factored updates of `ptncn.updates` save.
"""

from __future__ import annotations

import torch
from torch import Tensor


class Textbook:
    """A P-TNCN with tanh states, sigmoid predictions of the observation, plain descent, unit norms and max-norm.

    Matrices have the paper's names and orientation, (to, from); activities are columns, (n, B).

    Arguments:
        weights: W1, M1, V1, U1, E1, b1, c1, W2, … as returned by `PTNCN.synapses()`; copied.
        error_rule: "fixed", "transpose" or "temporal".
    """

    def __init__(
        self,
        weights: dict[str, Tensor],
        batch_size: int,
        *,
        error_rule: str = "fixed",
        beta: float = 0.15,
        gamma: float = 0.01,
        lam: float = 0.001,
        lr: float = 0.035,
        max_norm: float = 30.0,
    ) -> None:
        self.weights = {name: weight.clone(memory_format=torch.contiguous_format) for name, weight in weights.items()}
        self.depth = sum(name[0] == "W" for name in weights)
        self.error_rule, self.beta, self.gamma, self.lam = error_rule, beta, gamma, lam
        self.lr, self.max_norm = lr, max_norm
        sizes = [len(weights["W1"]), *(len(weights[f"V{n}"]) for n in range(1, self.depth + 1))]
        zeros = weights["W1"].new_zeros
        self.y = [zeros(size, batch_size) for size in sizes]  # x, y¹, …, yᴸ of the previous step
        self.e_z = [zeros(size, batch_size) for size in sizes]
        self.steps = 0

    @torch.no_grad()
    def step(self, x: Tensor, *, learn: bool = True) -> Tensor:
        """Return the prediction (B, n₀) of x (B, n₀), made before x is used."""
        w, layers, x = self.weights, range(1, self.depth + 1), x.T
        y = self.y
        a = {n: w[f"M{n}"] @ y[n - 1] + w[f"V{n}"] @ y[n] + w[f"b{n}"][:, None] for n in layers}
        for n in layers[:-1]:
            a[n] = a[n] + w[f"U{n}"] @ y[n + 1]
        z = [x, *(torch.tanh(a[n]) for n in layers)]
        o = [w[f"W{n}"] @ z[n] + w[f"c{n}"][:, None] for n in layers]
        o = [torch.sigmoid(o[0]), *(torch.tanh(part) for part in o[1:])]
        e = [predicted - target for predicted, target in zip(o, z, strict=False)]
        corrected = [x]
        for n in layers:
            d = self.beta * (w[f"E{n}"] @ e[n - 1]) + self.lam * torch.sign(z[n])
            if n < self.depth:
                d = d - self.gamma * e[n]
            corrected.append(torch.tanh(a[n] - d))
        e_z = [own - target for own, target in zip(z, corrected, strict=True)]
        if learn and self.steps:
            for n in layers:
                self._learn(n, z, e, e_z)
        self.y, self.e_z = corrected, e_z
        self.steps += 1
        return o[0].T

    def _learn(self, n: int, z: list[Tensor], e: list[Tensor], e_z: list[Tensor]) -> None:
        dW = e[n - 1] @ z[n].T
        self._descend(f"M{n}", e_z[n] @ self.y[n - 1].T)
        self._descend(f"V{n}", e_z[n] @ self.y[n].T)
        if n < self.depth:
            self._descend(f"U{n}", e_z[n] @ self.y[n + 1].T)
        self._descend(f"W{n}", dW)
        if self.error_rule == "transpose":
            self._descend(f"E{n}", dW.T)
        elif self.error_rule == "temporal":
            self._descend(f"E{n}", (e_z[n] - self.e_z[n]) @ e[n - 1].T)
        self._descend(f"b{n}", e_z[n].sum(1))
        self._descend(f"c{n}", e[n - 1].sum(1))

    def _descend(self, name: str, gradient: Tensor) -> None:
        weight, norm = self.weights[name], torch.linalg.vector_norm(gradient)
        if norm > 0:
            gradient = gradient / norm
        weight -= self.lr * gradient
        if name[0].isupper():
            norms = torch.linalg.vector_norm(weight, dim=0, keepdim=True)
            weight *= torch.where(norms > self.max_norm, self.max_norm / norms, 1.0)
