"""The kernel's matrix product equals that of PyTorch."""

from __future__ import annotations

import pytest
import torch

from ptncn import kernels


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("rows", "width", "units"), [(1, 3, 5), (7, 33, 17), (13, 700, 64)])
def test_the_product_equals_that_of_pytorch(dtype, rows, width, units):
    torch.manual_seed(0)
    x, weight = torch.randn(rows, 2 * width, dtype=dtype)[:, :width], torch.randn(width, units, dtype=dtype)
    expected = (x.double() @ weight.double()).to(dtype)
    torch.testing.assert_close(kernels.multiply(x, weight), expected, rtol=0, atol=40 * torch.finfo(dtype).eps * width)


def test_factors_that_do_not_fit_are_rejected():
    with pytest.raises(ValueError, match=r"^x: expected 4 columns, got 3$"):
        kernels.multiply(torch.ones(2, 3), torch.ones(4, 5))
