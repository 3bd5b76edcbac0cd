"""What only a mutant of the rules would get wrong: kept apart, because the mutation script asked for it."""

import pytest
import torch

from ptncn import PTNCN


@pytest.mark.parametrize("learn", [True, False])
def test_rows_that_were_not_observed_have_no_errors(learn):
    net = PTNCN(5, [4, 3], weight_std=0.5)
    state = net.begin(3)
    mask = torch.tensor([True, False, True])
    for x in torch.rand(3, 3, 5, generator=torch.Generator().manual_seed(0)):
        out = net.step(x, state, learn=learn, mask=mask)
    for e in out.errors:
        assert not e[1].any()
        assert e[[0, 2]].abs().sum(-1).all()
