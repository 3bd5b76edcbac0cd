"""Paired tests between two learners, and the spread of one learner over trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats


@dataclass(frozen=True)
class Summary:
    """The same number over several trials."""

    mean: float
    sd: float
    """Sample standard deviation (n − 1); NaN for a single trial."""
    trials: int

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.sd:.2f}" if self.trials > 1 else f"{self.mean:.2f}"


def summarise(values: Sequence[float]) -> Summary:
    """
    >>> print(summarise([1.0, 2.0, 3.0]))
    2.00 ± 1.00
    """
    if not values:
        raise ValueError("values: expected at least one trial, got none")
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
    return Summary(float(np.mean(values)), sd, len(values))


@dataclass(frozen=True)
class Comparison:
    """Two learners compared by their errors on the same sequences, or in the same trials."""

    pairs: int
    difference: float
    """Mean of ours − theirs: negative if ours is better."""
    low: float
    high: float
    """The 95 % confidence interval of the mean difference, by Student's t."""
    p_t: float
    """p value of the paired t test."""
    p_wilcoxon: float
    """p value of Wilcoxon's signed rank test, which assumes no distribution."""

    @property
    def beyond_chance(self) -> bool:
        """Whether both tests reject chance at 0.05."""
        return max(self.p_t, self.p_wilcoxon) < 0.05


def compare(ours: ArrayLike, theirs: ArrayLike) -> Comparison:
    """Paired tests over errors; entry i of both belongs to the same sequence or trial.

    >>> compare([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [1.5, 2.6, 3.4, 4.5, 5.6, 6.4, 7.5]).beyond_chance
    True
    """
    first, second = np.asarray(ours, float), np.asarray(theirs, float)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"errors: expected two lists of one length, got shapes {first.shape} and {second.shape}")
    scored = np.isfinite(first) & np.isfinite(second)  # a text of one symbol has no error: nothing came before it
    first, second = first[scored], second[scored]
    if len(first) < 2:
        raise ValueError(f"errors: expected at least 2 pairs, got {len(first)}")
    gap = first - second
    mean = float(gap.mean())
    if np.ptp(gap) == 0.0:  # no spread, so no test: the same difference everywhere
        p = 1.0 if mean == 0.0 else 0.0
        return Comparison(len(gap), mean, mean, mean, p, p)
    t_test = stats.ttest_rel(first, second)
    interval = t_test.confidence_interval(0.95)
    wilcoxon = stats.wilcoxon(first, second, method=_wilcoxon_method(gap))
    return Comparison(
        len(gap), mean, float(interval.low), float(interval.high), float(t_test.pvalue), float(wilcoxon.pvalue)
    )


def _wilcoxon_method(gap: np.ndarray[Any, Any]) -> str:
    """Exact only for few pairs without ties and zeros."""
    return "exact" if len(gap) <= 25 and len(np.unique(np.abs(gap))) == len(gap) and gap.all() else "approx"
