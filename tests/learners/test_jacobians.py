"""Local derivatives of each cell, against automatic differentiation of the cell itself."""

import pytest
import torch
from torch.func import functional_call, jacrev

from ptncn.learners.cells import make_cell
from ptncn.learners.linearisation import group_shapes, linearise, unpack

B, N, H = 3, 4, 5
CELLS = [("rnn", 1), ("lstm", 1), ("gru", 1), ("rhn", 1), ("rhn", 3)]


def draw(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.fixture(params=CELLS, ids=lambda pair: f"{pair[0]}-{pair[1]}")
def case(request):
    """A cell, an observation and a state in mid-sequence."""
    name, depth = request.param
    generator = torch.Generator().manual_seed(7)
    cell = make_cell(name, N, H, generator, depth=depth, dtype=torch.float64)
    hidden = tuple(0.7 * draw(generator, B, H) for _ in range(cell.parts))
    return name, depth, cell, draw(generator, B, N), hidden


def state_jacobian(cell, x, hidden):
    """(B, R, H, R, H) by autograd: each row's next state with respect to its own state."""

    def step(x, *parts):
        return torch.stack(cell(x[None], tuple(part[None] for part in parts)))[:, 0]

    rows = []
    for b in range(len(x)):
        columns = jacrev(step, argnums=tuple(range(1, 1 + len(hidden))))(x[b], *(part[b] for part in hidden))
        rows.append(torch.stack(columns, dim=2))
    return torch.stack(rows)


def parameter_jacobian(cell, x, hidden):
    """{name: (B, R, H, *shape)} by autograd."""
    parameters = {name: value.detach() for name, value in cell.named_parameters()}

    def step(parameters):
        return torch.stack(functional_call(cell, parameters, (x, hidden)), dim=1)

    return jacrev(step)(parameters)


def test_the_linearised_step_equals_the_step_of_the_cell(case):
    _, _, cell, x, hidden = case
    new, _ = linearise(cell, x, hidden)
    for ours, theirs in zip(new, cell(x, hidden), strict=True):
        torch.testing.assert_close(ours, theirs.detach(), rtol=0, atol=1e-14)


def test_the_transition_is_the_jacobian_with_respect_to_the_state(case):
    _, _, cell, x, hidden = case
    _, linear = linearise(cell, x, hidden)
    dense, carry = linear.transition()
    expected = state_jacobian(cell, x, hidden)
    torch.testing.assert_close(dense, expected[:, :, :, 0], rtol=0, atol=1e-13)
    assert (carry is None) == (cell.parts == 1)
    if carry is not None:
        torch.testing.assert_close(torch.diag_embed(carry), expected[:, :, :, 1], rtol=0, atol=1e-13)


def test_pushing_a_tangent_multiplies_by_the_jacobian(case):
    _, _, cell, x, hidden = case
    _, linear = linearise(cell, x, hidden)
    tangent = draw(torch.Generator().manual_seed(1), B, cell.parts, H)
    expected = torch.einsum("briqj,bqj->bri", state_jacobian(cell, x, hidden), tangent)
    torch.testing.assert_close(linear.push(tangent), expected, rtol=0, atol=1e-13)


def test_pulling_an_adjoint_back_gives_the_gradient_of_every_parameter(case):
    _, _, cell, x, hidden = case
    _, linear = linearise(cell, x, hidden)
    adjoint = draw(torch.Generator().manual_seed(2), B, cell.parts, H)
    pulled = linear.pull(adjoint)
    gradients = unpack(cell, [a.T @ group.vector for a, group in zip(pulled, linear.groups, strict=True)])
    expected = parameter_jacobian(cell, x, hidden)
    assert gradients.keys() == expected.keys()
    for name, jacobian in expected.items():
        by_autograd = torch.einsum("brh,brh...->...", adjoint, jacobian)
        torch.testing.assert_close(gradients[name], by_autograd, rtol=0, atol=1e-13)


def test_the_kronecker_product_of_sensitivity_and_vector_is_the_jacobian_of_every_parameter(case):
    _, _, cell, x, hidden = case
    _, linear = linearise(cell, x, hidden)
    products = [
        torch.einsum("brhq,bm->brhqm", linear.sensitivity(k), group.vector) for k, group in enumerate(linear.groups)
    ]
    expected = parameter_jacobian(cell, x, hidden)
    for b in range(B):
        for r in range(cell.parts):
            for h in range(H):
                for name, gradient in unpack(cell, [product[b, r, h] for product in products]).items():
                    torch.testing.assert_close(gradient, expected[name][b, r, h], rtol=0, atol=1e-13)


def test_the_shapes_of_the_groups_are_known_before_there_is_a_cell(case):
    name, depth, cell, x, hidden = case
    _, linear = linearise(cell, x, hidden)
    shapes = [(linear.sensitivity(k).shape[3], group.vector.shape[1]) for k, group in enumerate(linear.groups)]
    assert shapes == group_shapes(name, N, H, depth)


def test_diagonal_groups_are_marked(case):
    _, _, cell, x, hidden = case
    _, linear = linearise(cell, x, hidden)
    for k in range(len(linear.groups)):
        written_out = torch.diag_embed(linear.slopes(k), dim1=2, dim2=4).flatten(3)
        assert linear.is_diagonal(k) == torch.equal(written_out, linear.sensitivity(k))
    assert linear.is_diagonal(len(linear.groups) - 1)
