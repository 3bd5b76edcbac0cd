"""From local updates to new weights: rescale, step, project."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from torch import nn

from ptncn.kernels import Rule
from ptncn.updates.factors import Factors
from ptncn.updates.maxnorm import MaxNorm
from ptncn.updates.optimizers import OPTIMIZERS
from ptncn.updates.rescale import rescaling
from ptncn.updates.synapses import Synapses

if TYPE_CHECKING:
    from ptncn.network.config import Config


class LocalLearning(nn.Module):
    """Applies updates to named weights and keeps what that needs: moments, and bounds of norms.

    Names that begin with E are error weights, which have a step size of their own and may not learn at all. Names in
    lower case are biases, which are neither projected nor decayed.
    """

    def __init__(self, weights: Mapping[str, Synapses], config: Config) -> None:
        super().__init__()
        learnt = {name: w.weight for name, w in weights.items() if config.error_rule != "fixed" or name[0] != "E"}
        self.config = config
        self.lr = config.lr
        self.optimizer = OPTIMIZERS[config.optimizer](learnt, config)
        self.balls = {
            name: MaxNorm(config.max_norm) for name in learnt if config.max_norm is not None and name[0].isupper()
        }

    def step_size(self, name: str) -> float:
        lr = self.lr
        if self.config.schedule is not None:
            lr *= self.config.schedule(self.optimizer.updates)  # type: ignore[operator]
        return lr * self.config.error_lr_factor if name[0] == "E" else lr

    def apply_updates(self, weights: Mapping[str, Synapses], updates: Mapping[str, Factors], batch_size: int) -> None:
        """Descend each update. `batch_size` is B; updates with a Hebbian part have 2 B rows."""
        share = 1.0 / batch_size if self.config.reduction == "sum_then_mean" else 1.0
        for name, factors in updates.items():
            self._descend(name, weights[name], factors, share)
        self.optimizer.updates += 1

    def rules(self) -> tuple[Rule, Rule, Rule]:
        """What the compiled step needs to know of matrices, of E, and of biases, at the update that comes next."""
        lr, lr_error, decay = self.step_size("W"), self.step_size("E"), self.config.weight_decay
        rule = self.optimizer.rule
        most = rule(lr, lr * decay)
        error = most if lr_error == lr else rule(lr_error, lr_error * decay)
        return most, error, most if decay == 0 else rule(lr, 0.0)

    def note_update(
        self, weights: Mapping[str, Synapses], queued: Iterable[str], rows: int, *, projected: bool
    ) -> None:
        """Someone else, who keeps to the same rules, made this update, and put so many rows into some queues.

        `projected` says whether norms were kept within bounds as well.
        """
        for name, ball in self.balls.items():
            if projected or weights[name].weight._version != ball.version:
                ball.forget()
        for name in queued:
            weights[name].grow(rows)
        if not projected:
            for name, ball in self.balls.items():
                self._project(ball, weights[name], self.step_size(name))
        self.optimizer.updates += 1

    def _descend(self, name: str, synapses: Synapses, factors: Factors, share: float) -> None:
        config, lr = self.config, self.step_size(name)
        ball = self.balls.get(name)
        if ball is not None and synapses.weight._version != ball.version:
            ball.forget()
        pre = factors.scaled(rescaling(factors, config.rescale, config.radius))
        pre = pre if share == 1.0 else pre * share
        decay = lr * config.weight_decay if name[0].isupper() else 0.0
        self.optimizer.step(name, synapses, pre, factors.post.value, lr, decay)
        if ball is not None:
            self._project(ball, synapses, lr, share)

    def _project(self, ball: MaxNorm, synapses: Synapses, lr: float, share: float = 1.0) -> None:
        longest = None if self.config.rescale == "none" else self.config.radius * share
        ball.project(synapses, self.optimizer.growth(longest, lr, synapses.weight.shape[1]))
        ball.version = synapses.weight._version

    def snapshot(self) -> dict[str, Any]:
        moments = {name: value.clone() for name, value in self.optimizer.named_buffers()}
        return {"lr": self.lr, "updates": self.optimizer.updates, "moments": moments}

    def restore(self, tree: Mapping[str, Any]) -> None:
        buffers = dict(self.optimizer.named_buffers())
        if set(buffers) != set(tree["moments"]):
            raise ValueError(f"the snapshot is not one of the optimizer {self.config.optimizer!r}")
        for name, value in tree["moments"].items():
            buffers[name].copy_(value)
        self.optimizer.updates, self.lr = tree["updates"], tree["lr"]
