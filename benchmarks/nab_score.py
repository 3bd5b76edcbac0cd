"""Score detectors as in the Numenta Anomaly Benchmark: early detections in labelled windows are rewarded, false alarms
penalised, with one threshold for all files.

Lavin, Ahmad: Evaluating real-time anomaly detection algorithms. ICMLA 2015; its standard profile.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FALSE_ALARM, MISS = 0.11, 1.0
PROBATION, LONGEST_PROBATION = 0.15, 750
"""The start of a file that is not scored: at most this share of it, and at most this many rows."""


@dataclass(frozen=True)
class File:
    name: str
    values: np.ndarray
    """(T,)"""
    windows: list[tuple[int, int]]
    """First and last row around each anomaly."""
    seconds: np.ndarray | None = None
    """(T,) the time of each row."""


def probation(rows: int) -> int:
    return int(min(PROBATION * rows, LONGEST_PROBATION))


def sigmoid(position: np.ndarray | float) -> np.ndarray:
    """The weight of a detection by relative position: 1 well before the end of a window, 0 at its end, then −1."""
    return 2 / (1 + np.exp(np.clip(5 * np.asarray(position, dtype=float), -60, 60))) - 1


def points(file: File, scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """The points of a file at each of the ascending thresholds, at most the number of its windows."""
    rows, begin = len(file.values), probation(len(file.values))
    outside, weight = np.ones(rows, dtype=bool), np.full(rows, -1.0)
    total = np.zeros(len(thresholds))
    for i, (first, last) in enumerate(file.windows):
        length = last - first + 1
        outside[first : last + 1] = False
        until = file.windows[i + 1][0] if i + 1 < len(file.windows) else rows
        weight[last + 1 : until] = sigmoid(np.arange(1, until - last) / max(length - 1, 1))
        inside = np.where(np.arange(first, last + 1) < begin, -np.inf, scores[first : last + 1])
        earliest = np.searchsorted(np.maximum.accumulate(inside), thresholds, side="left")
        credit = sigmoid((earliest - length) / length) / sigmoid(-1.0)
        total += np.where(earliest < length, credit, -MISS)
    outside[:begin] = False
    order = np.argsort(-scores[outside], kind="stable")
    costs = np.concatenate([[0.0], np.cumsum(weight[outside][order])])
    alarms = np.searchsorted(-scores[outside][order], -thresholds, side="right")
    return total + FALSE_ALARM * costs[alarms]


def table(files: list[File], scores: list[np.ndarray], candidates: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """(F, K) the points of each file at each threshold, and the (K,) thresholds."""
    counted = np.concatenate([each[probation(len(each)) :] for each in scores])
    ranks = np.quantile(counted, 1 - np.logspace(-6, -0.5, candidates))
    thresholds = np.unique(np.append(ranks, counted.max() + 1))
    return np.stack([points(*pair, thresholds) for pair in zip(files, scores, strict=True)]), thresholds


def normal(worth: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """(K,) the score at each threshold: 0 for a silent detector, 100 for a perfect one."""
    return 100 * (worth.sum(0) + MISS * windows.sum()) / ((1 + MISS) * windows.sum())


def evaluate(files: list[File], scores: list[np.ndarray], candidates: int = 200) -> tuple[float, float]:
    """The best score over all files with one common threshold, and that threshold."""
    worth, thresholds = table(files, scores, candidates)
    normalised = normal(worth, np.array([len(file.windows) for file in files]))
    best = int(np.argmax(normalised))
    return float(normalised[best]), float(thresholds[best])


def evaluate_drawn(
    files: list[File], scores: list[np.ndarray], draw: np.random.Generator, times: int = 200
) -> np.ndarray:
    """(times,) the best scores on files drawn with replacement (bootstrap)."""
    worth, _ = table(files, scores)
    windows = np.array([len(file.windows) for file in files])
    which = draw.integers(len(files), size=(times, len(files)))
    return np.array([normal(worth[rows], windows[rows]).max() for rows in which])
