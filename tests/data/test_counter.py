"""Random numbers by address: against published vectors and a plain implementation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_bouncing import philox

from ptncn.data.sequences import permutation, random_words, stream_key, to_below, to_unit


def test_words_are_the_published_ones_of_philox4x32_10():
    """The known answers that come with Random123."""
    zeros = random_words(0, np.array(0), 0)
    assert [f"{word:08x}" for word in zeros] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]


def test_the_plain_implementation_gives_all_published_answers():
    ones = [0xFFFFFFFF] * 4
    pi = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]
    assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox(ones, ones[:2]) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    assert philox(pi, [0xA4093822, 0x299F31D0]) == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


@given(key=st.integers(0, 2**64 - 1), index=st.integers(0, 2**64 - 1), block=st.integers(0, 2**32 - 1))
def test_words_equal_the_plain_implementation_at_any_address(key, index, block):
    expected = philox([index & 0xFFFFFFFF, index >> 32, block, 0], [key & 0xFFFFFFFF, key >> 32])
    assert random_words(key, np.array(index, np.uint64), np.array(block)).tolist() == expected


def test_the_words_of_an_address_do_not_depend_on_the_others_asked_for():
    alone = random_words(7, np.array([41]))
    among_others = random_words(7, np.array([3, 41, 10**15]))
    np.testing.assert_array_equal(alone[0], among_others[1])


def test_unit_numbers_are_uniform():
    values = to_unit(random_words(1, np.arange(25_000))).ravel()
    assert 0 < values.min() < values.max() < 1
    counts = np.histogram(values, bins=20, range=(0, 1))[0]
    assert np.abs(counts - 5_000).max() < 5 * np.sqrt(5_000)


def test_integers_cover_the_whole_range():
    values = to_below(random_words(1, np.arange(1_000)).ravel(), 7)
    assert set(values) == set(range(7))
    assert to_below(np.array([0, 2**32 - 1], np.uint64), 60_000).tolist() == [0, 59_999]


def test_permutations_hold_every_number_once_and_differ_by_seed_and_label():
    orders = [tuple(permutation(seed, label, 100)) for seed in (0, 1) for label in ("a", "b")]
    assert all(sorted(order) == list(range(100)) for order in orders)
    assert len(set(orders)) == 4


@pytest.mark.parametrize("seed", [-1, 1.5, "0", True, None])
def test_a_seed_that_is_not_an_integer_is_refused(seed):
    with pytest.raises(ValueError, match="seed: expected an integer"):
        stream_key(seed, "x")
