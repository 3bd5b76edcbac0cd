"""Change the learning rules one at a time; the tests must notice each change: `make mutants`.

Each mutant is a copy of the package with one text replaced. The tests named with it run on the copy; at least one
has to fail. The working tree is never touched. A name on the command line runs only the mutants that contain it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/ptncn"
TIME_LIMIT = 900  # seconds
WRONG_PACKAGE = 99

EQUATIONS, STATE, NETWORK = "network/equations.py", "network/state.py", "network/ptncn.py"
READOUT, TORCH_STEP = "network/readout.py", "network/torch_step.py"
STATISTICS, TRACES = "network/state.py", "network/memory.py"
APPLY, FACTORS, MAXNORM = "updates/apply.py", "updates/factors.py", "updates/apply.py"
OPTIMIZERS, RESCALE, SYNAPSES = "updates/optimizers.py", "updates/factors.py", "updates/factors.py"
KERNEL, PRODUCTS, STEPS = "kernels/step.inc", "kernels/products.inc", "kernels/optimizers.inc"
RUN, KERNEL_TRACES = "kernels/run.inc", "kernels/memory.inc"
CHECKS = "kernels/check.h"
ELIGIBILITY, ELSTM, LRU = "learners/traces.py", "learners/elstm.py", "learners/lru.py"


class Mutant(NamedTuple):
    description: str
    """A description of the defect."""
    file: str
    """The file that it changes, relative to the package."""
    old: str
    """Occurs exactly once in the file."""
    new: str
    tests: tuple[str, ...]
    """The arguments of pytest."""

    @property
    def compiled(self) -> bool:
        return self.file.startswith("kernels/") and not self.file.endswith(".py")

    def apply(self, text: str) -> str:
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"mutant “{self.description}”: {self.file} contains {self.old!r} {count} times, not once")
        return text.replace(self.old, self.new)


def transcription(variants: str = "paper") -> tuple[str, ...]:
    """The independent transcription, for the variants that match."""
    return "tests/network/test_transcription.py", "-k", variants


CLOSED_FORM_TESTS = ("tests/network/test_closed_forms.py",)
MODULE_TESTS = ("tests/network/test_module.py",)
REGRESSION_TESTS = ("tests/network/test_caught_mutants.py",)
READOUT_TESTS = ("tests/network/test_readout.py",)
KERNEL_MEMORY_TESTS = ("tests/network/test_kernel.py", "-k", "memories and not 11")
MEMORY_TESTS = ("tests/network/test_memory.py", "-k", "past or immediate or rows or recalled")
FACTOR_TESTS = ("tests/updates/test_factors.py",)
LARGE_TESTS = ("tests/network/test_kernel.py", "-k", "very_large and sgd")
OPTIMIZER_TESTS = ("tests/updates/test_optimizers.py",)
QUEUE_TESTS = ("tests/updates/test_synapses.py", "-k", "include_the_queue")
TRACE_TESTS = ("tests/learners/test_traces.py",)
DIAGONAL_TESTS = ("tests/learners/test_diagonal.py",)
RTRL_TESTS = ("tests/learners/test_rtrl.py", "-k", "gradient")

MUTANTS = [
    # Correction
    Mutant(
        "β E e pushes the other way", EQUATIONS, '"small" else -config.beta', '"small" else config.beta',
        transcription(),
    ),
    Mutant(
        "γ e pulls the other way", EQUATIONS, "alpha=scope * config.gamma", "alpha=-scope * config.gamma",
        transcription("strong"),
    ),
    Mutant("the γ term is left out", EQUATIONS, "if e_own is not None:", "if False:", transcription("strong")),
    Mutant(
        "λ makes states less sparse", EQUATIONS, "sign = -1 if config.sparsity_sign",
        "sign = 1 if config.sparsity_sign",
        transcription("strong"),
    ),
    Mutant("λ penalises z, not sign z", EQUATIONS, "torch.sign(z)", "z", transcription("strong")),
    Mutant(
        "β never multiplies all terms", EQUATIONS, 'config.beta if config.beta_scope == "all" else 1.0', "1.0",
        transcription("beta"),
    ),
    Mutant(
        "observation − prediction", EQUATIONS, "e = predicted - target", "e = target - predicted", transcription()
    ),
    Mutant(
        "unobserved rows have errors", EQUATIONS, "return e if observed is None else e * observed", "return e",
        REGRESSION_TESTS,
    ),
    Mutant(
        "K corrections reuse the first predictions", EQUATIONS, "z_o = expectations(y, layers, output)[1]",
        "z_o = guess.z_o", transcription("three"),
    ),
    Mutant(
        "K corrections aim at the first states", EQUATIONS, "zip(z_o, [x, *y[:-1]], strict=True)",
        "zip(z_o, [x, *guess.z[:-1]], strict=True)", transcription("three"),
    ),
    Mutant(
        "learning uses the last of K errors", EQUATIONS, "return first_e, y,", "return e, y,", transcription("three")
    ),
    # Small displacements, and the mean observation
    Mutant(
        "β multiplies the small displacement", EQUATIONS, 'scale = -1.0 if config.teaching == "small"',
        'scale = -config.beta if config.teaching == "small"', transcription("small"),
    ),
    Mutant(
        "the fed-back state has no β", EQUATIONS, "torch.add(a, back, alpha=config.beta)", "torch.add(a, back)",
        transcription("small"),
    ),
    Mutant("a small displacement goes the wrong way", EQUATIONS, "a + back *", "a - back *", transcription("small")),
    Mutant(
        "a small displacement is not scaled up again", EQUATIONS, ".rsqrt()))) / kappa", ".rsqrt())))",
        transcription("small and rmsprop or of and another"),
    ),
    Mutant("E e is divided by its mean square, not the root", EQUATIONS, ".rsqrt()", ".reciprocal()",
        transcription("small"),
    ),
    Mutant(
        "signs are displaced like tanh", EQUATIONS, "if layer.reach is not None else", "if False else",
        transcription("signs"),
    ),
    Mutant(
        "K corrections teach with the last errors", EQUATIONS, "first_back = first_back or back", "first_back = back",
        transcription("small and three"),
    ),
    Mutant(
        "the mean square forgets nothing", STATISTICS,
        "self.square[layers].mul_(self.decay).add_", "self.square[layers].add_", transcription("small"),
    ),
    Mutant(
        "the mean square starts from 0", STATISTICS, "self.square / self.weight(self.updates)", "self.square",
        transcription("small"),
    ),
    Mutant(
        "rows that do not teach are in the mean square", STATISTICS, "(own if rows is None else own[rows])", "own",
        transcription("ragged and small"),
    ),
    Mutant(
        "steps that do not teach are in the mean square", TORCH_STEP, "if learn and self.feedback is not None",
        "if self.feedback is not None", ("tests/network/test_statistics.py",),
    ),
    Mutant(
        "the mean forgets what came before", STATISTICS, "self.total += x.sum(0)", "self.total = x.sum(0)",
        transcription("mean and bias"),
    ),
    Mutant(
        "rows that were not observed are in the mean", STATISTICS, "x = x if mask is None else x[mask]", "pass",
        transcription("ragged and bias"),
    ),
    Mutant(
        "the bias is reset to the mean at every step", STATISTICS, "return self._logits() - before",
        "return self._logits()", transcription("mean and bias"),
    ),
    # Memory
    Mutant("h turns the other way", TRACES, "re * real - im * imaginary", "re * real + im * imaginary", MEMORY_TESTS),
    Mutant("h is written without ν", TRACES, "h: turned + nu * sent", "h: turned + sent", MEMORY_TESTS),
    Mutant("∂ν/∂a is left out", TRACES, " + slope * sent", "", MEMORY_TESTS),
    Mutant("∂λ/∂a has the wrong sign", TRACES, "- pace * turned", "+ pace * turned", MEMORY_TESTS),
    Mutant(
        "∂λ/∂θ is −iλ", TRACES, "[-turned[:, 1], turned[:, 0]]", "[turned[:, 1], -turned[:, 0]]", MEMORY_TESTS,
    ),
    Mutant("T_B is written without ν", TRACES, "u[:, :, None] * nu", "u[:, :, None]", MEMORY_TESTS),
    Mutant("T_B does not turn", TRACES, "imaginary.mul_(re).addcmul_(real, im)", "imaginary.mul_(re)", MEMORY_TESTS),
    Mutant(
        "rows that are not observed forget their traces", TRACES, "re, im = (torch.where(", "_ = (torch.where(",
        MEMORY_TESTS,
    ),
    Mutant(
        "rows that are not observed forget", TRACES, "value if mask is None else torch.where(", "value if True else (",
        MEMORY_TESTS,
    ),
    Mutant(
        "Im B is taught like Re B", TRACES, "torch.addcmul(q_im * real, q_re, imaginary, value=-1)",
        "torch.addcmul(q_im * real, q_re, imaginary)", MEMORY_TESTS,
    ),
    Mutant(
        "immediate credit without ν", TRACES, "(q * decays(memory)[2]).flatten(1)", "q.flatten(1)", MEMORY_TESTS,
    ),
    Mutant("the decays are taught by h", TRACES, "(q * held[T_a])", "(q * held[h])", MEMORY_TESTS),
    Mutant("the angles are taught by h", TRACES, "(q * held[T_angle])", "(q * held[h])", MEMORY_TESTS),
    Mutant("nothing is recalled", EQUATIONS, "return a.add_(recalled)", "return a", MEMORY_TESTS),
    # Least squares
    Mutant("the prior fades", "updates/rls.py", "math.sqrt(ridge * (1 - forgetting) * len(P))", "0.0", READOUT_TESTS),
    Mutant(
        "P is not forgotten", "updates/rls.py", "beta=1 / forgetting, alpha=-1", "beta=1.0, alpha=-1",
        READOUT_TESTS,
    ),
    Mutant(
        "forecasts learn from current features", READOUT, 'waiting["features"][:, horizon - 2]', "features",
        READOUT_TESTS,
    ),
    Mutant("forecasts are taught one step late", READOUT, 'waiting["gains"][:, horizon - 2]',
        'waiting["gains"][:, max(horizon - 3, 0)]', READOUT_TESTS,
    ),
    Mutant("paused rows advance", READOUT, "moved[:-1] = torch.where(", "_ = torch.where(", READOUT_TESTS),
    Mutant("spikes teach", READOUT, "if self.updates > WARM_UP:", "if False:", READOUT_TESTS),
    # Rules
    Mutant(
        "ΔW with y in place of z", EQUATIONS, "dW = Factors([Activity(z[n])]", "dW = Factors([Activity(y[n - 1])]",
        transcription(),
    ),
    Mutant(
        "W of hidden layers taught with e_z for e and e for e_z", EQUATIONS, 'config.prediction_error == "e_z"',
        'config.prediction_error == "e"', transcription(),
    ),
    Mutant(
        "M, V, U taught with the states of this step", EQUATIONS,
        "for part in torch.split(before, sizes, dim=1)]", "for part in (x, *y)]", transcription(),
    ),
    Mutant(
        "M, V, U taught with y where z was requested", TORCH_STEP,
        "before = state.corrected if state.uncorrected is None else state.uncorrected", "before = state.corrected",
        transcription("presynaptic"),
    ),
    Mutant(
        "the next step reads z in place of y", STATE, "_write(self.corrected, [x, *y], mask)",
        "_write(self.corrected, [x, *z], mask)", transcription(),
    ),
    Mutant(
        "M, V, U ascend", EQUATIONS, "teach_z = Activity(e_z[n - 1])", "teach_z = Activity(-e_z[n - 1])",
        transcription(),
    ),
    Mutant(
        "b taught with e's sign flipped", EQUATIONS, 'updates[f"b{n}"] = Factors([ones], teach_z)',
        'updates[f"b{n}"] = Factors([Activity(-ones.value)], teach_z)', transcription(),
    ),
    Mutant(
        "E learns with the opposite sign", EQUATIONS, "config.temporal_sign * (", "-config.temporal_sign * (",
        transcription(),
    ),
    Mutant("the sign option of E is ignored", EQUATIONS, "config.temporal_sign * (", "(", transcription("ascending")),
    Mutant("ΔE without the displacement before", EQUATIONS, "(e_z - e_z_before)", "(e_z)", transcription()),
    Mutant(
        "the displacement is remembered with the wrong sign", STATE,
        "_write(self.displacement, e_z, mask)", "_write(self.displacement, [-own for own in e_z], mask)",
        transcription(),
    ),
    Mutant(
        "the transpose rule ascends", EQUATIONS, "Factors([dW.post], dW.pre[0])",
        "Factors([Activity(-dW.post.value)], dW.pre[0])", transcription("transpose"),
    ),
    Mutant(
        "the transpose of e zᵀ, whatever W learnt from", EQUATIONS, "Factors([dW.post], dW.pre[0])",
        "Factors([e_below], dW.pre[0])", transcription("transpose and e_z"),
    ),
    Mutant("the Hebbian term is subtracted", EQUATIONS, "-xi * inverse(", "xi * inverse(", transcription("hebbian")),
    Mutant(
        "the Hebbian term is not normalised", EQUATIONS, "-xi * inverse(hebbian.norms())",
        "-xi * torch.ones_like(hebbian.norms())", transcription("hebbian"),
    ),
    Mutant(
        "the Hebbian term of W pairs z with e", EQUATIONS, "with_hebbian(dW, z[n - 1],",
        "with_hebbian(dW, e[n - 1],", transcription("hebbian"),
    ),
    # Rows that count, and how much
    Mutant(
        "unscored rows displace", EQUATIONS, "[_weighed(own, weight) for own in e_z]", "[own for own in e_z]",
        transcription("ragged and paper"),
    ),
    Mutant(
        "unscored rows teach W", EQUATIONS, "else _weighed(e[n - 1], weight))", "else e[n - 1])",
        transcription("ragged and paper"),
    ),
    Mutant(
        "the displacement before is not weighted", EQUATIONS, "[_weighed(old, weight) for", "[old for",
        transcription("mean"),
    ),
    Mutant(
        "unscored rows are Hebbian", EQUATIONS, "with_hebbian(dR, z[n], weight", "with_hebbian(dR, z[n], None",
        transcription("ragged and hebbian"),
    ),
    Mutant(
        "the mean is a sum", TORCH_STEP, 'if self.config.reduction == "mean":', "if False:", transcription("mean"),
    ),
    Mutant(
        "the rescaled sum is not divided", APPLY,
        'share = 1.0 / batch_size if self.config.reduction == "sum_then_mean" else 1.0', "share = 1.0",
        transcription("authors"),
    ),
    Mutant(
        "the first frame teaches", "learner.py", "return self.steps > 0, None", "return True, None",
        transcription(),
    ),
    Mutant(
        "the first frame never teaches", NETWORK, "if self.config.first_frame:", "if False:",
        transcription("first"),
    ),
    Mutant(
        "rows that start late teach at once", "learner.py", "rows = rows & mask", "rows = mask",
        transcription("ragged and paper"),
    ),
    Mutant(
        "masked rows lose their state", STATE, "part if mask is None else torch.where(mask[:, None], part, place)",
        "part",
        transcription("ragged and paper"),
    ),
    # Rescaling, step size, decay
    Mutant("unit norm: no rescaling", RESCALE, 'if rule == "none":', "if True:", transcription()),
    Mutant(
        "unit norm: another radius is ignored", RESCALE, "radius / norms.clamp_min(1e-30)",
        "1.0 / norms.clamp_min(1e-30)", transcription("radius"),
    ),
    Mutant(
        "clip: another radius is ignored", RESCALE, "radius / factors.norms().clamp_min(radius)",
        "1.0 / factors.norms().clamp_min(1.0)", transcription("clip"),
    ),
    Mutant(
        "the norm of the factors adds Gram matrices", FACTORS, "(pre.gram.double() * post.gram)",
        "(pre.gram.double() + post.gram)", FACTOR_TESTS,
    ),
    Mutant(
        "the schedule stands still", APPLY, "self.config.schedule(self.optimizer.updates)", "self.config.schedule(0)",
        transcription("schedule"),
    ),
    Mutant(
        "E has the step size of the others", APPLY, "return lr * group.lr_factor", "return lr",
        transcription("slow"),
    ),
    Mutant(
        "weights grow instead of decaying", APPLY, "lr * self.config.weight_decay",
        "-lr * self.config.weight_decay",
        transcription("decay"),
    ),
    Mutant(
        "biases decay too", APPLY, "weight_decay if group.regularized else 0.0", "weight_decay",
        transcription("decay"),
    ),
    # Optimisers
    Mutant(
        "SGD ascends", OPTIMIZERS, "add(pre, post, scale=-lr, keep", "add(pre, post, scale=lr, keep",
        OPTIMIZER_TESTS,
    ),
    Mutant(
        "SGD does not decay", OPTIMIZERS, "add(pre, post, scale=-lr, keep=1 - decay", "add(pre, post, scale=-lr",
        transcription("decay"),
    ),
    Mutant("the others do not decay", OPTIMIZERS, "weight.mul_(1 - decay)", "pass", transcription("decay")),
    Mutant(
        "momentum ascends", OPTIMIZERS, "weight.add_(velocity, alpha=-lr)", "weight.add_(velocity, alpha=lr)",
        OPTIMIZER_TESTS,
    ),
    Mutant("the velocity never decays", OPTIMIZERS, "beta=self.config.momentum)", "beta=1.0)", OPTIMIZER_TESTS),
    Mutant(
        "Nesterov's gradient ascends", OPTIMIZERS, "weight.addmm_(pre.T, post, alpha=-lr)",
        "weight.addmm_(pre.T, post, alpha=lr)", OPTIMIZER_TESTS,
    ),
    Mutant(
        "Nesterov does not look ahead", OPTIMIZERS, "weight.add_(velocity, alpha=-lr * self.config.momentum)", "pass",
        OPTIMIZER_TESTS,
    ),
    Mutant(
        "RMSprop ascends", OPTIMIZERS, "(self.config.eps), value=-lr)", "(self.config.eps), value=lr)",
        OPTIMIZER_TESTS,
    ),
    Mutant(
        "RMSprop divides by the square, not its root", OPTIMIZERS, "weight.addcdiv_(gradient, square.sqrt()",
        "weight.addcdiv_(gradient, square.clone()", OPTIMIZER_TESTS,
    ),
    Mutant("RMSprop forgets at once", OPTIMIZERS, "1 - self.config.alpha)\n", "self.config.alpha)\n", OPTIMIZER_TESTS),
    Mutant("Adam ascends", OPTIMIZERS, "value=-lr * for_mean", "value=lr * for_mean", OPTIMIZER_TESTS),
    Mutant("Adam's mean keeps its bias", OPTIMIZERS, "value=-lr * for_mean", "value=-lr", OPTIMIZER_TESTS),
    Mutant(
        "Adam's square keeps its bias", OPTIMIZERS, "square.sqrt().mul_(for_root)", "square.sqrt()",
        OPTIMIZER_TESTS,
    ),
    Mutant(
        "Adafactor is not clipped", OPTIMIZERS, "pre / squared.sqrt().clamp_min(1.0)", "pre", OPTIMIZER_TESTS,
    ),
    Mutant(
        "Adafactor's columns are its rows", OPTIMIZERS, "columns.lerp_(mean_squares(post, pre)",
        "columns.lerp_(mean_squares(post, post)", OPTIMIZER_TESTS,
    ),
    Mutant(
        "kernel: Adafactor is not clipped", STEPS, "size > 1 && i < rows * from", "0 && i < rows * from",
        ("tests/network/test_kernel.py", "-k", "give_the_same and adafactor"),
    ),
    Mutant(
        "kernel: Adafactor counts each pair of rows once", STEPS, "(s < r ? 2 : 1) * gram", "gram",
        ("tests/network/test_kernel.py", "-k", "give_the_same and adafactor"),
    ),
    Mutant("SGD reports no growth", OPTIMIZERS, "else lr * longest", "else 0.0", OPTIMIZER_TESTS),
    # Max-norm
    Mutant("max-norm on the other axis", SYNAPSES, "dim=1, keepdim", "dim=0, keepdim", transcription("bites")),
    Mutant("the bound does not grow", MAXNORM, "self.bound += growth", "self.bound += 0", REGRESSION_TESTS),
    Mutant("the norms are checked too late", MAXNORM, "self.radius * 0.999", "self.radius * 1.2", REGRESSION_TESTS),
    Mutant("the bound is the shortest row", MAXNORM, "norms.max().item()", "norms.min().item()", REGRESSION_TESTS),
    Mutant(
        "weights changed elsewhere are not checked", APPLY, "synapses.weight._version != ball.version", "False",
        MODULE_TESTS,
    ),
    # The queue of postponed products
    Mutant("sent without its scale", SYNAPSES, "x = x if scale == 1.0 else x * scale", "pass", QUEUE_TESTS),
    Mutant(
        "what is queued is sent without its scale", SYNAPSES, "x @ pre.T, post)", "x / scale @ pre.T, post)",
        QUEUE_TESTS,
    ),
    Mutant("what is queued is not sent", SYNAPSES, "out.addmm_(x @ pre.T, post)", "pass", QUEUE_TESTS),
    Mutant("queued without its scale", SYNAPSES, "torch.mul(pre, scale, out", "torch.mul(pre, 1.0, out", QUEUE_TESTS),
    Mutant("the queue runs over", SYNAPSES, "self.queued += rows", "self.queued = rows", QUEUE_TESTS),
    Mutant("written twice", SYNAPSES, "self.queued = 0\n        return", "return", QUEUE_TESTS),
    Mutant("decay forgets the queue", SYNAPSES, "add_outer(self.write(), ", "add_outer(self.weight, ", QUEUE_TESTS),
    # Discrepancy
    Mutant(
        "the discrepancy weighs e with β", EQUATIONS, "0.5 * config.gamma * e_own", "0.5 * config.beta * e_own",
        CLOSED_FORM_TESTS,
    ),
    Mutant("L^z is not halved", EQUATIONS, "0.5 * (y - z).square()", "(y - z).square()", CLOSED_FORM_TESTS),
    # Forward-mode learners
    Mutant(
        "SnAp-1 ignores what a unit sends to itself", ELIGIBILITY,
        "kept[:, :, 0] += (micro.slopes[:, :, : len(own)] * own).sum(2)", "pass", TRACE_TESTS,
    ),
    Mutant("eligibility traces do not decay", ELIGIBILITY, "return micro.carry",
        "return torch.ones_like(micro.carry)", TRACE_TESTS,
    ),
    Mutant(
        "random feedback has the wrong sign", ELIGIBILITY, "error @ self.broadcast.weight",
        "-error @ self.broadcast.weight", TRACE_TESTS,
    ),
    Mutant(
        "masked rows lose their eligibility", ELIGIBILITY, "rows(mask, self.keep(micro), whole[None, :, :, None])",
        "self.keep(micro)", TRACE_TESTS,
    ),
    Mutant(
        "immediate: masked rows forget their last input", "learners/forward_mode.py",
        "state.vectors = _keep(mask, vectors, state.vectors)", "state.vectors = vectors", TRACE_TESTS,
    ),
    Mutant(
        "eLSTM: J is f alone", ELSTM, "jacobian = f + (self.cell.weight_cc_l0 * slopes).sum(1)", "jacobian = f",
        DIAGONAL_TESTS,
    ),
    Mutant("eLSTM: the slope of f ascends", ELSTM, "(c - z) * f * (1 - f)", "(z - c) * f * (1 - f)", DIAGONAL_TESTS),
    Mutant(
        "eLSTM: the output gate gives c no credit", ELSTM, "adjoint * o + grad_gate @ self.cell.weight_hh_l0",
        "adjoint * o", DIAGONAL_TESTS,
    ),
    Mutant(
        "eLSTM: own traces of the new c", ELSTM, "slopes * c[:, None]", "slopes * new_c[:, None]", DIAGONAL_TESTS
    ),
    Mutant(
        "LRU: traces turn the other way", LRU, "torch.stack([real * re - imaginary * im, real * im + imaginary * re]",
        "torch.stack([real * re + imaginary * im, real * im - imaginary * re]", DIAGONAL_TESTS,
    ),
    Mutant(
        "LRU: traces of B do not turn", LRU, "im.mul_(real).addcmul_(imaginary, re)", "im.mul_(real)", DIAGONAL_TESTS
    ),
    Mutant("LRU: Im B is taught like Re B", LRU, "[imaginary, -real]", "[imaginary, real]", DIAGONAL_TESTS),
    Mutant(
        "LRU: angles are taught the other way", LRU, "g[:, 1] * rotated[:, 0] - g[:, 0] * rotated[:, 1]",
        "g[:, 0] * rotated[:, 1] - g[:, 1] * rotated[:, 0]", DIAGONAL_TESTS,
    ),
    Mutant("LRU: decays are taught the other way", LRU, '"decay": -torch.exp', '"decay": torch.exp', DIAGONAL_TESTS),
    Mutant(
        "LRU: immediate credit without s", LRU, "(torch.exp(layer.scale) * g).flatten(1)", "g.flatten(1)",
        DIAGONAL_TESTS,
    ),
    Mutant(
        "RTRL: what a step adds is left out", "learners/rtrl.py",
        "own.addcmul_(slopes[:, :, :, None], group.vector[:, None, None, :, None])", "pass", RTRL_TESTS,
    ),
    Mutant(
        "RTRL: the cell state carries nothing", "learners/rtrl.py", "if carry is not None:", "if False:", RTRL_TESTS
    ),
    # The compiled kernel
    Mutant(
        "kernel: β E e pushes the other way", KERNEL, "own, -(REAL)run->net->beta)", "own, (REAL)run->net->beta)",
        transcription("kernel and paper"),
    ),
    Mutant(
        "kernel: γ e pulls the other way", KERNEL, "drive[i] += (REAL)net->gamma", "drive[i] -= (REAL)net->gamma",
        transcription("kernel and strong"),
    ),
    Mutant(
        "kernel: λ makes states less sparse", KERNEL, "drive[i] -= (REAL)net->lam", "drive[i] += (REAL)net->lam",
        transcription("kernel and strong"),
    ),
    Mutant(
        "kernel: the displacement before is left out", KERNEL,
        "(displacement[r * n + j] - before[r * stride + j])", "displacement[r * n + j]",
        transcription("kernel and paper"),
    ),
    Mutant(
        "kernel: the mean is a sum", RUN, "weight = run->row_weight,", "weight = 1,",
        transcription("kernel and mean"),
    ),
    Mutant(
        "kernel: the rescaled sum is not divided", RUN, "scale = run->share * NAME", "scale = NAME",
        transcription("kernel and authors"),
    ),
    Mutant(
        "kernel: unit norm, no rescaling", RUN, "return weight * radius / (norm > 1e-30 ? norm : 1e-30)",
        "return weight", transcription("kernel and paper"),
    ),
    Mutant(
        "kernel: SGD ascends", STEPS, "step = (REAL)(-rule->rate * scale)", "step = (REAL)(rule->rate * scale)",
        transcription("kernel and paper"),
    ),
    Mutant(
        "kernel: all rows of a batch are the first", PRODUCTS, "tile.x = x + r * stride + i;", "tile.x = x + i;",
        LARGE_TESTS,
    ),
    Mutant(
        "kernel: an update of many rows forgets the first of them", PRODUCTS, "start ? 1 : keep", "keep", LARGE_TESTS
    ),
    Mutant(
        "kernel: the Gram matrix of a batch is not symmetric", RUN,
        "activity->gram[r * rows + s] = activity->gram[s * rows + r] =", "activity->gram[r * rows + s] =", LARGE_TESTS,
    ),
    Mutant("kernel: momentum ascends", STEPS, "- rate * u[j];", "+ rate * u[j];", OPTIMIZER_TESTS),
    Mutant("kernel: Nesterov does not look ahead", STEPS, "(g[j] + mu * u[j])", "(g[j])", OPTIMIZER_TESTS),
    Mutant("kernel: RMSprop ascends", STEPS, "- rate * d / (REAL_SQRT", "+ rate * d / (REAL_SQRT", OPTIMIZER_TESTS),
    Mutant(
        "kernel: Adam's square keeps its bias", STEPS, "(REAL_SQRT(v[j]) * root + eps)", "(REAL_SQRT(v[j]) + eps)",
        OPTIMIZER_TESTS,
    ),
    Mutant(
        "kernel: max-norm never bites", STEPS, "if (norm > radius)\n", "if (0)\n", transcription("kernel and bites")
    ),
    Mutant(
        "kernel: every rank makes the first part of a product", RUN, "start = run->step->part * each;", "start = 0;",
        ("tests/distributed/test_equality.py",),
    ),
    Mutant(
        "kernel: every rank learns the first columns", RUN,
        "m = NAME(weights_from)(all, start * to + own_range.start);",
        "m = NAME(weights_from)(all, start * to);", ("tests/distributed/test_equality.py",),
    ),
    Mutant(
        "kernel: a small displacement corrects by all of E e", KERNEL, "drives[i] += beta * run->feedback[i]",
        "drives[i] += run->feedback[i]", transcription("kernel and small"),
    ),
    Mutant(
        "kernel: a small displacement is not brought back to unit size", KERNEL,
        "(z[j] - displacement[j]) / kappa", "(z[j] - displacement[j])", transcription("kernel and small"),
    ),
    Mutant(
        "kernel: the usual feedback is that of this step", KERNEL,
        "step->square_decay * (double)*square +", "0 * *square +",
        transcription("kernel and small"),
    ),
    Mutant(
        "kernel: rows that do not teach are in the mean square", KERNEL,
        "if (NAME(is_learnt_from)(run, r)) {\n                sum", "if (1) {\n                sum",
        ("tests/network/test_kernel.py", "-k", "ragged and small"),
    ),
    Mutant(
        "kernel: masked rows lose their state", KERNEL, "if (!NAME(is_observed)(run, r)) continue;", "",
        transcription("ragged and paper"),
    ),
    Mutant(
        "kernel: unobserved rows have errors", KERNEL, "k < run->L && !NAME(is_observed)(run, r)", "k < 0",
        ("tests/network/test_caught_mutants.py", "-k", "not_observed"),
    ),
    Mutant(
        "kernel: unscored rows teach W", KERNEL, "if (k < run->L) memset(run->masked_errors",
        "if (0) memset(run->masked_errors",
        transcription("ragged and paper"),
    ),
    Mutant(
        "kernel: unscored rows displace", KERNEL, "if (k > 0) memset(run->masked_displacements",
        "if (0) memset(run->masked_displacements",
        transcription("ragged and paper"),
    ),
    Mutant(
        "kernel: an unknown optimiser is accepted", CHECKS, "within(rule->optimizer, 0, OPTIMIZERS - 1)", "1",
        ("tests/kernels/test_boundary.py",),
    ),
    Mutant(
        "kernel: an unknown activation is accepted", CHECKS, "within(phi[k], 0, ACTIVATIONS - 1) && ", "",
        ("tests/kernels/test_boundary.py",),
    ),
    Mutant(
        "kernel: the size of the state is not compared", CHECKS,
        "REFUSE_UNLESS(has(step->corrected, rows * total), BAD_COUNT);", "", ("tests/kernels/test_boundary.py",),
    ),
    Mutant(
        "kernel: a full queue is written past its end", CHECKS, "used + step->rows <= room", "1",
        ("tests/kernels/test_boundary.py",),
    ),
    Mutant(
        "kernel: credit turns the wrong way", KERNEL_TRACES, "credit_im[i] += q_im[i] * T - q[i] * Ti",
        "credit_im[i] += q_im[i] * T + q[i] * Ti", KERNEL_MEMORY_TESTS,
    ),
    Mutant(
        "kernel: credit forgets the imaginary part", KERNEL_TRACES, "credit[i] += q[i] * T + q_im[i] * Ti",
        "credit[i] += q[i] * T", KERNEL_MEMORY_TESTS,
    ),
    Mutant(
        "kernel: traces turn the wrong way", KERNEL_TRACES, "T_re[i] = re[i] * T - im[i] * Ti",
        "T_re[i] = re[i] * T + im[i] * Ti", KERNEL_MEMORY_TESTS,
    ),
    Mutant(
        "kernel: traces are written without ν", KERNEL_TRACES, "+ nu[i] * u;",
        "+ u;", KERNEL_MEMORY_TESTS,
    ),
    Mutant(
        "kernel: traces of inputs that are 0 now do not decay", KERNEL_TRACES, " && T[0] == 0 && T[H] == 0) continue;",
        ") continue;", ("tests/network/test_kernel.py", "-k", "size_used_for_text"),
    ),
    Mutant(
        "kernel: memories turn the wrong way", KERNEL_TRACES, "turned = re[i] * value[i] - im[i] * value_im[i]",
        "turned = re[i] * value[i] + im[i] * value_im[i]", KERNEL_MEMORY_TESTS,
    ),
    Mutant(
        "kernel: the gradient of the rates has the wrong sign", KERNEL_TRACES, "- pace[i] * h[part * H + i]",
        "+ pace[i] * h[part * H + i]", KERNEL_MEMORY_TESTS,
    ),
    Mutant(
        "kernel: the gradient of the angles has the wrong sign", KERNEL_TRACES, "angle[i] -= h[H + i]",
        "angle[i] += h[H + i]", KERNEL_MEMORY_TESTS,
    ),
    Mutant(
        "kernel: the update of B ascends", KERNEL_TRACES, "keep * m->weight[i] - rate * update[i]",
        "keep * m->weight[i] + rate * update[i]", KERNEL_MEMORY_TESTS,
    ),
    Mutant(
        "kernel: unobserved rows advance", KERNEL_TRACES, "moves = NAME(is_observed)(run, r)",
        "moves = 1", KERNEL_MEMORY_TESTS,
    ),
    Mutant(
        "kernel: products for credit leave out the queue", KERNEL_TRACES, "q[r * twice + i] += v *",
        "q[r * twice + i] += 0 * v *", KERNEL_MEMORY_TESTS,
    ),
    Mutant(
        "kernel: immediate credit without ν", KERNEL_TRACES, "q[i] * run->decays[2 * H + i % H]",
        "q[i]", KERNEL_MEMORY_TESTS,
    ),
    Mutant(
        "kernel: the updates queued in this step are left out", KERNEL_TRACES, "write.pre) write.queued += run->rows;",
        "write.pre) write.queued += 0;", KERNEL_MEMORY_TESTS,
    ),
    Mutant(
        "kernel: the next step reads z", KERNEL, "(corrected + here, y + there", "(corrected + here, z + there",
        transcription("kernel and paper"),
    ),
]  # fmt: skip

OUTCOMES = {0: "SURVIVED", 1: "caught"}
CRASHES = (-signal.SIGABRT, -signal.SIGSEGV)
"""A mutant of the kernel that corrupts memory may end the process; the unchanged kernel passes the same tests."""


class Job(NamedTuple):
    """Tests to run on a mutant, or on the package as it is."""

    mutant: Mutant | None
    tests: tuple[str, ...]

    @property
    def kernel(self) -> bool:
        """Whether the tests may use the kernel: mutants of the rules in PyTorch must run without it."""
        return self.mutant is None or self.mutant.compiled


def unchanged(mutants: list[Mutant]) -> list[Job]:
    """The tests of all these mutants on the package as it is: one job a file."""
    selections: dict[str, set[str]] = {}
    for mutant in mutants:
        selections.setdefault(mutant.tests[0], set()).update(mutant.tests[2:] or {""})
    return [
        Job(None, (file,) if "" in words else (file, "-k", " or ".join(f"({word})" for word in sorted(words))))
        for file, words in selections.items()
    ]


def make_copy(package: Path, mutant: Mutant | None, folder: Path) -> None:
    """The package with one text replaced, in `folder`; a changed kernel is compiled again."""
    copy = folder / "ptncn"
    shutil.copytree(package, copy)
    if mutant is None:
        return
    path = copy / mutant.file
    path.write_text(mutant.apply(path.read_text(encoding="utf-8")), encoding="utf-8")
    if mutant.compiled:
        library = path.with_name("_step.kernel.so")
        library.unlink(missing_ok=True)
        compiler = ["cc", "-shared", "-fPIC", "-O1", "-std=gnu11", "-o", library, path.with_name("step.c"), "-lm"]
        subprocess.run(compiler, check=True)


def run_tests(job: Job, folder: Path) -> int:
    """pytest's exit code on the package in `folder`, 1 if a test failed. Call it in a separate process."""
    import pytest

    output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(ROOT)
    os.environ["PTNCN_KERNEL"] = str(int(job.kernel))
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(folder))
    signal.alarm(TIME_LIMIT)
    code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *job.tests]))
    imported = Path(sys.modules["ptncn"].__file__ or "")
    return code if imported.is_relative_to(folder) else WRONG_PACKAGE


