"""What the benchmark times: P-TNCN variants, the direct implementation, other learners, and the limits."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

import torch
from torch import Tensor, nn

from ptncn.learners.registry import describe, make
from ptncn.network import PTNCN
from ptncn.registry import load_object
from ptncn.updates.factors import POSTPONED_ROWS
from speed.limits import Products, Read
from speed.machine import BackgroundLoad
from speed.shapes import Shape
from speed.textbook import Textbook
from speed.timing import Case, interleave

Row = dict[str, Any]

SEQUENCE = 20
"""Frames per sequence, for learners that learn when a sequence ends."""
EXACT_BYTES = 2e9
"""Memory limit for exact influence matrices. Larger ones would fit on some machines, but a step would take minutes."""
STEP_SIZES = {"sgd": 0.035, "momentum": 0.002, "nesterov": 0.002, "rmsprop": 3e-4, "adam": 3e-4, "adafactor": 3e-4}
"""Typical step sizes; they determine how often max-norm has to rescale weights."""

NETWORKS: dict[str, dict[str, Any]] = {
    "ptncn-sgd": {"optimizer": "sgd", "error_rule": "fixed"},
    "ptncn-sgd-transpose": {"optimizer": "sgd", "error_rule": "transpose"},
    "ptncn-sgd-temporal": {"optimizer": "sgd", "error_rule": "temporal"},
    "ptncn-momentum": {"optimizer": "momentum", "error_rule": "fixed"},
    "ptncn-nesterov": {"optimizer": "nesterov", "error_rule": "fixed"},
    "ptncn-rmsprop": {"optimizer": "rmsprop", "error_rule": "fixed"},
    "ptncn-adam": {"optimizer": "adam", "error_rule": "fixed"},
    "ptncn-adafactor": {"optimizer": "adafactor", "error_rule": "fixed"},
    "ptncn-eval": {"optimizer": "sgd", "error_rule": "fixed"},
    "ptncn-sgd-pytorch": {"optimizer": "sgd", "error_rule": "fixed"},
}
LIMITS = {"products": "RW", "products-learnt-e": "RWE", "products-eval": ""}
LEARNERS = (
    *("lstm-bptt", "lstm-bptt-whole", "gru-bptt", "rnn-bptt", "lstm-tbptt", "lstm-sab"),
    *("lstm-rtrl", "lstm-uoro", "lstm-kf-rtrl", "lru-rtrl", "elstm-rtrl", "esn-sgd", "esn-rls", "esn-ridge"),
)
"""Names of the learner registry, and `lstm-bptt-whole`: PyTorch's own LSTM over whole sequences."""
ALL = (*LIMITS, "read", *NETWORKS, "textbook", *LEARNERS)
QUICK = (*(name for name in ALL if name not in (*LEARNERS, "ptncn-nesterov", "ptncn-sgd-temporal")), *LEARNERS[:2])


def measure(shape: Shape, names: Sequence[str], budget: float, min_samples: int) -> tuple[list[Row], list[Row]]:
    """Time the named cases and their limits at one shape: rows, and the cases left out with the reason."""
    cases: list[Case] = []
    skipped = []
    for name in dict.fromkeys([*(limit_of(name, shape) for name in names), *names]):
        try:
            cases.append(make_case(name, shape))
        except MemoryError as error:
            skipped.append({"shape": shape.name, "batch": shape.batch, "what": name, "reason": str(error)})
    background = BackgroundLoad()
    samples = interleave(cases, budget, min_samples)
    others = background.share()
    rows = []
    for name, each in samples.items():
        limit, summary = limit_of(name, shape), each.summary()
        ratio = summary["ms"] / samples[limit].summary()["ms"]
        where = {"shape": shape.name, "batch": shape.batch, "what": name}
        rows.append({**where, **summary, "ratio": ratio, "limit": limit, "others": others})
    del cases, samples
    gc.collect()
    return rows, skipped


