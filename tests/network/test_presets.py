"""The presets `paper` and `authors` still give the numbers of the first version.

That version ran in PyTorch, without small displacements, memories and least squares.
"""

import pytest
import torch

from ptncn import PTNCN

NUMBERS = {
    ("paper", "gaussian"): (86.76878203089183, 3.595503837044003, 1.8476116605426445),
    ("paper", "bernoulli"): (163.631958041143, 4.509531320670148, 0.3787961074302573),
    ("paper", "categorical"): (90.74932286551318, 0.5049997284243882, 0.5422413703326564),
    ("authors", "gaussian"): (118.48310195362347, 2.3116339924942144, 12.329482855706777),
    ("authors", "bernoulli"): (163.54385754658534, 4.521861643158727, 1.087114871732624),
    ("authors", "categorical"): (90.83771307813403, 0.5001613641337889, 0.8368882463411469),
}
"""Squared error over 40 steps, and the squared norms of the last prediction and of all weights."""


def observation(output: str, rng: torch.Generator) -> torch.Tensor:
    x = torch.rand(3, 6, generator=rng, dtype=torch.float64)
    if output == "categorical":
        return torch.eye(6, dtype=torch.float64)[x.argmax(1)]
    return (x > 0.5).double() if output == "bernoulli" else x


@pytest.mark.usefixtures("either_path")
@pytest.mark.parametrize(("preset", "output"), NUMBERS)
def test_a_preset_gives_the_same_numbers_as_before(preset: str, output: str) -> None:
    net = PTNCN(6, [5, 4], output=output, preset=preset, seed=3, dtype="float64")
    state, rng, error = net.begin(3), torch.Generator().manual_seed(0), 0.0
    for t in range(40):
        x = observation(output, rng)
        out = net.step(x, state, mask=torch.tensor([True, True, t % 5 != 4]))
        error += float((out.prediction - x).square()[out.scored].sum())
    weights = sum(float(weight.detach().square().sum()) for weight in net.parameters())
    result = error, float(net.predict(state).square().sum()), weights
    assert result == pytest.approx(NUMBERS[preset, output], rel=1e-11)
