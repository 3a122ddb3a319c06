"""F1 of predicates and roles on hand-made examples."""

from __future__ import annotations

import numpy as np
import pytest

from strata_core.evaluation.roles import MatchCounts, RoleTriple, count_matches, triples_of_cells

NONE, ARG0, ARG1, TMP = 0, 1, 2, 3


def test_f1_is_the_harmonic_mean_of_precision_and_recall():
    counts = MatchCounts(gold=4, predicted=6, matched=3)
    assert (counts.precision, counts.recall) == (3 / 6, 3 / 4)
    assert counts.f1 == pytest.approx(2 * 0.5 * 0.75 / (0.5 + 0.75))


def test_nothing_gold_and_nothing_predicted_is_zero_and_not_an_error():
    assert (MatchCounts().precision, MatchCounts().recall, MatchCounts().f1) == (0, 0, 0)
    assert MatchCounts(gold=3).f1 == 0 == MatchCounts(predicted=3).f1


def test_no_role_is_no_triple():
    cells = np.array([[ARG0, NONE, ARG1], [NONE, NONE, TMP]])
    assert triples_of_cells(np.array([2, 3]), cells, none_role=NONE) == {
        RoleTriple(2, ARG0, 1),
        RoleTriple(2, ARG1, 3),
        RoleTriple(3, TMP, 3),
    }


def test_micro_average_sums_before_it_divides():
    first = count_matches({RoleTriple(2, ARG0, 1), RoleTriple(2, ARG1, 3)}, {RoleTriple(2, ARG0, 1)})
    second = count_matches({RoleTriple(1, ARG1, 2)}, {RoleTriple(1, ARG1, 3), RoleTriple(1, ARG0, 2)})
    assert first + second == MatchCounts(gold=3, predicted=3, matched=1)
    assert (first + second).f1 == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "wrong", [RoleTriple(1, ARG0, 1), RoleTriple(2, ARG1, 1), RoleTriple(2, ARG0, 2)], ids=["predicate", "role", "head"]
)
def test_a_triple_is_right_only_as_a_whole(wrong):
    assert count_matches({RoleTriple(2, ARG0, 1)}, {wrong}).matched == 0


def test_missed_and_superfluous_predicates_cost_their_roles():
    gold_cells = np.array([[ARG0, NONE, NONE, NONE, NONE], [NONE, ARG1, NONE, TMP, NONE]])
    gold = triples_of_cells(np.array([2, 5]), gold_cells, none_role=NONE)
    cells = np.array([[ARG0, NONE, NONE, NONE, NONE], [NONE, ARG1, NONE, NONE, NONE]])
    predicted = triples_of_cells(np.array([2, 3]), cells, none_role=NONE)
    assert count_matches(gold, predicted) == MatchCounts(gold=3, predicted=2, matched=1)
    assert count_matches([2, 5], [2, 3]) == MatchCounts(gold=2, predicted=2, matched=1)
