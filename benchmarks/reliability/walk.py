"""Random sequences of public calls on a network, with the compiled kernel and in PyTorch.

Each sequence draws a network (sizes, rules, precision, queues) and some calls: steps that learn or do not, with and
without masks, changes of the batch size, predictions in several threads, dreams, saving and loading, copies, new
parameters and moments, malformed arguments. Two networks make each call, one with the kernel and one in PyTorch;
results and states are compared. `make asan` runs it with the kernel under the address and undefined-behaviour
sanitizers.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils import parameters_to_vector, vector_to_parameters

import ptncn
from ptncn import PTNCN
from ptncn.network import backend
from ptncn.updates import OPTIMIZERS, factors

TOLERANCE = {torch.float64: 1e-7, torch.float32: 2e-2}
LARGE, SMALL = factors.LARGE, backend.SMALL


class Diverged(Exception):  # noqa: N818 (not an error)
    """Both networks left the range of floating-point numbers: the step size is too large for unbounded units."""


class Walk:
    """One sequence of calls."""

    def __init__(self, seed: int, folder: Path, counts: Counter[str]) -> None:
        self.rng = random.Random(seed)
        self.numbers = torch.Generator().manual_seed(seed)
        self.folder = folder
        self.counts = counts
        queues = self.rng.random() < 0.5  # small matrices take the code path of large ones
        factors.LARGE, backend.SMALL = (0, 0) if queues else (LARGE, SMALL)
        self.inputs, options = self.draw_network()
        self.dtype = self.rng.choice([torch.float64, torch.float32])
        make = lambda: PTNCN(self.inputs, dtype=self.dtype, seed=seed % 1000, **options)  # noqa: E731
        self.fast, self.plain = make(), make()
        self.plain.compiled = False
        self.threads_each = self.rng.choice([1, 1, 2, 3])
        self.begin()

    def draw_network(self) -> tuple[int, dict[str, Any]]:
        pick = self.rng.choice
        layers = pick([1, 1, 2, 3])
        options: dict[str, Any] = {
            "hidden_sizes": [pick([1, 2, 3, 7, 16, 17, 33]) for _ in range(layers)],
            "output": pick(["gaussian", "bernoulli", "categorical"]),
            "preset": pick(["paper", "authors", "best"]),
            "optimizer": pick(["sgd", "sgd", "sgd", *OPTIMIZERS]),
            "lr": pick([1e-4, 1e-3]),
            "rescale": pick(["clip", "none", "unit"]),
            "reduction": pick(["sum", "mean", "sum_then_mean"]),
            "error_rule": pick(["fixed", "temporal", "transpose"]),
            "presynaptic": pick(["y", "z"]),
            "activation": pick(["tanh", "tanh", "sigmoid", "relu6", "gelu", "identity", "leaky_relu"]),
            "teaching": pick(["coupled", "coupled", "small"]),
            "max_norm": pick([None, 0.3, 30.0]),
            "weight_decay": pick([0.0, 0.0, 0.01]),
            "corrections": pick([1, 1, 2]),
            "lam": 0.0,  # sign(z) jumps at 0, where the last bit of z would decide
            "biases": True,
            "weight_std": 0.1,
            "error_weight_std": 0.1,
            "first_frame": pick([False, True]),
            "memory": pick([0, 0, 0, 3]),
        }
        return pick([1, 2, 5, 8, 16, 31]), options

    # Calls

    def begin(self) -> None:
        self.rows = self.rng.choice([1, 1, 1, 2, 3, 4, 5, 9, 20])
        self.state, self.twin = self.fast.begin(self.rows), self.plain.begin(self.rows)

    def observe(self) -> torch.Tensor:
        return torch.rand(self.rows, self.inputs, generator=self.numbers, dtype=torch.float64).to(self.dtype)

    def step(self) -> None:
        learn, masked = self.rng.random() < 0.8, self.rng.random() < 0.3
        mask = torch.rand(self.rows, generator=self.numbers) < 0.6 if masked else None
        for _ in range(self.rng.choice([1, 2, 9])):
            x = self.observe()
            torch.set_num_threads(self.threads_each)
            out = self.fast.step(x, self.state, learn=learn, mask=mask)
            torch.set_num_threads(1)  # PyTorch's own threads are not under test, and waiting for them is slow
            twin = self.plain.step(x, self.twin, learn=learn, mask=mask)
            self.same("prediction", out.prediction, twin.prediction)
            self.same("errors", torch.cat(out.errors, 1), torch.cat(twin.errors, 1))
            self.same("corrected", torch.cat(out.corrected, 1), torch.cat(twin.corrected, 1))
            assert torch.equal(out.scored, twin.scored)

    def predict(self) -> None:
        self.same("prediction", self.fast.predict(self.state), self.plain.predict(self.twin))

    def dream(self) -> None:
        self.same("dream", self.fast.dream(self.state, 3), self.plain.dream(self.twin, 3))

    def threads(self) -> None:
        """Predictions, steps without learning and learning in three threads, each with its own state."""
        states = [self.state.clone() for _ in range(3)]
        expected, x, errors = self.fast.predict(self.state), self.observe(), []

        def read(state: Any) -> None:
            try:
                for _ in range(2):
                    assert torch.equal(self.fast.predict(state), expected)
                    self.fast.step(x, state.clone(), learn=False)
            except BaseException as error:
                errors.append(error)

        workers = [threading.Thread(target=read, args=(state,)) for state in states]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if errors:
            raise errors[0]

    def learn_in_threads(self) -> None:
        """Learning steps exclude each other. Their order is undefined, so only the number of updates is compared."""
        before, x = self.fast.learning.optimizer.updates, self.observe()
        states = [self.state.clone() for _ in range(2)]
        workers = [threading.Thread(target=self.fast.step, args=(x, state)) for state in states]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        learnt = 2 if self.state.steps or self.fast.config.first_frame else 0
        seen = self.state.seen
        if seen is None or seen.all():
            assert self.fast.learning.optimizer.updates == before + learnt
        self.sync()

    def reload(self) -> None:
        for name in ("fast", "plain"):
            net, state = (self.fast, self.state) if name == "fast" else (self.plain, self.twin)
            path = self.folder / f"{name}.ckpt"
            ptncn.save(path, net, state)
            loaded, remembered, _ = ptncn.load(path)
            loaded.compiled = net.compiled
            if name == "fast":
                self.fast, self.state = loaded, remembered
            else:
                self.plain, self.twin = loaded, remembered

    def copy(self) -> None:
        self.fast, self.plain = deepcopy(self.fast), deepcopy(self.plain)
        self.state, self.twin = self.state.clone(), self.twin.clone()

    def rebind(self) -> None:
        for net in (self.fast, self.plain):
            vector_to_parameters(parameters_to_vector(net.parameters()) * 0.9, net.parameters())

    def rebind_one(self) -> None:
        name = self.rng.choice(sorted(self.fast._parameters))
        for net in (self.fast, self.plain):
            weight = net._parameters[name]
            assert weight is not None
            net.state_dict()  # queued updates belong to the old weights
            weight.data = weight.data.clone() * 0.5

    def rebind_moments(self) -> None:
        for net in (self.fast, self.plain):
            for moment in net.learning.optimizer.buffers():
                moment.data = moment.data * 0.5

    def swap_weights(self) -> None:
        self.plain.load_state_dict(self.fast.state_dict())
        self.fast.load_state_dict(deepcopy(self.plain.state_dict()), assign=self.rng.random() < 0.5)

    def convert(self) -> None:
        self.sync()  # a true difference would also show in double precision
        self.dtype = torch.float64 if self.dtype == torch.float32 else torch.float32
        self.fast.to(self.dtype)
        self.plain.to(self.dtype)
        self.begin()

    def misuse(self) -> None:
        """Malformed states and observations raise ValueError and change nothing."""
        state = self.state.clone()
        state.batch_size += 1
        calls: list[Callable[[], Any]] = [
            lambda: self.fast.step(torch.zeros(state.batch_size, self.inputs), state),
            lambda: self.fast.predict(state),
            lambda: self.fast.step(torch.zeros(self.rows, self.inputs + 1), self.state),
            lambda: self.fast.step(torch.full((self.rows, self.inputs), float("nan")), self.state),
        ]
        try:
            self.rng.choice(calls)()
        except ValueError:
            return
        raise AssertionError("a malformed call was accepted")

    def sync(self) -> None:
        """Continue both from the same weights, so that rounding errors do not accumulate."""
        self.plain.restore(self.fast.snapshot())
        self.twin = self.state.clone()

    # Comparison

    def same(self, what: str, ours: torch.Tensor, theirs: torch.Tensor) -> None:
        if not (ours.isfinite().all() or theirs.isfinite().all()):
            raise Diverged
        far = ((ours - theirs).abs().max() / (1 + theirs.abs().max())).item()
        if not far <= TOLERANCE[self.dtype]:
            raise AssertionError(f"{what}: kernel and PyTorch differ by {far}")

    def compare(self) -> None:
        self.same("state", self.state.corrected, self.twin.corrected)
        ours, theirs = self.fast.state_dict(), self.plain.state_dict()
        for name, weight in ours.items():
            assert torch.isfinite(weight).all(), f"{name} is not finite"
            self.same(name, weight, theirs[name])

    def run(self, calls: int) -> None:
        often = [self.step] * 8 + [self.predict, self.dream, self.begin, self.begin]
        others = [self.threads, self.learn_in_threads, self.reload, self.copy, self.rebind, self.rebind_one]
        rare = [self.rebind_moments, self.swap_weights, self.convert, self.misuse]
        for number in range(calls):
            call = self.rng.choice([*often, *others, *rare])
            call()
            self.counts[call.__name__] += 1
            if number % 3 == 2:
                self.compare()
                self.sync()
        self.counts["kernel" if self.fast._backend()[1] is not None else "pytorch"] += 1


def walk(seed: int, folder: Path, calls: int = 8) -> Counter[str]:
    counts: Counter[str] = Counter()
    try:
        Walk(seed, folder, counts).run(calls)
    except Diverged:
        counts["diverged"] += 1
    finally:
        factors.LARGE, backend.SMALL = LARGE, SMALL
    return counts


def main() -> int:
    from common import MEMORY, parser, record

    options = parser(__doc__, 10_000).parse_args()
    torch.set_num_threads(1)
    counts: Counter[str] = Counter()
    failures: list[str] = []
    started = time.time()
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        for number in range(1, options.count + 1):
            seed = options.seed + number - 1
            try:
                counts.update(walk(seed, Path(folder)))
            except Exception as error:
                failures.append(f"seed {seed}: {type(error).__name__}: {error}")
                print(failures[-1], flush=True)
            if number % 500 == 0 or number == options.count:
                results = {
                    "sequences": number,
                    "failures": failures,
                    "calls": dict(sorted(counts.items())),
                    "sanitizers": os.environ.get("PTNCN_SANITIZERS", "none"),
                }
                record("walk", options, results, started)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
