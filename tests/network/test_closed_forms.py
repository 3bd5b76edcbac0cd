"""With φ = identity the local rules are gradients of known objectives, which autograd computes."""

import itertools

import pytest
import torch

from ptncn import PTNCN
from ptncn.network import equations

OPTIONS = {
    "activation": "identity", "rescale": "none", "max_norm": None, "lr": 0.5, "dtype": torch.float64,
    "weight_std": 0.3, "error_weight_std": 0.3, "error_rule": "fixed",
}  # fmt: skip


def warm(net: PTNCN, rows: int = 4):
    """A state after a few observations, and the next observation."""
    rng = torch.Generator().manual_seed(0)
    state = net.begin(rows)
    for _ in range(3):
        net.step(torch.rand(rows, net.input_size, generator=rng, dtype=torch.float64), state, learn=False)
    return state, torch.rand(rows, net.input_size, generator=rng, dtype=torch.float64)


def changes(net: PTNCN, act) -> dict[str, torch.Tensor]:
    before = {name: weight.clone() for name, weight in net.synapses().items()}
    act()
    return {name: weight - before[name] for name, weight in net.synapses().items()}


@pytest.mark.parametrize("output", ["gaussian", "bernoulli", "categorical"])
def test_the_update_of_w1_is_the_gradient_of_the_likelihood(output):
    net = PTNCN(6, [5, 4], output=output, **OPTIONS)
    state, x = warm(net)
    x = torch.nn.functional.one_hot(x.argmax(-1), 6).double() if output == "categorical" else x
    out = net.step(x, state.clone(), learn=False)
    W = net.synapses()["W1"].clone().requires_grad_()
    c = net.synapses()["c1"].clone().requires_grad_()
    net.output.nll(out.states[0] @ W.T + c, x).sum().backward()
    delta = changes(net, lambda: net.step(x, state))
    torch.testing.assert_close(delta["W1"], -0.5 * W.grad, rtol=0, atol=1e-12)
    torch.testing.assert_close(delta["c1"], -0.5 * c.grad, rtol=0, atol=1e-12)


def test_the_updates_of_the_layer_above_are_the_gradient_of_its_own_prediction_error():
    net = PTNCN(6, [5, 4, 3], output="gaussian", **OPTIONS)
    state, x = warm(net)
    out = net.step(x, state.clone(), learn=False)
    W = net.synapses()["W3"].clone().requires_grad_()
    c = net.synapses()["c3"].clone()
    (0.5 * (out.states[1] - (out.states[2] @ W.T + c)).square().sum()).backward()
    delta = changes(net, lambda: net.step(x, state))
    torch.testing.assert_close(delta["W3"], -0.5 * W.grad, rtol=0, atol=1e-12)


def test_the_updates_of_m_v_u_and_b_are_the_gradient_of_the_distance_to_the_corrected_state():
    net = PTNCN(6, [5, 4, 3], output="gaussian", **OPTIONS)
    state, x = warm(net)
    y = net.step(x, state.clone(), learn=False).corrected[1]
    _, y1, y2, y3 = state.corrected.split([6, 5, 4, 3], dim=1)
    weights = {name: net.synapses()[name].clone().requires_grad_() for name in ("M2", "V2", "U2", "b2")}
    z = y1 @ weights["M2"].T + y2 @ weights["V2"].T + y3 @ weights["U2"].T + weights["b2"]
    (0.5 * (y - z).square().sum()).backward()
    delta = changes(net, lambda: net.step(x, state))
    for name, weight in weights.items():
        torch.testing.assert_close(delta[name], -0.5 * weight.grad, rtol=0, atol=1e-12)


