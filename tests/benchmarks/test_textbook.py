"""The direct implementation and the network give the same numbers."""

import pytest
import torch

from ptncn.network import PTNCN
from speed.textbook import Textbook

GENERATOR = torch.Generator().manual_seed(3)


@pytest.mark.parametrize("error_rule", ["fixed", "transpose", "temporal"])
@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("hidden_sizes", [[7], [6, 5], [6, 5, 4]])
@pytest.mark.usefixtures("either_path")
def test_predictions_and_weights_equal_the_networks(error_rule: str, batch_size: int, hidden_sizes: list[int]) -> None:
    network = PTNCN(8, hidden_sizes, error_rule=error_rule, dtype="float64", lr=0.05, max_norm=0.2)
    textbook = Textbook(network.synapses(), batch_size, error_rule=error_rule, lr=0.05, max_norm=0.2)
    state = network.begin(batch_size)
    for x in torch.rand(60, batch_size, 8, generator=GENERATOR, dtype=torch.float64):
        expected = network.step(x, state).prediction
        torch.testing.assert_close(textbook.step(x), expected, rtol=0, atol=1e-10)
    for name, weight in network.synapses().items():
        torch.testing.assert_close(textbook.weights[name], weight, rtol=0, atol=1e-10)


def test_max_norm_was_active() -> None:
    """Otherwise the comparison does not cover max-norm."""
    textbook = Textbook(PTNCN(8, [6, 5], dtype="float64").synapses(), 4, lr=0.05, max_norm=0.2)
    for x in torch.rand(60, 4, 8, generator=GENERATOR, dtype=torch.float64):
        textbook.step(x)
    longest = max(
        float(torch.linalg.vector_norm(w, dim=0).max()) for name, w in textbook.weights.items() if name[0].isupper()
    )
    assert longest == pytest.approx(0.2)


def test_frozen_weights_do_not_change() -> None:
    network = PTNCN(8, [6, 5], dtype="float64")
    textbook = Textbook(network.synapses(), 2)
    for x in torch.rand(5, 2, 8, generator=GENERATOR, dtype=torch.float64):
        textbook.step(x, learn=False)
    for name, weight in network.synapses().items():
        assert torch.equal(textbook.weights[name], weight)
