"""Check that a wheel works in a fresh environment: import, learn with its kernel, save and load."""

import tempfile
from pathlib import Path

import torch

import ptncn
from ptncn import kernels

assert kernels.load() is not None, "the wheel has no compiled kernel"
network = ptncn.PTNCN(4, [8, 8], lr=0.05)
state, x = network.begin(1), torch.tensor([[0.0, 1.0, 1.0, 0.0]])
first = network.step(x, state)
errors = [float(network.step(x, state).errors[0].square().sum()) for _ in range(50)]
assert errors[-1] < errors[0], errors
with tempfile.TemporaryDirectory() as folder:
    ptncn.save(Path(folder) / "c.ckpt", network, state)
    loaded = ptncn.load(Path(folder) / "c.ckpt")
assert torch.equal(loaded.learner.predict(loaded.state), network.predict(state))
print(f"ptncn {ptncn.__version__}: learnt, error {errors[0]:.4f} → {errors[-1]:.4f}")