def limit_of(name: str, shape: Shape) -> str:
    """The limit that a case is compared with: its matrix products, or at batch 1 the bytes it must read.

    The weights of a tiny network stay in the cache, where reading is almost free, so its products are the limit.
    """
    if name in LIMITS or name == "ptncn-eval":
        return "products-eval" if name == "ptncn-eval" else name
    if name == "read" or (shape.batch == 1 and shape.all_weights > 1 << 18):
        return "read"
    return "products-learnt-e" if name in ("ptncn-sgd-transpose", "ptncn-sgd-temporal") else "products"


def make_case(name: str, shape: Shape) -> Case:
    """Raise MemoryError if the learner's state is too large."""
    if name == "read":
        return Case(name, Read(shape.all_weights).run)
    if name in LIMITS:
        return Case(name, Products(shape, LIMITS[name]).run)
    if name in NETWORKS:
        return _network(name, shape)
    if name == "textbook":
        book = Textbook(PTNCN(shape.inputs, shape.sizes[1:]).synapses(), shape.batch)
        return Case(name, _steps(book.step, shape))
    if name == "lstm-bptt-whole":
        return Case(name, _whole_sequences(shape), unit=SEQUENCE)
    return _learner(name, shape)


def frames(shape: Shape, count: int = 64) -> Tensor:
    """(T, B, n) dense noise in [0, 1], without zeros that an implementation could skip."""
    return torch.rand(count, shape.batch, shape.inputs, generator=torch.Generator().manual_seed(0))


def learner_options(name: str) -> dict[str, Any]:
    """Plain descent and a memory limit, if the learner's class accepts them; a reservoir has its own readout."""
    if "readout" in describe(name).options:
        return {}
    options = {"optimizer": "sgd", "lr": 1e-4, "memory_limit": EXACT_BYTES}
    classes = load_object(describe(name).where).__mro__
    known = {option for base in classes if "__init__" in vars(base) for option in inspect.signature(base).parameters}
    return {option: value for option, value in options.items() if option in known}


def _network(name: str, shape: Shape) -> Case:
    options = NETWORKS[name]
    network = PTNCN(shape.inputs, shape.sizes[1:], lr=STEP_SIZES[options["optimizer"]], **options)
    network.compiled = not name.endswith("-pytorch")
    state, learn = network.begin(shape.batch), name != "ptncn-eval"
    step = _steps(lambda x: network.step(x, state, learn=learn), shape)
    defers = learn and shape.batch == 1 and network.learning.optimizer.stays_factored
    return Case(name, step, unit=POSTPONED_ROWS if defers else 1)


def _learner(name: str, shape: Shape) -> Case:
    learner: Any = make(name, input_size=shape.inputs, hidden_size=shape.units, **learner_options(name))
    if describe(name).learns != "unrolled" and name != "esn-ridge":  # ridge regression solves when a sequence ends
        state = learner.begin(shape.batch)
        return Case(name, _steps(lambda x: learner.step(x, state), shape))
    source = cycle(frames(shape))

    def sequences(count: int) -> None:
        for _ in range(count // SEQUENCE):
            state = learner.begin(shape.batch)
            for _, x in zip(range(SEQUENCE), source, strict=False):
                learner.step(x, state)
            learner.end(state)

    return Case(name, sequences, unit=SEQUENCE)


def _steps(step: Callable[[Tensor], object], shape: Shape) -> Callable[[int], None]:
    source = cycle(frames(shape))

    def run(count: int) -> None:
        for _ in range(count):
            step(next(source))

    return run


def _whole_sequences(shape: Shape) -> Callable[[int], None]:
    """An LSTM trained offline: one fused forward pass over the sequence and one backward pass."""
    cell, readout = nn.LSTM(shape.inputs, shape.units), nn.Linear(shape.units, shape.inputs)
    weights = [*cell.parameters(), *readout.parameters()]
    optimizer = torch.optim.SGD(weights, lr=1e-4)
    x = frames(shape, SEQUENCE)

    def run(count: int) -> None:
        for _ in range(count // SEQUENCE):
            hidden, _ = cell(x[:-1])
            loss = nn.functional.binary_cross_entropy_with_logits(readout(hidden), x[1:], reduction="sum")
            (loss / (SEQUENCE - 1) / shape.batch).backward()
            nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
            optimizer.zero_grad()

    return run
