"""Find the seasons of a series by how well the value a season ago predicts it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

DIP = (0.8, 1.2)
"""A season's mean square difference is at most this share of the largest at shorter lags: a − b / cycles seen."""
NEAR = 1.35
"""Of seasons whose differences are within this factor of the least, the shortest is taken."""
CLIP = 5.0


def differences(series: NDArray[np.float64], longest: int) -> NDArray[np.float64]:
    """(longest + 1,) the mean of (x_t − x_{t−m})² for each lag m, by the fast Fourier transform."""
    n = len(series)
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(series, size)
    products = np.fft.irfft(spectrum * spectrum.conj(), size)[: longest + 1]
    squares = np.concatenate([[0.0], np.cumsum(series * series)])
    lags = np.arange(longest + 1)
    means: NDArray[np.float64] = (squares[n] - squares[lags] + squares[n - lags] - 2 * products) / (n - lags)
    return means


def find_seasons(series: NDArray[np.float64], known: Sequence[int] = ()) -> tuple[int, int]:
    """Up to two seasons of a series, the better first; 0 for none. Those already known are kept if they are as good.

    A season is a lag at which the series comes back to itself: the mean square difference has a local minimum, well
    below what it was at shorter lags. The first is the best of these, the second the best of at most half its length.

    >>> find_seasons(np.sin(2 * np.pi * np.arange(400) / 24))
    (24, 0)
    """
    n = len(series)
    longest = n // 2 - 1
    if longest < 4:
        return 0, 0
    t = np.arange(n) - (n - 1) / 2
    x = series - series.mean()
    x = x - t * ((t @ x) / (t @ t))
    spread = 1.4826 * float(np.median(np.abs(x - np.median(x)))) or float(x.std())
    if spread <= 1e-12 * float(np.abs(series).max(initial=0.0)):
        return 0, 0
    found = differences(np.clip(x / spread, -CLIP, CLIP), longest + 1)
    before = np.maximum.accumulate(found)
    m = np.arange(2, longest + 1)
    dips = m[
        (found[m] <= found[m - 1]) & (found[m] <= found[m + 1]) & (found[m] < (DIP[0] - DIP[1] * m / n) * before[m])
    ]
    first = _best(dips, found, known)
    return first, _best(dips[2 * dips <= first], found, known)


def _best(lags: NDArray[np.int64], found: NDArray[np.float64], known: Sequence[int]) -> int:
    if not len(lags):
        return 0
    good = NEAR * found[lags].min() + 1e-12
    kept = [m for m in known if lags[0] <= m <= lags[-1] and found[m] <= good]
    return kept[0] if kept else int(lags[found[lags] <= good][0])
