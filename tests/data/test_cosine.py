"""The noisy cosine: its statistics, and the same values from any starting point."""

from itertools import islice

import numpy as np
import pytest
import torch

from ptncn.data import NoisyCosine


def test_without_noise_it_is_the_cosine():
    np.testing.assert_allclose(NoisyCosine(noise=0).values(0, 1_000), np.cos(0.05 * np.arange(1_000)), atol=1e-12)


@pytest.mark.parametrize("noise", [0.02, 0.5])
def test_the_noise_is_normal_with_the_given_standard_deviation(noise):
    deviation = (NoisyCosine(1, noise=noise).values(0, 100_000) - np.cos(0.05 * np.arange(100_000))) / noise
    assert abs(deviation.mean()) < 5 / np.sqrt(100_000)
    assert abs(deviation.var() - 1) < 5 * np.sqrt(2 / 100_000)
    for sigmas, share in ((1, 0.6827), (2, 0.9545), (3, 0.9973)):
        assert abs((np.abs(deviation) < sigmas).mean() - share) < 0.01
    assert abs(np.corrcoef(deviation[1:], deviation[:-1])[0, 1]) < 5 / np.sqrt(100_000)


def test_the_cosine_itself_scores_the_variance_of_the_noise():
    error = np.square(NoisyCosine(0).values(0, 100_000) - np.cos(0.05 * np.arange(100_000))).mean()
    assert error == pytest.approx(0.02**2, rel=0.03)


@pytest.mark.parametrize("start", [0, 1, 2, 3, 4, 997, 10**12 + 1])
@pytest.mark.parametrize("count", [0, 1, 6])
def test_values_do_not_depend_on_where_reading_starts(start, count):
    cosine = NoisyCosine(5)
    earlier = max(0, start - 3)
    np.testing.assert_array_equal(cosine.values(start, count), cosine.values(earlier, 20)[start - earlier :][:count])


def test_a_stream_resumes_bit_for_bit_with_any_chunk_size():
    cosine = NoisyCosine(2)
    whole = torch.cat([x for x, _ in islice(cosine.stream(50), 10)])
    rest = torch.cat([x for x, _ in islice(cosine.stream(33, start=101), 5)])
    assert whole.shape == (500, 1, 1)
    assert whole.dtype == torch.float32
    assert torch.equal(whole[101 : 101 + 165], rest)


def test_seeds_give_other_noise_and_another_hash():
    assert (NoisyCosine(0).values(0, 50) != NoisyCosine(1).values(0, 50)).all()
    hashes = {
        NoisyCosine(0).sha256,
        NoisyCosine(1).sha256,
        NoisyCosine(0, noise=0.1).sha256,
        NoisyCosine(0, step=1).sha256,
    }
    assert len(hashes) == 4
    assert NoisyCosine(0).sha256 in hashes


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="noise"):
        NoisyCosine(noise=-1)
    with pytest.raises(ValueError, match="seed"):
        NoisyCosine(-1)
    for options in ({"chunk": 0}, {"start": -1}):
        with pytest.raises(ValueError, match="expected an integer"):
            NoisyCosine().stream(**options)
