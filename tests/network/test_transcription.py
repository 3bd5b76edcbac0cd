"""The network agrees with an independent transcription of the paper's equations, for each rule and preset."""

import numpy as np
import pytest
import torch
from transcription import Transcription, cosine_to, root_to

from ptncn import PTNCN
from ptncn.updates import Schedule

AUTHORS = {
    "phi_o": "identity", "beta": 0.1, "beta_all": True, "gamma": 0.001, "lam": 0.0, "w_error": "e_z",
    "e_rule": "transpose", "rescale": "clip", "mean": "after", "opt": "nesterov", "lr": 0.075, "max_norm": None,
}  # fmt: skip
BEST = {
    "beta": 0.25, "e_rule": "transpose", "rescale": "none", "mean": "before", "opt": "adam", "beta2": 0.99,
    "lr": 0.001, "lr_at": root_to(0.1, 1000), "kappa": 0.01, "c_mean": True,
}  # fmt: skip
BEST_FOR_TEXT = {
    **BEST, "phi": "relu6", "phi_o": "relu6", "beta": 0.15, "mean": None, "beta2": 0.999, "lr": 0.004,
    "lr_at": root_to(0, 100),
}  # fmt: skip
SMALL, SMALL_TRANSCRIBED = {"teaching": "small", "displacement_decay": 0.9}, {"kappa": 0.01, "rho": 0.9}
ADAPTIVE = {"lr": 0.003}
SIZES = {1: (7, 6), 2: (7, 6, 4), 3: (7, 5, 4, 3)}

# name: (options of the network, the same options of the transcription)
VARIANTS = {
    "paper": ({}, {}),
    "authors": ({"preset": "authors"}, AUTHORS),
    "best": ({"preset": "best"}, BEST),
    "no biases": ({"biases": False}, {}),
    "sparsity as printed": ({"lam": 0.05, "sparsity_sign": "printed"}, {"lam": 0.05, "lam_sign": -1}),
    "strong correction": ({"beta": 1.0, "gamma": 0.3, "lam": 0.05}, {"beta": 1.0, "gamma": 0.3, "lam": 0.05}),
    "beta on all": (
        {"beta": 0.5, "gamma": 0.3, "lam": 0.05, "beta_scope": "all"},
        {"beta": 0.5, "gamma": 0.3, "lam": 0.05, "beta_all": True},
    ),
    "presynaptic z": ({"presynaptic": "z"}, {"pre": "z"}),
    "temporal ascending": ({"temporal_sign": -1}, {"e_sign": -1}),
    "transpose": ({"error_rule": "transpose"}, {"e_rule": "transpose"}),
    "transpose, e_z for W": (
        {"error_rule": "transpose", "prediction_error": "e_z"},
        {"e_rule": "transpose", "w_error": "e_z"},
    ),
    "fixed E": ({"error_rule": "fixed"}, {"e_rule": "fixed"}),
    "slow E": ({"error_lr_factor": 0.1}, {"e_factor": 0.1}),
    "hidden prediction linear": ({"hidden_prediction": "identity"}, {"phi_o": "identity"}),
    "clip": ({"rescale": "clip", "radius": 0.3}, {"rescale": "clip", "radius": 0.3}),
    "clip the mean": (
        {"rescale": "clip", "radius": 0.3, "reduction": "mean"},
        {"rescale": "clip", "radius": 0.3, "mean": "before"},
    ),
    "mean": ({"rescale": "none", "reduction": "mean"}, {"rescale": "none", "mean": "before"}),
    "sum": ({"rescale": "none", "lr": 0.01}, {"rescale": "none", "lr": 0.01}),
    "unit of another radius": ({"radius": 0.5}, {"radius": 0.5}),
    "momentum": ({"optimizer": "momentum", "lr": 0.01}, {"opt": "momentum", "lr": 0.01}),
    "nesterov": ({"optimizer": "nesterov", "lr": 0.01}, {"opt": "nesterov", "lr": 0.01}),
    "rmsprop": ({"optimizer": "rmsprop", **ADAPTIVE}, {"opt": "rmsprop", **ADAPTIVE}),
    "adam": ({"optimizer": "adam", **ADAPTIVE}, {"opt": "adam", **ADAPTIVE}),
    "hebbian": ({"xi": 0.4}, {"xi": 0.4}),
    "hebbian on the mean": ({"xi": 0.4, "reduction": "mean"}, {"xi": 0.4, "mean": "before"}),
    "three corrections": ({"corrections": 3}, {"K": 3}),
    "first frame": ({"first_frame": True}, {"first": True}),
    "max-norm that bites": ({"max_norm": 0.15}, {"max_norm": 0.15}),
    "max-norm with momentum": (
        {"max_norm": 0.15, "optimizer": "momentum", "lr": 0.01},
        {"max_norm": 0.15, "opt": "momentum", "lr": 0.01},
    ),
    "max-norm with rmsprop": (
        {"max_norm": 0.15, "optimizer": "rmsprop", **ADAPTIVE},
        {"max_norm": 0.15, "opt": "rmsprop", **ADAPTIVE},
    ),
    "no max-norm": ({"max_norm": None}, {"max_norm": None}),
    "weight decay": ({"weight_decay": 0.1}, {"decay": 0.1}),
    "weight decay with momentum": (
        {"weight_decay": 0.1, "optimizer": "momentum", "lr": 0.01},
        {"decay": 0.1, "opt": "momentum", "lr": 0.01},
    ),
    "weight decay with adam": (
        {"weight_decay": 0.1, "optimizer": "adam", **ADAPTIVE},
        {"decay": 0.1, "opt": "adam", **ADAPTIVE},
    ),
    "schedule": ({"schedule": Schedule("cosine", steps=30, final=0.1)}, {"lr_at": cosine_to(0.1, 30)}),
    "sign": (
        {"activation": "sign", "hidden_prediction": "identity", "rescale": "none", "lr": 0.003},
        {"phi": "sign", "phi_o": "identity", "rescale": "none", "lr": 0.003},
    ),
    "small": (SMALL, SMALL_TRANSCRIBED),
    "small, of another size": ({**SMALL, "displacement": 0.5}, {**SMALL_TRANSCRIBED, "kappa": 0.5}),
    "small, without correction": ({**SMALL, "beta": 0.0}, {**SMALL_TRANSCRIBED, "beta": 0.0}),
    "small, for rmsprop": (
        {**SMALL, "optimizer": "rmsprop", "rescale": "none", "reduction": "mean", **ADAPTIVE},
        {**SMALL_TRANSCRIBED, "opt": "rmsprop", "rescale": "none", "mean": "before", **ADAPTIVE},
    ),
    "small, three corrections": ({**SMALL, "corrections": 3}, {**SMALL_TRANSCRIBED, "K": 3}),
    "small, of signs": (
        {**SMALL, "activation": "sign", "hidden_prediction": "identity", "reach": 0.7},
        {**SMALL_TRANSCRIBED, "phi": "sign", "phi_o": "identity", "reach": 0.7},
    ),
    "mean bias": ({"output_bias": "mean"}, {"c_mean": True}),
    "sigmoid": ({"activation": "sigmoid"}, {"phi": "sigmoid", "phi_o": "sigmoid"}),
    "leaky relu": (
        {"activation": "leaky_relu", "rescale": "none"},
        {"phi": "leaky_relu", "phi_o": "leaky_relu", "rescale": "none"},
    ),
}  # fmt: skip


