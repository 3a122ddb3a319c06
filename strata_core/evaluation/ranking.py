"""Ranks of right answers among all candidates, filtered and realistic.

Filtered (Bordes et al. 2013): other right answers of the same query do not stand above the one that is ranked.
Realistic (Berrendorf et al. 2020): among candidates of equal score the rank is the mean over all their orders, so
that a model that scores everything alike gets the middle and not the top.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def filtered_ranks(scores: np.ndarray, answers: np.ndarray, known_answers: Sequence[np.ndarray]) -> np.ndarray:
    """The rank of one answer of each query.

    Args:
        scores: float [Q, C], higher is better; -inf is allowed.
        answers: int [Q], the candidate to be ranked.
        known_answers: for each query the int array of all candidates that are right in any split; may contain the
            answer.

    Returns:
        float64 [Q], from 1; halves where scores tie.

    Raises:
        ValueError: a score is NaN, which no rank can be made of.
    """
    if np.isnan(scores).any():
        raise ValueError(f"the scores of {np.count_nonzero(np.isnan(scores).any(axis=1))} queries have NaN in them")
    rows = np.arange(len(scores))
    wanted = scores[rows, answers][:, None]
    rival = np.ones(scores.shape, dtype=bool)
    for row, known in enumerate(known_answers):
        rival[row, known] = False
    rival[rows, answers] = False
    above = np.count_nonzero(rival & (scores > wanted), axis=1)
    level = np.count_nonzero(rival & (scores == wanted), axis=1)
    return 1.0 + above + level / 2


def mean_reciprocal_rank(ranks: np.ndarray) -> float:
    """Mean of 1 / rank."""
    return float(np.mean(1.0 / np.asarray(ranks, dtype=np.float64)))


def hits_at(ranks: np.ndarray, k: int) -> float:
    """Share of ranks that are k or better."""
    return float(np.mean(np.asarray(ranks) <= k))