def test_the_correction_is_a_gradient_step_on_the_local_objective_where_e_is_the_transpose_of_w():
    """Δa = −∂/∂z (β/2 ‖x − W z‖² + γ/2 ‖z − z_o‖² + λ |z|): equations 9 and 10 under φ = identity."""
    beta, gamma, lam = 0.3, 0.2, 0.01
    net = PTNCN(6, [5, 4], output="gaussian", beta=beta, gamma=gamma, lam=lam, **OPTIONS)
    for number in (1, 2):
        net.synapses()[f"E{number}"].copy_(net.synapses()[f"W{number}"].T)
    state, x = warm(net)
    out = net.step(x, state, learn=False)
    z1, z2 = (z.clone().requires_grad_() for z in out.states)
    w = net.synapses()
    expected = out.states[1] @ w["W2"].T + w["c2"]
    first = beta / 2 * (x - (z1 @ w["W1"].T + w["c1"])).square().sum()
    first = first + gamma / 2 * (z1 - expected).square().sum() + lam * z1.abs().sum()
    second = beta / 2 * (out.states[0] - (z2 @ w["W2"].T + w["c2"])).square().sum() + lam * z2.abs().sum()
    (first + second).backward()
    torch.testing.assert_close(out.corrected[0], out.states[0] - z1.grad, rtol=0, atol=1e-12)
    torch.testing.assert_close(out.corrected[1], out.states[1] - z2.grad, rtol=0, atol=1e-12)


def test_the_total_discrepancy_is_the_sum_of_the_local_objectives():
    net = PTNCN(6, [5, 4], output="gaussian", beta=0.3, gamma=0.2, lam=0.01, dtype=torch.float64, weight_std=0.3)
    state, x = warm(net)
    out = net.step(x, state)
    (z1, z2), (y1, y2), (e0, e1) = out.states, out.corrected, out.errors
    squared = lambda v: v.square().sum(-1)  # noqa: E731
    parts = out.discrepancy()
    lp1 = 0.15 * squared(e0) + 0.1 * squared(e1) + 0.01 * z1.abs().sum(-1)
    lp2 = 0.15 * squared(e1) + 0.01 * z2.abs().sum(-1)
    torch.testing.assert_close(parts.predictions[0], lp1)
    torch.testing.assert_close(parts.predictions[1], lp2)
    torch.testing.assert_close(parts.states[0], squared(y1 - z1) / 2)
    torch.testing.assert_close(parts.total, lp1 + lp2 + (squared(y1 - z1) + squared(y2 - z2)) / 2)
    torch.testing.assert_close(out.surprise[1], squared(e1) / 2)


def test_the_discrepancy_of_a_categorical_output_is_its_negative_log_likelihood():
    net = PTNCN(3, [4], output="categorical", beta=0.5, lam=0.0, dtype=torch.float64)
    state = net.begin(1)
    x = torch.tensor([[0.0, 1.0, 0.0]])
    out = net.step(x, state)
    torch.testing.assert_close(out.discrepancy().predictions[0], -0.5 * out.prediction[:, 1].log())


def test_layers_in_any_order_give_the_same_numbers():
    net = PTNCN(6, [5, 4, 3], dtype=torch.float64, weight_std=0.3)
    state, x = warm(net)
    guess = equations.predict(state.corrected, {}, net.layers, net.output)
    e, y, _ = equations.correct(x, guess, net.layers, net.output, net.config, None)
    for order in itertools.permutations(range(3)):
        a, z, z_o, corrected = {}, {}, {}, {}
        for i in order:
            a[i] = equations.drive(state.corrected, {}, net.layers[i])
            z[i] = equations.state(a[i], net.layers[i])
            z_o[i] = net.layers[i].phi_o(equations.expectation(z[i], net.layers[i]))
        errors = {i: equations.error(z_o[i], x if i == 0 else z[i - 1], None) for i in order}
        for i in order:
            back = equations.feedback(errors[i], net.layers[i], net.config)
            drive = equations.correction(a[i], z[i], back, errors.get(i + 1), net.config)
            corrected[i] = equations.state(drive, net.layers[i])
        for i in range(3):
            assert torch.equal(z_o[i], guess.z_o[i])
            assert torch.equal(errors[i], e[i])
            assert torch.equal(corrected[i], y[i])
