"""Simple detectors from the literature, for comparison; each scores a row from the values up to it."""

from __future__ import annotations

import numpy as np
from scipy.special import erfc

BEYOND = 0.05
"""A value is new if it is outside the range of all earlier values by more than this share of the range."""
WARM, CERTAIN = 50, 1000.0
"""Number of rows at the start without bursts, and the score of a value outside the range."""
AGAIN = 0.9965
"""After such a score, `neighbours` pauses for a fifth of the probation."""


def running(y: np.ndarray, window: int) -> tuple[np.ndarray, np.ndarray]:
    """(T,) mean and standard deviation of at most `window` rows before each row; 0 before the first."""
    y = y - y[0]
    sums, squares = (np.concatenate([[0.0], np.cumsum(each)]) for each in (y, y * y))
    t = np.arange(len(y))
    first = np.maximum(t - window, 0)
    count = np.maximum(t - first, 1)
    mean = (sums[t] - sums[first]) / count
    spread = np.sqrt(np.maximum((squares[t] - squares[first]) / count - mean * mean, 0))
    return mean, spread


def gaussian(y: np.ndarray, window: int = 6400) -> np.ndarray:
    """(T,) one minus the probability, under a normal distribution, of being farther from the mean of the last rows."""
    mean, spread = running(y, window)
    off = np.abs(y - y[0] - mean) / np.where(spread > 0, spread, 1e-6)
    return 1 - 0.5 * erfc(off / np.sqrt(2))


def surprise(y: np.ndarray, memory: int = 1000, cap: float = 5.0) -> np.ndarray:
    """(T,) the change since the last row, relative to the usual change, at most `cap`."""
    change = np.abs(np.diff(y, prepend=y[0]))
    usual, scores = 0.0, np.zeros(len(y))
    for t, size in enumerate(change.tolist()):
        if usual > 0:
            scores[t] = min(size / usual, cap)
        usual += max(1 / (t + 1), 1 / memory) * ((min(size, cap * usual) if usual > 0 else size) - usual)
    return scores


def rank(y: np.ndarray, window: int = 1000) -> np.ndarray:
    """(T,) the share of recent errors of copying that were smaller."""
    change = np.abs(np.diff(y, prepend=y[0]))
    ranks = np.zeros(len(y))
    for t in range(1, len(y)):
        recent = change[max(0, t - window) : t]
        ranks[t] = (recent < change[t]).sum() / (len(recent) + 1)
    return ranks


def burst(y: np.ndarray, short: int = 10, long: int = 8000) -> np.ndarray:
    """(T,) how far the mean surprise of a short window is above that of a long one, in its standard deviations.

    Lavin, Ahmad: Evaluating real-time anomaly detection algorithms. ICMLA 2015 (the anomaly likelihood).
    """
    sums = np.concatenate([[0.0], np.cumsum(surprise(y))])
    t = np.arange(len(y))
    begin = np.maximum(t + 1 - short, 0)
    mean = (sums[t + 1] - sums[begin]) / (t + 1 - begin)
    usual, spread = running(mean, long)
    off = (mean - mean[0] - usual) / np.maximum(spread, 0.01)
    return np.where(t < WARM, 0.0, np.maximum(off, 0.0))


def first(scores: np.ndarray, hold: int = 30) -> np.ndarray:
    """(T,) the score where it exceeds the last peak, which decays after `hold` rows; else 0."""
    first_scores, bar, left = np.zeros(len(scores)), 0.0, 0
    for t, score in enumerate(scores.tolist()):
        left -= 1
        if left < 0:
            bar *= 0.9
        if score > 1.1 * bar:
            first_scores[t] = score
        if score >= bar:
            bar, left = score, hold
    return first_scores


def first_of_burst(y: np.ndarray) -> np.ndarray:
    return first(burst(y))


def outside(y: np.ndarray) -> np.ndarray:
    """(T,) 1 where a value leaves the range of all earlier values by more than 5 %."""
    most, least = np.maximum.accumulate(y), np.minimum.accumulate(y)
    off = np.maximum(y[1:] - most[:-1], least[:-1] - y[1:])
    return np.append(0.0, (off > BEYOND * (most - least)[:-1]) & (most > least)[:-1])


def burst_or_range(y: np.ndarray) -> np.ndarray:
    return np.where(outside(y) > 0, CERTAIN, burst(y))


def first_of_burst_or_range(y: np.ndarray) -> np.ndarray:
    return first(burst_or_range(y))


def vote(y: np.ndarray) -> np.ndarray:
    """(T,) the share of simple rules that flag a row, as in Skyline."""
    far = []
    for window in (12, 288, 6400):
        mean, spread = running(y, window)
        far.append(np.abs(y - y[0] - mean) > 3 * spread)
    change = np.abs(np.diff(y, prepend=y[0]))
    mean, spread = running(change, 6400)
    far.append(change - change[0] - mean > 3 * spread)
    slow, quick = (follow(y, rate) for rate in (0.02, 0.2))
    off, usual = np.abs(y - slow), follow(np.abs(y - slow), 0.005)
    far += [off > 3 * usual, np.abs(quick - slow) > 2 * usual]
    return np.mean(far, 0)


def follow(y: np.ndarray, rate: float) -> np.ndarray:
    """(T,) an exponential mean of the earlier rows."""
    means, mean = np.zeros(len(y)), float(y[0])
    for t, value in enumerate(y.tolist()):
        means[t] = mean
        mean += rate * (value - mean)
    return means


def kernel_mean(y: np.ndarray, features: int = 200, rate: float = 0.01) -> np.ndarray:
    """(T,) the distance between a value and the mean of earlier ones in random Fourier features.

    Schneider, Ertel, Ramos: Expected similarity estimation for large-scale batch and streaming anomaly detection.
    Machine Learning 105, 2016 (EXPoSE).
    """
    draw = np.random.default_rng(0)
    z = (y - y[:100].mean()) / (y[: max(100, len(y) // 7)].std() or 1.0)
    angle = z[:, None] * draw.normal(size=features) * 2 + draw.uniform(0, 2 * np.pi, features)
    maps, mean, scores = np.sqrt(2 / features) * np.cos(angle), np.zeros(features), np.zeros(len(y))
    for t in range(len(y)):
        scores[t] = 1 - maps[t] @ mean
        mean += max(rate, 1 / (t + 1)) * (maps[t] - mean)
    return scores


def neighbours(y: np.ndarray, width: int = 19, near: int = 27) -> np.ndarray:
    """(T,) the share of recent windows closer than this one to their neighbours in the first part of the probation.

    Burnaev, Ishimtsev: Conformalized density- and distance-based anomaly detection in time-series data. 2016 (KNN-CAD).
    """
    begin = int(min(0.15 * len(y), 750))
    windows = np.lib.stride_tricks.sliding_window_view((y - y.mean()) / (y.std() or 1.0), width)
    known, half = windows[: begin - width], (begin - width) // 2
    inverse = np.linalg.pinv(np.cov(known[:half].T))
    squares = np.einsum("ij,jk,ik->i", windows, inverse, windows)
    distances = squares[:, None] + squares[None, :half] - 2 * windows @ inverse @ known[:half].T
    each = np.partition(distances, near, axis=1)[:, :near].sum(1)
    scores, left = np.zeros(len(y)), 0
    for t in range(begin, len(y)):
        now, left = t - width + 1, left - 1
        scores[t] = (each[now - half : now] < each[now]).mean() if left < 0 else 0.5
        if scores[t] > AGAIN:
            left = begin // 5
    return scores
