"""Whether one model is better than another beyond chance, and how much models vary between trials."""

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
    """Of the same number in several trials."""

    mean: float
    sd: float
    """With n − 1 in the denominator; NaN for a single trial."""
    trials: int

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.sd:.2f}" if self.trials > 1 else f"{self.mean:.2f}"


def summarise(values: Sequence[float]) -> Summary:
    """
    >>> print(summarise([1.0, 2.0, 3.0]))
    2.00 ± 1.00
    """
    if not values:
        raise ValueError("no trial to summarise")
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
    return Summary(float(np.mean(values)), sd, len(values))


@dataclass(frozen=True)
class Comparison:
    """Of two models by their errors on the same sequences, or in the same trials."""

    pairs: int
    difference: float
    """Mean of ours − theirs: negative where ours is better."""
    low: float
    high: float
    """Where the mean difference lies with 95 % confidence, by Student's t."""
    p_t: float
    """Of the paired t test: the chance of such a difference if there were none."""
    p_wilcoxon: float
    """Of the signed rank test, which asks nothing of how the differences are distributed."""

    @property
    def beyond_chance(self) -> bool:
        """Whether both tests say so at 0.05."""
        return max(self.p_t, self.p_wilcoxon) < 0.05


def compare(ours: ArrayLike, theirs: ArrayLike) -> Comparison:
    """Paired tests over errors; entry i of both belongs to the same sequence or trial.

    >>> compare([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [1.5, 2.6, 3.4, 4.5, 5.6, 6.4, 7.5]).beyond_chance
    True
    """
    first, second = np.asarray(ours, float), np.asarray(theirs, float)
    if first.shape != second.shape or first.ndim != 1 or len(first) < 2:
        raise ValueError(
            f"errors of shapes {first.shape} and {second.shape}; two lists of one length, at least 2, are needed"
        )
    gap = first - second
    gap = gap[np.isfinite(gap)]  # a text of one symbol has no error: nothing came before it
    if len(gap) < 2:
        raise ValueError(f"errors of {len(gap)} pairs; at least 2 are needed")
    mean, error = float(gap.mean()), float(gap.std(ddof=1)) / math.sqrt(len(gap))
    if error == 0.0:
        p = 1.0 if mean == 0.0 else 0.0
        return Comparison(len(gap), mean, mean, mean, p, p)
    reach = error * float(stats.t.ppf(0.975, len(gap) - 1))
    p_t = 2 * float(stats.t.sf(abs(mean) / error, len(gap) - 1))
    return Comparison(len(gap), mean, mean - reach, mean + reach, p_t, _signed_ranks(gap))


def _signed_ranks(gap: np.ndarray[Any, Any]) -> float:
    method = "exact" if len(gap) <= 25 and len(np.unique(np.abs(gap))) == len(gap) and gap.all() else "approx"
    return float(stats.wilcoxon(gap, method=method).pvalue)
