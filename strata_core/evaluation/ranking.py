"""Ranks of right answers among all candidates, filtered and realistic.

Filtered (Bordes et al. 2013): other right answers of the same query do not stand above the one that is ranked.
Realistic (Berrendorf et al. 2020): among candidates of equal score the rank is the mean over all their orders, so
that a model that scores everything alike gets the middle and not the top.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from strata_core.models.graphs.segments import sum_rows
from strata_core.objectives.link_prediction import EntityScores


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


def realistic_ranks(entities: EntityScores) -> Tensor:
    """The filtered rank of each query's answer, float32 [B], from 1; the mean over the orders of equal scores.

    The same as `filtered_ranks` over the whole matrix of scores, of which only the listed entities are there.
    """
    right_B = entities.of_targets()
    right_P = right_B.index_select(0, entities.queries_P)
    above_P = (entities.scores_P > right_P) & entities.is_rival_P
    level_P = (entities.scores_P == right_P) & entities.is_rival_P
    points_P = above_P.float() + 0.5 * level_P.float()
    listed_B = sum_rows(points_P, entities.queries_P, right_B.shape[0])
    unlisted_B = (entities.unlisted > right_B).float() + 0.5 * (entities.unlisted == right_B).float()
    return 1 + listed_B + unlisted_B * entities.n_unlisted_B


def mean_reciprocal_rank(ranks: np.ndarray) -> float:
    """Mean of 1 / rank."""
    return float(np.mean(1.0 / np.asarray(ranks, dtype=np.float64)))


def hits_at(ranks: np.ndarray, k: int) -> float:
    """Share of ranks that are k or better."""
    return float(np.mean(np.asarray(ranks) <= k))
