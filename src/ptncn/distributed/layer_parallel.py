"""Layer parallelism, the P in P-TNCN: each rank has some layers and exchanges messages with its neighbours.

A layer reads the states of its neighbours at the previous step, so all layers compute at the same time. In each step
these cross the boundary between two ranks, (B, n) each:

- the state z of the layer below it, upwards, while W of the layers makes predictions;
- the prediction z_o of that layer, downwards; both sides then know its error;
- the corrected states y of both layers, while all layers learn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ptncn.distributed.data_parallel import describe
from ptncn.distributed.mesh import Message
from ptncn.distributed.ranks import Ranks, RanksError
from ptncn.learner import check_mask, check_observation
from ptncn.network import equations, memory
from ptncn.network.layers import Layer
from ptncn.network.ptncn import PTNCN
from ptncn.network.state import PTNCNState

Received = tuple[list[Tensor], list[Tensor]]
"""The messages received from the ranks below and above."""


class Neighbours:
    """The ranks with the layers below and above. Both ends make the same calls in the same order."""

    def __init__(self, ranks: Ranks) -> None:
        self.ranks = ranks
        self.below = ranks.rank - 1 if ranks.rank > 0 else None
        self.above = ranks.rank + 1 if ranks.rank + 1 < ranks.size else None

    def exchange(
        self,
        *,
        up: Sequence[Tensor] = (),
        down: Sequence[Tensor] = (),
        from_below: Sequence[int] = (),
        from_above: Sequence[int] = (),
        like: Tensor,
    ) -> Callable[[], Received]:
        """Send (B, n) activities both ways; the returned function waits for those that arrive, of these widths.

        Without a neighbour, nothing is sent or received on that side.
        """
        sent = [*self._send(up, self.above), *self._send(down, self.below)]
        lower, first = self._receive(from_below, self.below, like)
        upper, second = self._receive(from_above, self.above, like)
        with self.ranks.reaching():
            self.ranks.mesh.move()

        def wait() -> Received:
            with self.ranks.reaching():
                self.ranks.mesh.finish([*sent, *first, *second])
            return lower, upper

        return wait

    def _send(self, parts: Sequence[Tensor], to: int | None) -> list[Message]:
        if to is None or not parts:
            return []
        whole = torch.cat([part.reshape(-1) for part in parts])
        self.ranks.sent += whole.nbytes
        return [self.ranks.mesh.send(to, whole)]

    def _receive(self, widths: Sequence[int], source: int | None, like: Tensor) -> tuple[list[Tensor], list[Message]]:
        if source is None or not widths:
            return [], []
        rows = len(like)
        whole = like.new_empty(rows * sum(widths))
        parts = torch.split(whole, [rows * width for width in widths])
        pending = [self.ranks.mesh.receive(source, whole)]
        return [part.view(rows, width) for part, width in zip(parts, widths, strict=True)], pending


class LayerParallel:
    """A P-TNCN whose layers are on several ranks. The first rank has the layer next to the observation.

    Arguments:
        net: the same network on all ranks; from now on, use it only through this object.
        ranks: the ranks that share it; by default all of the process group.
        layers: number of layers of each rank; by default they are divided evenly.
    """

    registry_name = PTNCN.registry_name

    def __init__(self, net: PTNCN, ranks: Ranks | None = None, *, layers: Sequence[int] | None = None) -> None:
        self.net, self.ranks = net, ranks or Ranks()
        self.input_size, self.output = net.input_size, net.output
        self.counts = _check_layers(len(net.sizes) - 1, self.ranks.size, layers)
        if net.readout is not None:
            raise ValueError("readout='rls': expected 'delta' where layers are on several ranks")
        self.ranks.check_same(describe(net) | {"layers": str(self.counts)})
        start = sum(self.counts[: self.ranks.rank])
        self.held = slice(start, start + self.counts[self.ranks.rank])
        self.neighbours = Neighbours(self.ranks)
        net.compiled = False

    @property
    def first(self) -> bool:
        return self.held.start == 0

    @property
    def last(self) -> bool:
        return self.held.stop == len(self.net.sizes) - 1

    def begin(self, batch_size: int) -> PTNCNState:
        """A state for new sequences; only the layers of this rank and their neighbours are valid in it."""
        return self.net.begin(batch_size)

    @torch.no_grad()
    def step(
        self, x: Tensor | None, state: PTNCNState, *, learn: bool = True, mask: Tensor | None = None
    ) -> Tensor | None:
        """(B, n₀) the prediction, on the first rank; only that one needs `x`, but all need the mask."""
        net, like = self.net, state.corrected
        mask = check_mask(mask, state.batch_size, like.device)
        if self.first:
            if x is None:
                raise ValueError("x: expected an observation on the first rank, got None")
            x = check_observation(x, state.batch_size, self.input_size, like, mask)
        else:
            x = like.new_zeros(state.batch_size, self.input_size)
        anything, rows = state.scored(mask)
        if net.config.first_frame:
            anything, rows = mask is None or bool(mask.any()), mask
        prediction = _Step(self, x, state, mask).run(learn and anything, rows)
        mean = net.mean_observation
        if self.first and learn and mean is not None and not mean.known:
            net.get_parameter("c1").add_(mean.observe(x, mask))
        state.advance(mask)
        return prediction

    def end(self, state: PTNCNState) -> None:
        self.net.end(state)

    def options(self) -> dict[str, Any]:
        return self.net.options()

    def snapshot(self) -> dict[str, Any]:
        """The snapshot of the whole network; all ranks must call this."""
        tree = self.net.snapshot()
        names = sorted(tree["weights"])
        owners = [rank for rank, count in enumerate(self.counts) for _ in range(count)]
        moments = tree["learning"]["moments"]
        for name in names:
            owner = owners[int(re.sub(r"\D", "", name)) - 1]
            self.ranks.spread(tree["weights"][name], owner)
            for key in sorted(moments):
                if key.startswith(f"{name}_"):
                    self.ranks.spread(moments[key], owner)
            queue = tree["postponed"][name]
            tree["postponed"][name] = tuple(self.ranks.spread_rows(part, owner) for part in queue)
        for number, owner in enumerate(owners):
            if "feedback" in tree:
                self.ranks.spread(tree["feedback"]["square"][number : number + 1], owner)
        if "mean_observation" in tree:
            count = torch.tensor([tree["mean_observation"]["count"]])
            self.ranks.spread(tree["mean_observation"]["total"], 0)
            tree["mean_observation"]["count"] = int(self.ranks.spread(count, 0))
        return tree

    def restore(self, tree: Mapping[str, Any]) -> None:
        self.net.restore(tree)


class _Step:
    """One step of the layers of a rank."""

    def __init__(self, shared: LayerParallel, x: Tensor, state: PTNCNState, mask: Tensor | None) -> None:
        self.shared, self.net, self.config = shared, shared.net, shared.net.config
        self.x, self.state, self.mask = x, state, mask
        self.observed = None if mask is None else mask[:, None].to(x.dtype)
        self.layers: list[Layer] = self.net.layers[shared.held]
        sizes = self.net.sizes
        self.below = [] if shared.first else [sizes[shared.held.start]]  # widths of messages that may arrive
        self.above = [] if shared.last else [sizes[shared.held.stop + 1]]
        self.lowest, self.highest = [sizes[shared.held.start + 1]], [sizes[shared.held.stop]]

    def run(self, teach: bool, rows: Tensor | None) -> Tensor | None:
        net, state, shared = self.net, self.state, self.shared
        a = [equations.drive(state.corrected, state.held, layer) for layer in self.layers]
        z = [equations.state(own, layer) for own, layer in zip(a, self.layers, strict=True)]
        e, y, back, z_below, prediction = self._correct(a, z)
        guess = equations.Guess(a, z, self.x, [])
        e_z: list[Tensor] = []
        if teach or state.displacement is not None:
            if teach and net.feedback is not None:
                net.feedback.observe(back, rows, shared.held)
            usual = None if net.feedback is None else net.feedback.mean[shared.held]
            e_z = equations.displacements(guess, y, back, usual, self.layers, self.config)
        both = state.uncorrected is not None
        pending = shared.neighbours.exchange(  # in transit while the layers learn
            up=[y[-1]],
            down=[y[0], z[0]] if both else [y[0]],
            from_below=self.below,
            from_above=self.above * (2 if both else 1),
            like=self.x,
        )
        if teach:
            self._learn(z, e, e_z, z_below, rows)
        self._store_states(z, y, e_z, z_below, pending())
        return prediction

    def _correct(
        self, a: list[Tensor], z: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor], Tensor, Tensor | None]:
        """Like `equations.correct`; the errors at the boundaries come from an exchange."""
        y, layers, exchange = z, self.layers, self.shared.neighbours.exchange
        first: tuple[list[Tensor], list[Tensor], Tensor, Tensor | None] | None = None
        for _ in range(self.config.corrections):
            rising = exchange(up=[y[-1]], from_below=self.below, like=self.x)
            sent = [equations.expectation(own, layer) for own, layer in zip(y, layers, strict=True)]
            z_o = [
                self.net.output.mean(h) if layer.number == 1 else layer.phi_o(h)
                for h, layer in zip(sent, layers, strict=True)
            ]
            falling = exchange(down=[z_o[0]], from_above=self.highest if self.above else [], like=self.x)
            lower = rising()[0]
            below = lower[0] if lower else self.x
            targets = [below, *y[:-1]]
            e = [equations.error(o, target, self.observed) for o, target in zip(z_o, targets, strict=True)]
            back = [equations.feedback(err, layer, self.config) for err, layer in zip(e, layers, strict=True)]
            upper = falling()[1]
            e_own: list[Tensor | None] = [*e[1:], None]
            if upper:
                e_own[-1] = equations.error(upper[0], y[-1], self.observed)
            a = [equations.correction(a[i], y[i], back[i], e_own[i], self.config) for i in range(len(layers))]
            y = [equations.state(own, layer) for own, layer in zip(a, layers, strict=True)]
            first = first or (e, back, below, z_o[0] if self.shared.first else None)
        assert first is not None
        e, back, below, prediction = first
        return e, y, back, below, prediction

    def _learn(self, z: list[Tensor], e: list[Tensor], e_z: list[Tensor], z_below: Tensor, rows: Tensor | None) -> None:
        config, state, held = self.config, self.state, self.shared.held
        weight = None if rows is None else rows[:, None].to(self.x.dtype)
        if config.reduction == "mean":
            weight = (self.x.new_ones(len(self.x), 1) if weight is None else weight) / state.batch_size
        numbers = range(held.start + 1, held.stop + 1)
        known, taught = dict(zip(numbers, z, strict=True)), dict(zip(numbers, e_z, strict=True))
        if not self.shared.first:
            known[held.start] = z_below
        if config.prediction_error == "e_z":
            lower = self.shared.neighbours.exchange(up=[e_z[-1]], from_below=self.below, like=self.x)()[0]
            taught |= {held.start: lower[0]} if lower else {}
        guess = equations.Guess([], self._all(known), self.x, [])
        errors, displaced = self._all(dict(zip(numbers, e, strict=True))), self._all(taught)
        before = state.corrected if state.uncorrected is None else state.uncorrected
        updates = equations.learn(
            self.x,
            guess,
            errors,
            displaced,
            before,
            state.held,
            state.displacement,
            self.layers,
            config,
            weight,
        )
        synapses = {name: part for layer in self.layers for name, part in layer.synapses().items()}
        self.net.learning.apply_updates(synapses, updates, state.batch_size)

    def _store_states(
        self, z: list[Tensor], y: list[Tensor], e_z: list[Tensor], z_below: Tensor, received: Received
    ) -> None:
        """Copy the states of these layers and of their neighbours."""
        state, held = self.state, self.shared.held
        numbers = range(held.start + 1, held.stop + 1)
        corrected = dict(zip(numbers, y, strict=True))
        uncorrected = dict(zip(numbers, z, strict=True))
        lower, upper = received
        if lower:
            corrected[held.start], uncorrected[held.start] = lower[0], z_below
        if upper:
            corrected[held.stop + 1], uncorrected[held.stop + 1] = upper[0], upper[-1]
        displaced = self._all(dict(zip(numbers, e_z, strict=True))) if e_z else []
        state.remember(self.x, self._all(uncorrected), self._all(corrected), displaced, self.mask)
        for u, layer in zip([corrected.get(held.start, self.x), *y[:-1]], self.layers, strict=True):
            if layer.memory is not None:
                memory.advance(state.held, u, layer.memory, self.mask)

    def _all(self, known: Mapping[int, Tensor]) -> list[Tensor]:
        """(B, n) of each layer 1 … L, zeros for layers that this rank does not have."""
        rows, sizes = len(self.x), self.net.sizes
        return [
            known[number] if number in known else self.x.new_zeros(1, 1).expand(rows, sizes[number])
            for number in range(1, len(sizes))
        ]


def _check_layers(depth: int, ranks: int, layers: Sequence[int] | None) -> tuple[int, ...]:
    if layers is None:
        if ranks > depth:
            raise RanksError(f"ranks: expected at most one for each of {depth} layers, got {ranks}")
        layers = [depth * (rank + 1) // ranks - depth * rank // ranks for rank in range(ranks)]
    if len(layers) != ranks or sum(layers) != depth or min(layers) < 1:
        raise ValueError(f"layers={list(layers)}: expected {ranks} positive numbers that add up to {depth}")
    return tuple(layers)
