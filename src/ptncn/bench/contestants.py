"""Who is measured: the P-TNCN, the textbook way, what it is compared with, and the limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import torch
from torch import Tensor, nn

from ptncn.bench.limits import Products, Read
from ptncn.bench.shapes import Shape
from ptncn.bench.textbook import Textbook
from ptncn.bench.timing import Contestant
from ptncn.learners.registry import describe, make
from ptncn.network import PTNCN
from ptncn.updates.synapses import POSTPONED_ROWS

SEQUENCE = 20
"""Frames of a sequence, for learners that learn when it ends."""
RTRL_BYTES = 2e9
"""What exact RTRL may take; more would fit some machines, but its step would take minutes."""
STEP_SIZES = {"sgd": 0.035, "momentum": 0.002, "nesterov": 0.002, "rmsprop": 3e-4, "adam": 3e-4}
"""As one would choose them; how often max-norm has to look depends on them."""

NETWORKS: dict[str, dict[str, Any]] = {
    "ptncn-sgd": {"optimizer": "sgd", "error_rule": "fixed"},
    "ptncn-sgd-transpose": {"optimizer": "sgd", "error_rule": "transpose"},
    "ptncn-sgd-temporal": {"optimizer": "sgd", "error_rule": "temporal"},
    "ptncn-momentum": {"optimizer": "momentum", "error_rule": "fixed"},
    "ptncn-nesterov": {"optimizer": "nesterov", "error_rule": "fixed"},
    "ptncn-rmsprop": {"optimizer": "rmsprop", "error_rule": "fixed"},
    "ptncn-adam": {"optimizer": "adam", "error_rule": "fixed"},
    "ptncn-eval": {"optimizer": "sgd", "error_rule": "fixed"},
    "ptncn-sgd-pytorch": {"optimizer": "sgd", "error_rule": "fixed"},
}
LIMITS = {"products": "RW", "products-learnt-e": "RWE", "products-eval": ""}
BASELINES = (
    *("lstm-bptt", "lstm-bptt-whole", "gru-bptt", "rnn-bptt", "lstm-tbptt", "lstm-sab"),
    *("lstm-rtrl", "lstm-uoro", "lstm-kf-rtrl", "esn-sgd", "esn-rls", "esn-ridge"),
)
ALL = (*LIMITS, "read", *NETWORKS, "textbook", *BASELINES)
QUICK = (*(what for what in ALL if what not in (*BASELINES, "ptncn-nesterov", "ptncn-sgd-temporal")), *BASELINES[:2])


def limit_of(what: str, shape: Shape) -> str:
    """The limit that a row is held against: the products that it has to make, or at batch 1 the bytes it has to read.

    A tiny network is in the cache, where a read takes no time: its products, one call each, say more.
    """
    if what in LIMITS or what == "ptncn-eval":
        return "products-eval" if what == "ptncn-eval" else what
    if what == "read" or (shape.batch == 1 and shape.all_weights > 1 << 18):
        return "read"
    return "products-learnt-e" if what in ("ptncn-sgd-transpose", "ptncn-sgd-temporal") else "products"


def make_contestant(what: str, shape: Shape) -> Contestant:
    """Raises MemoryError where it does not fit."""
    if what == "read":
        return Contestant(what, Read(shape.all_weights).run)
    if what in LIMITS:
        return Contestant(what, Products(shape, LIMITS[what]).run)
    if what in NETWORKS:
        return _network(what, shape)
    if what == "textbook":
        book = Textbook(PTNCN(shape.inputs, shape.sizes[1:]).synapses(), shape.batch)
        return Contestant(what, _steps(book.step, shape))
    if what == "lstm-bptt-whole":
        return Contestant(what, _whole_sequences(shape), unit=SEQUENCE)
    return _learner(what, shape)


def frames(shape: Shape, count: int = 64) -> Tensor:
    """(T, B, n) dense noise in [0, 1]: no zeros that anyone could skip."""
    return torch.rand(count, shape.batch, shape.inputs, generator=torch.Generator().manual_seed(0))


def _network(what: str, shape: Shape) -> Contestant:
    options = NETWORKS[what]
    network = PTNCN(shape.inputs, shape.sizes[1:], lr=STEP_SIZES[options["optimizer"]], **options)
    network.compiled = not what.endswith("-pytorch")
    state, learn = network.begin(shape.batch), what != "ptncn-eval"
    step = _steps(lambda x: network.step(x, state, learn=learn), shape)
    postpones = learn and shape.batch == 1 and options["optimizer"] == "sgd"
    return Contestant(what, step, unit=POSTPONED_ROWS if postpones else 1)


def _learner(what: str, shape: Shape) -> Contestant:
    options: dict[str, Any] = {} if what.startswith("esn") else {"optimizer": "sgd", "lr": 1e-4}
    if describe(what).where.endswith(":RTRL"):
        options["memory_limit"] = RTRL_BYTES
    learner: Any = make(what, input_size=shape.inputs, hidden_size=shape.units, **options)
    if describe(what).learns == "online" and what != "esn-ridge":
        state = learner.begin(shape.batch)
        return Contestant(what, _steps(lambda x: learner.step(x, state), shape))
    source = cycle(frames(shape))

    def sequences(count: int) -> None:
        for _ in range(count // SEQUENCE):
            state = learner.begin(shape.batch)
            for _, x in zip(range(SEQUENCE), source, strict=False):
                learner.step(x, state)
            learner.end(state)

    return Contestant(what, sequences, unit=SEQUENCE)


def _steps(step: Callable[[Tensor], object], shape: Shape) -> Callable[[int], None]:
    source: Iterator[Tensor] = cycle(frames(shape))

    def run(count: int) -> None:
        for _ in range(count):
            step(next(source))

    return run


def _whole_sequences(shape: Shape) -> Callable[[int], None]:
    """An LSTM as it is trained where nobody waits for its predictions: one fused pass forward, and one back."""
    cell, readout = nn.LSTM(shape.inputs, shape.units), nn.Linear(shape.units, shape.inputs)
    weights = [*cell.parameters(), *readout.parameters()]
    optimizer = torch.optim.SGD(weights, lr=1e-4)
    x = frames(shape, SEQUENCE)

    def run(count: int) -> None:
        for _ in range(count // SEQUENCE):
            hidden, _ = cell(x[:-1])
            loss = nn.functional.binary_cross_entropy_with_logits(readout(hidden), x[1:], reduction="sum")
            (loss / (SEQUENCE - 1) / shape.batch).backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
            optimizer.zero_grad()

    return run