def run_jobs(jobs: list[Job], scratch: Path, workers: int) -> list[int]:
    """The exit code of each job."""
    import pytest  # noqa: F401 (once, for the processes below to inherit)
    import torch
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    torch.set_num_threads(1)
    package = scratch / "package"  # as it is now, whatever happens to the working tree meanwhile
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    codes = [0] * len(jobs)
    waiting, running = list(enumerate(jobs)), dict[int, int]()
    columns = [*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn()]
    with Progress(
        *columns, TextColumn("{task.fields[last]}"), auto_refresh=False
    ) as progress:  # forking, so no threads
        task = progress.add_task("mutants", total=len(jobs), last="")
        progress.refresh()
        while waiting or running:
            while waiting and len(running) < workers:
                number, job = waiting.pop(0)
                folder = scratch / str(number)
                make_copy(package, job.mutant, folder)
                pid = os.fork()
                if pid == 0:
                    os._exit(run_tests(job, folder))
                running[pid] = number
            pid, status = os.wait()
            number = running.pop(pid)
            codes[number] = os.waitstatus_to_exitcode(status)
            mutant = jobs[number].mutant
            progress.update(task, advance=1, last=mutant.description if mutant else "as it is", refresh=True)
    return codes


def main(pattern: str = "") -> int:
    from rich.console import Console
    from rich.table import Table

    chosen = [mutant for mutant in MUTANTS if pattern in mutant.description]
    if shutil.which("cc") is None:
        chosen = [mutant for mutant in chosen if not mutant.compiled]
        print("no C compiler: the mutants of the kernel are left out")
    for mutant in chosen:
        mutant.apply((PACKAGE / mutant.file).read_text(encoding="utf-8"))
    jobs = [*unchanged(chosen), *(Job(mutant, mutant.tests) for mutant in chosen)]
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    table, problems = Table("mutant", "file", "", box=None), 0
    with tempfile.TemporaryDirectory(prefix="ptncn-mutants-") as scratch:
        for number, code in enumerate(run_jobs(jobs, Path(scratch), workers)):
            mutant, tests = jobs[number]
            if mutant is not None and mutant.compiled and code in CRASHES:
                code = 1
            if mutant is not None:
                table.add_row(mutant.description, mutant.file, OUTCOMES.get(code, f"DID NOT RUN ({code})"))
            if code == (0 if mutant is None else 1):
                continue
            problems += 1
            if code != 0:
                output = (Path(scratch) / str(number) / "output.txt").read_text(encoding="utf-8")[-2000:]
                name = mutant.description if mutant else "the package as it is"
                print(f"{name}: pytest {' '.join(tests)}\n{output}\n")
    Console().print(table)
    print(f"\n{len(chosen)} mutants, " + (f"{problems} PROBLEMS" if problems else "all caught"))
    return int(problems > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
