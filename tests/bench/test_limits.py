"""The limits do the work that they stand for."""

import pytest
import torch

from ptncn.bench.contestants import ALL, LIMITS, limit_of, make_contestant
from ptncn.bench.limits import Products, Read, matrix_rate
from ptncn.bench.shapes import SHAPES, Shape
from ptncn.network import PTNCN

TINY = Shape.parse("6-3x5@2")


@pytest.mark.parametrize("text", ["6-3x5@2", "4-1x3@1"])
def test_a_shape_counts_the_weights_of_the_network(text: str) -> None:
    shape = Shape.parse(text)
    network = PTNCN(shape.inputs, shape.sizes[1:], biases=False)
    assert sum(weight.numel() for weight in network.parameters()) == shape.all_weights


@pytest.mark.parametrize("text", ["", "4096", "4096-3x1000", "0-3x10@1", "4096-3x1000@0", "4096-3x1000@-1"])
def test_a_shape_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="would be right"):
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
    used = sum(weight.numel() for _, weight, _ in products.sent)
    assert used == TINY.all_weights
    assert sum(weight.numel() for _, weight, _ in products.learnt) == sum(TINY.weights[name] for name in learn)
    assert learn != "RW" or 2 * TINY.batch * (used + TINY.weights["R"] + TINY.weights["W"]) == TINY.flops(learn=True)


def test_products_are_products() -> None:
    products = Products(TINY, "RW")
    x, weight, out = products.sent[0]
    before = weight.clone()
    products.run(1)
    torch.testing.assert_close(out, x @ before)
    assert not torch.equal(weight, before)


def test_every_way_to_read_is_tried_and_the_fastest_taken() -> None:
    read = Read(5_003)
    assert set(read.ms) == set(read.ways)
    assert read.ms[read.way] == min(read.ms.values())
    for way in read.ways.values():
        way()


def test_searching_reads_to_the_end() -> None:
    """`memchr` that found something would stop."""
    read = Read(1_000)
    if "memchr, threads" not in read.ways:
        pytest.skip("no memchr in this C library")
    assert not read.buffer.view(torch.uint8).eq(1).any()


def test_every_contestant_has_a_limit_that_is_a_contestant() -> None:
    for shape in SHAPES:
        assert {limit_of(what, shape) for what in ALL} <= {*LIMITS, "read"}
        assert limit_of("ptncn-eval", shape) == "products-eval"
    assert limit_of("ptncn-sgd", SHAPES[0]) == "products"
    assert limit_of("ptncn-sgd", SHAPES[1]) == "read"
    assert limit_of("ptncn-sgd-transpose", SHAPES[2]) == "products-learnt-e"


@pytest.mark.parametrize("what", ALL)
def test_every_contestant_takes_steps(what: str) -> None:
    contestant = make_contestant(what, TINY)
    contestant.run(contestant.unit)
    assert contestant.what == what


def test_what_does_not_fit_says_so() -> None:
    with pytest.raises(MemoryError, match="RTRL"):
        make_contestant("lstm-rtrl", SHAPES[0])


def test_the_roof_is_a_rate() -> None:
    assert matrix_rate(50) > 0
