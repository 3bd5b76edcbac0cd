"""The reference cases compute what their names promise."""

import pytest
import torch

from ptncn.network import PTNCN
from speed.cases import ALL, LIMITS, limit_of, make_case
from speed.limits import Products, Read, matrix_rate
from speed.shapes import SHAPES, Shape

TINY = Shape.parse("6-3x5@2")


@pytest.mark.parametrize("text", ["6-3x5@2", "4-1x3@1"])
def test_a_shape_counts_the_weights_of_the_network(text: str) -> None:
    shape = Shape.parse(text)
    network = PTNCN(shape.inputs, shape.sizes[1:], biases=False)
    assert sum(weight.numel() for weight in network.parameters()) == shape.all_weights


@pytest.mark.parametrize("text", ["", "4096", "4096-3x1000", "0-3x10@1", "4096-3x1000@0", "4096-3x1000@-1"])
def test_a_malformed_shape_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected INPUTS-LAYERSxUNITS@BATCH"):
        Shape.parse(text)


def test_the_shapes_of_the_targets_are_measured() -> None:
    assert [str(shape) for shape in SHAPES] == [
        "4096-3x1000@20",
        "4096-3x1000@1",
        "49-2x1000@50",
        "49-2x1000@1",
        "8-2x32@1",
    ]


@pytest.mark.parametrize("learn", LIMITS.values())
def test_products_use_each_weight_once_and_each_learnt_one_again(learn: str) -> None:
    products = Products(TINY, learn)
    used = sum(weight.numel() for _, weight, _ in products.forward)
    assert used == TINY.all_weights
    assert sum(weight.numel() for _, weight, _ in products.updates) == sum(TINY.weights[name] for name in learn)
    assert learn != "RW" or 2 * TINY.batch * (used + TINY.weights["R"] + TINY.weights["W"]) == TINY.flops(learn=True)


def test_products_are_products() -> None:
    products = Products(TINY, "RW")
    x, weight, out = products.forward[0]
    before = weight.clone()
    products.run(1)
    torch.testing.assert_close(out, x @ before)
    assert not torch.equal(weight, before)


def test_every_read_method_is_tried_and_the_fastest_is_used() -> None:
    read = Read(5_003)
    assert set(read.ms) == set(read.methods)
    assert read.ms[read.fastest] == min(read.ms.values())
    for method in read.methods.values():
        method()


def test_searching_reads_to_the_end() -> None:
    """`memchr` stops where it finds the byte, so the buffer must not contain it."""
    read = Read(1_000)
    if "memchr, threads" not in read.methods:
        pytest.skip("no memchr in this C library")
    assert not read.buffer.view(torch.uint8).eq(1).any()


def test_every_case_has_a_limit_that_is_a_case() -> None:
    for shape in SHAPES:
        assert {limit_of(what, shape) for what in ALL} <= {*LIMITS, "read"}
        assert limit_of("ptncn-eval", shape) == "products-eval"
    assert limit_of("ptncn-sgd", SHAPES[0]) == "products"
    assert limit_of("ptncn-sgd", SHAPES[1]) == "read"
    assert limit_of("ptncn-sgd-transpose", SHAPES[2]) == "products-learnt-e"


@pytest.mark.parametrize("what", ALL)
def test_every_case_takes_steps(what: str) -> None:
    case = make_case(what, TINY)
    case.run(case.unit)
    assert case.name == what


def test_a_learner_that_needs_too_much_memory_is_refused() -> None:
    with pytest.raises(MemoryError, match="RTRL"):
        make_case("lstm-rtrl", SHAPES[0])


def test_the_matrix_rate_is_positive() -> None:
    assert matrix_rate(50) > 0
