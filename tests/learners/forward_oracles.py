"""References for forward-mode learners: plain autograd, and statistics of many draws."""

import inspect
import sys
from types import ModuleType

import numpy as np
import torch
from scipy.stats import norm

from ptncn import checkpoint
from ptncn.learners.rtrl import RTRL, RTRLState

CELLS = [("rnn", 1), ("lstm", 1), ("gru", 1), ("rhn", 1), ("rhn", 3)]
IDS = [f"{cell}-{depth}" for cell, depth in CELLS]
DOUBLE = torch.float64


def frames(steps, batch_size, input_size, seed=0, output="bernoulli"):
    """(T, B, n) observations that fit the output distribution."""
    generator = torch.Generator().manual_seed(seed)
    if output == "categorical":
        classes = torch.randint(0, input_size, (steps, batch_size), generator=generator)
        return torch.nn.functional.one_hot(classes, input_size).to(DOUBLE)
    return torch.rand(steps, batch_size, input_size, generator=generator, dtype=DOUBLE)


def any_masks(steps, batch_size, seed=0):
    """(T, B) masks without a pattern: late starts, gaps, early ends, and steps that mask every row."""
    masks = torch.rand(steps, batch_size, generator=torch.Generator().manual_seed(seed)) < 0.6
    masks[steps // 2] = False
    return masks


def check_resumed(learner, folder, batch_size=4):
    """Stop in mid-sequence, load, and compare the rest; returns the loaded learner and both states."""
    xs, masks = frames(12, batch_size, learner.input_size), any_masks(12, batch_size)
    state = learner.begin(batch_size)
    for x, mask in zip(xs[:6], masks[:6], strict=True):
        learner.step(x, state, mask=mask)
    checkpoint.save(folder / "run", learner, state)
    resumed, its_state, _ = checkpoint.load(folder / "run")
    for x, mask in zip(xs[6:], masks[6:], strict=True):
        expected = learner.step(x, state, mask=mask).logits
        assert torch.equal(resumed.step(x, its_state, mask=mask).logits, expected)
    return resumed, state, its_state


def summed_loss(learner, xs, masks=None):
    """The loss of all steps as a function of the learner's weights, written without any of its code but the cell."""
    T, B, _ = xs.shape
    masks = torch.ones(T, B, dtype=torch.bool) if masks is None else masks
    hidden = learner.cell.begin(B)
    seen = torch.zeros(B, dtype=torch.bool)
    loss = torch.zeros((), dtype=xs.dtype)
    for x, mask in zip(xs, masks, strict=True):
        logits = hidden[0] @ learner.readout.weight.T + learner.readout.bias
        for b in range(B):
            if mask[b] and seen[b]:
                loss = loss + learner.output.nll(logits[b], x[b]) / B
        new_hidden = learner.cell(x, hidden)
        hidden = tuple(torch.where(mask[:, None], new, old) for new, old in zip(new_hidden, hidden, strict=True))
        seen = seen | mask
    return loss


def bptt_gradient(learner, xs, masks=None):
    """{name: gradient} of the summed loss, by autograd over the unrolled sequence."""
    parameters = dict(learner.named_parameters())
    gradients = torch.autograd.grad(summed_loss(learner, xs, masks), list(parameters.values()))
    return dict(zip(parameters, gradients, strict=True))


def held_gradients(learner, xs, masks=None):
    """The learner's gradient at each step with fixed weights; the first step has none."""
    state = learner.begin(xs.shape[1])
    for t, x in enumerate(xs):
        mask = None if masks is None else masks[t]
        yield learner.gradient(x, state, mask), state
        learner.step(x, state, learn=t == 0, mask=mask)


def row_estimates(adjoint, state):
    """(B, P) the estimate of each row, from the factors that the state holds. adjoint (B, H)."""
    if isinstance(state, RTRLState):
        parts = [torch.einsum("bh,bhqm->bqm", adjoint, influence[:, 0]) for influence in state.influence]
    elif hasattr(state, "tangent"):  # UORO, or a mutant of it
        scale = torch.einsum("bh,bh->b", adjoint, state.tangent[:, 0])
        parts = [torch.einsum("b,bqm->bqm", scale, weights) for weights in state.weights]
    else:
        parts = [
            torch.einsum("bh,bhq,bm->bqm", adjoint, A[:, 0], u)
            for u, A in zip(state.vectors, state.matrices, strict=True)
        ]
    return torch.cat([part.flatten(1) for part in parts], dim=1)


def draw_gradients(kind, cell, depth, draws, *, steps=8, seed=0, masks=None, **options):
    """(draws, P) gradients of a whole sequence by recurrent weights, with fixed weights: each row is one draw."""
    learner = kind(2, 3, cell=cell, depth=depth, dtype="float64", seed=3, **options)
    learner.generator.manual_seed(seed)
    with torch.no_grad():
        for parameter in learner.cell.parameters():
            parameter.mul_(1.5)  # so that the past matters
    xs = frames(steps, 1, 2, seed=11).expand(-1, draws, -1)
    state, total = learner.begin(draws), 0.0
    for t, x in enumerate(xs):
        mask = None if masks is None else masks[t].expand(draws)
        out = learner.step(x, state.clone(), learn=False, mask=mask)
        if out.scored.any():
            total = total + row_estimates(out.errors[0] @ learner.readout.weight, state)
        learner.step(x, state, learn=t == 0, mask=mask)
    return total.detach()


def exact_gradient(cell, depth, **options):
    """(P,) the same by RTRL."""
    return draw_gradients(RTRL, cell, depth, 1, **options)[0]


def rejects(draws, exact, level=1e-3):
    """Two-sided: does the mean of the draws (N, P) differ from `exact` (P,) by more than chance allows?

    A z-test of each coordinate and of the projection on the exact gradient, with Bonferroni's correction.
    """
    draws = torch.cat([draws, (draws @ exact)[:, None] / exact.norm()], dim=1)
    exact = torch.cat([exact, exact.norm()[None]])
    error = draws.std(dim=0) / np.sqrt(len(draws)) + 1e-12  # a coordinate without any spread must be right
    z = (draws.mean(0) - exact) / error
    return bool(z.abs().max() > norm.isf(level / 2 / len(z)))


def mutate(monkeypatch, kind, old, new):
    """The learner class with one piece of its source replaced."""
    source = inspect.getsource(sys.modules[kind.__module__])
    assert source.count(old) == 1, f"{old!r} is {source.count(old)} times in {kind.__module__}"
    module = ModuleType(f"{kind.__module__}_mutant")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(source.replace(old, new), module.__name__, "exec"), module.__dict__)
    return getattr(module, kind.__name__)