def observations(output: str, steps: int, rows: int, size: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    if output == "categorical":
        return np.eye(size)[rng.integers(size, size=(steps, rows))]
    if output == "bernoulli":
        return rng.random((steps, rows, size)).round(1)
    return rng.normal(size=(steps, rows, size))


def agree(sizes, output, options, transcribed, masks=None, steps=50, rows=3):
    net = PTNCN(sizes[0], list(sizes[1:]), output=output, seed=3, dtype=torch.float64, **options)
    for name, weight in net.synapses().items():  # larger than the default, so that every term matters
        if name[0].islower():
            weight.uniform_(-0.1, 0.1, generator=torch.Generator().manual_seed(1))
        else:
            weight.mul_(4)
    start = {name: weight.numpy().copy() for name, weight in net.synapses().items()}
    twin = Transcription(start, sizes, output, **transcribed)
    state = net.begin(rows)
    twin.begin(rows)
    for t, x in enumerate(observations(output, steps, rows, sizes[0])):
        mask = None if masks is None else masks[t]
        out = net.step(torch.from_numpy(x), state, mask=None if mask is None else torch.from_numpy(mask))
        np.testing.assert_allclose(out.prediction.numpy(), twin.step(x, mask), rtol=0, atol=1e-10)
    after = net.synapses()
    assert set(after) == set(twin.w)
    for name, weight in twin.w.items():
        np.testing.assert_allclose(after[name].numpy(), weight, rtol=0, atol=1e-10, err_msg=name)
        fixed = options.get("error_rule") == "fixed" and name[0] == "E"
        assert fixed == bool(np.array_equal(weight, start[name])), name


@pytest.mark.usefixtures("either_path")
@pytest.mark.parametrize("depth", SIZES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_fifty_learning_steps_agree(variant, depth):
    agree(SIZES[depth], "bernoulli", *VARIANTS[variant])


@pytest.mark.usefixtures("either_path")
@pytest.mark.parametrize("output", ["gaussian", "categorical"])
@pytest.mark.parametrize("variant", ["paper", "authors", "transpose", "rmsprop", "mean bias"])
def test_each_output_agrees(variant, output):
    agree(SIZES[2], output, *VARIANTS[variant])


@pytest.mark.usefixtures("either_path")
def test_the_preset_best_agrees_on_text():
    agree(SIZES[1], "categorical", {"preset": "best"}, BEST_FOR_TEXT)


@pytest.mark.parametrize(
    "variant",
    [
        "paper",
        "authors",
        "clip the mean",
        "hebbian",
        "nesterov",
        "adam",
        "presynaptic z",
        "first frame",
        "small",
        "mean bias",
    ],
)
def test_ragged_batches_agree(variant):
    """Rows start late, pause and end early; some steps observe no row."""
    masks = np.random.default_rng(5).random((50, 3)) < 0.6
    masks[:4, 0] = masks[30:, 1] = masks[10] = False
    agree(SIZES[3], "bernoulli", *VARIANTS[variant], masks=masks)


@pytest.mark.usefixtures("either_path")
@pytest.mark.parametrize("rows", [1, 8, 9])
@pytest.mark.parametrize("variant", ["paper", "authors", "clip the mean", "adam"])
def test_other_batch_sizes_agree(variant, rows):
    agree(SIZES[3], "bernoulli", *VARIANTS[variant], rows=rows)
