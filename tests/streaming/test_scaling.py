"""Scaling: location 0 and scale 1 for ordinary values, regardless of outliers."""

import numpy as np
import pytest

from ptncn.streaming import RobustScaler


def fitted(values, **options):
    scaler = RobustScaler(values.shape[1], **options)
    for row in values:
        scaler.update(row)
    return scaler


@pytest.fixture
def normal():
    return np.random.default_rng(0).standard_normal((4000, 3)) * [1e-6, 1.0, 1e6] + [0.0, -5.0, 1e8]


def test_it_finds_mean_and_deviation_of_normal_values(normal):
    scaler = fitted(normal)
    np.testing.assert_allclose(scaler.scale, [1e-6, 1.0, 1e6], rtol=0.05)
    np.testing.assert_allclose(scaler.mean, [0.0, -5.0, 1e8], atol=0.1 * scaler.scale.max())


def test_inverse_undoes_transform(normal):
    scaler = fitted(normal[:100])
    np.testing.assert_allclose(scaler.inverse(scaler.transform(normal[200])), normal[200])


def test_one_outlier_in_a_hundred_changes_little(normal):
    with_outliers = normal.copy()
    with_outliers[50::100] *= 1e9
    np.testing.assert_allclose(fitted(with_outliers).scale, fitted(normal).scale, rtol=0.5)


def test_a_lasting_shift_is_followed_within_40_values(normal):
    scaler, shifted = fitted(normal), normal + np.array([1.0, 1e6, 1e12])
    for row in shifted[:40]:
        scaler.update(row)
    assert np.abs([scaler.transform(row) for row in shifted[50:250]]).mean() < 3


def test_a_constant_column_that_begins_to_move_is_followed():
    values = np.concatenate([np.full((300, 1), 7.0), 7 + np.random.default_rng(0).standard_normal((400, 1))])
    scaler = fitted(values)
    assert 0.3 < scaler.scale[0] < 3


def test_missing_values_change_nothing(normal):
    gaps = normal.copy()
    gaps[::2, 1] = np.nan
    scaler, whole = fitted(gaps), fitted(normal[1::2])
    assert scaler.mean[1] == whole.mean[1]
    assert scaler.scale[1] == whole.scale[1]


def test_unscaled_columns_stay_as_they_are(normal):
    scaler = fitted(normal, unscaled=np.array([False, True, False]))
    assert (scaler.mean[1], scaler.scale[1]) == (0.0, 1.0)


@pytest.mark.parametrize("at", [1, 10, 32, 33, 100, 600])
def test_a_saved_scaler_continues_bit_for_bit(normal, at):
    normal[300:340] *= 1e4
    normal[50::7, 2] = np.nan
    scaler = RobustScaler(3, memory=500)
    for row in normal[:at]:
        scaler.update(row)
    other = RobustScaler(3, memory=500)
    other.load_tree(scaler.tree())
    for row in normal[at : at + 700]:
        scaler.update(row)
        other.update(row)
    np.testing.assert_array_equal(other.mean, scaler.mean)
    np.testing.assert_array_equal(other.scale, scaler.scale)


def test_a_bad_memory_is_rejected():
    with pytest.raises(ValueError, match="at least 32 values"):
        RobustScaler(1, memory=3)
