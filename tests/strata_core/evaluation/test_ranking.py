"""Filtered, realistic ranks by hand and by sorting all orders."""

from __future__ import annotations

import numpy as np
import pytest

from strata_core.evaluation.ranking import filtered_ranks, hits_at, mean_reciprocal_rank, realistic_ranks
from tests.strata_core.objectives.entity_scores import make_case, without_wrong_entities


def test_other_right_answers_do_not_stand_in_the_way():
    scores = np.array([[0.9, 0.8, 0.7, 0.1]])
    assert filtered_ranks(scores, np.array([2]), [np.array([2])]).tolist() == [3]
    assert filtered_ranks(scores, np.array([2]), [np.array([0, 2])]).tolist() == [2]


def test_ties_are_averaged():
    # One above; the answer ties with two others: ranks 2, 3 or 4.
    assert filtered_ranks(np.array([[5.0, 1, 1, 1, 0]]), np.array([2]), [np.array([], dtype=int)]).tolist() == [3]
    # Everything alike: the middle of ten.
    assert filtered_ranks(np.zeros((1, 10)), np.array([0]), [np.array([0])]).tolist() == [5.5]


def test_a_loop_over_random_tie_breaks_has_the_same_mean():
    generator = np.random.default_rng(0)
    scores = generator.integers(0, 4, size=(20, 12)).astype(float)
    answers = generator.integers(0, 12, size=20)
    known = [np.unique(np.append(generator.integers(0, 12, size=3), answer)) for answer in answers]
    found = filtered_ranks(scores, answers, known)
    for query in range(20):
        candidates = [c for c in range(12) if c == answers[query] or c not in known[query]]
        best = 1 + sum(scores[query, c] > scores[query, answers[query]] for c in candidates)
        worst = sum(scores[query, c] >= scores[query, answers[query]] for c in candidates)
        assert found[query] == (best + worst) / 2


def test_forbidden_candidates_rank_last():
    assert filtered_ranks(np.array([[-np.inf, 0.0, -np.inf]]), np.array([1]), [np.array([1])]).tolist() == [1]


def test_a_score_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="NaN"):
        filtered_ranks(np.array([[np.nan, 0.0]]), np.array([1]), [np.array([1])])


def test_reciprocal_rank_and_hits():
    ranks = np.array([1, 2, 4, 1.5])
    assert mean_reciprocal_rank(ranks) == pytest.approx((1 + 1 / 2 + 1 / 4 + 2 / 3) / 4)
    assert (hits_at(ranks, 1), hits_at(ranks, 2), hits_at(ranks, 10)) == (0.25, 0.75, 1.0)


@pytest.mark.parametrize("seed", range(8))
def test_ranks_are_those_of_the_whole_matrix(seed):
    scores, matrix, answers, right = make_case(seed)
    np.testing.assert_array_equal(realistic_ranks(scores).numpy(), filtered_ranks(matrix, answers, right))


def test_a_query_without_wrong_entities_has_rank_one():
    assert realistic_ranks(without_wrong_entities()).tolist() == [1.0]
