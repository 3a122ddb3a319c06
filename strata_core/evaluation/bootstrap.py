"""The paired bootstrap: how far a difference between two systems on the same examples may be chance.

Efron and Tibshirani 1993, chapter 16; for system comparison Koehn 2004 and Berg-Kirkpatrick et al. 2012.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from strata_core.randomness import derive_seed

Statistic = Callable[[np.ndarray], np.ndarray]
"""Makes measures of summed counts: float [R, K] -> float [R]."""

WEIGHTS_IN_MEMORY = 2_000_000


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Second minus first.

    Attributes:
        difference: on the examples as they are.
        low, high: ends of the percentile interval.
        p_value: two-sided; twice the share of resamples on the other side of zero, ties counted, at least 1 /
            (resamples + 1).
        resamples: how many were drawn.
    """

    difference: float
    low: float
    high: float
    p_value: float
    resamples: int


def ratio(sums: np.ndarray) -> np.ndarray:
    """First column over second: accuracy of (right, total), mean of (sum, 1), loss of (loss, tokens)."""
    return sums[:, 0] / sums[:, 1]


def f1(sums: np.ndarray) -> np.ndarray:
    """F1 of the columns gold, predicted, matched (roles.MatchCounts); 0 where nothing is gold or predicted."""
    total = sums[:, 0] + sums[:, 1]
    return np.divide(2 * sums[:, 2], total, out=np.zeros_like(total), where=total > 0)


def paired_bootstrap(
    first: np.ndarray,
    second: np.ndarray,
    statistic: Statistic = ratio,
    *,
    seed: int,
    resamples: int = 10_000,
    confidence: float = 0.95,
) -> PairedDifference:
    """Draws examples with replacement, the same ones for both systems, and looks at how the difference spreads.

    Args:
        first: float [N, K], K counts of each example (sentence, document) under one system.
        second: float [N, K], the same examples in the same order under the other.
        statistic: makes the measure of counts summed over examples.
        seed: of the draws; the result is a pure function of the arguments.
        resamples: number of draws.
        confidence: share of resamples inside the interval.

    Raises:
        ValueError: the shapes differ, or there is no example.
    """
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if first.ndim != 2 or first.shape != second.shape or not len(first):
        raise ValueError(f"counts of shapes {first.shape} and {second.shape}, one [examples, counts] for both expected")
    differences = np.empty(resamples)
    generator = np.random.Generator(np.random.PCG64(derive_seed(seed, "paired bootstrap", len(first), resamples)))
    chunk = max(1, WEIGHTS_IN_MEMORY // len(first))
    for start in range(0, resamples, chunk):
        size = min(chunk, resamples - start)
        weights = generator.multinomial(len(first), np.full(len(first), 1 / len(first)), size=size)
        differences[start : start + size] = statistic(weights @ second) - statistic(weights @ first)
    outside = (1 - confidence) / 2
    low, high = np.quantile(differences, [outside, 1 - outside])
    tail = min(np.count_nonzero(differences <= 0), np.count_nonzero(differences >= 0))
    observed = statistic(second.sum(axis=0, keepdims=True)) - statistic(first.sum(axis=0, keepdims=True))
    return PairedDifference(
        difference=float(observed[0]),
        low=float(low),
        high=float(high),
        p_value=min(1.0, 2 * (int(tail) + 1) / (resamples + 1)),
        resamples=resamples,
    )
