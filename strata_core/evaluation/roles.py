"""F1 of predicates and of their roles, micro-averaged over labelled (predicate, role, head) triples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class RoleTriple(NamedTuple):
    """The word `head` fills `role` of the predicate at word `predicate`; words numbered from 1."""

    predicate: int
    role: int
    head: int


@dataclass(frozen=True, slots=True)
class MatchCounts:
    """How many items there are, how many were predicted and how many of these are right; sentences add up with `+`."""

    gold: int = 0
    predicted: int = 0
    matched: int = 0

    def __add__(self, other: MatchCounts) -> MatchCounts:
        return MatchCounts(self.gold + other.gold, self.predicted + other.predicted, self.matched + other.matched)

    @property
    def precision(self) -> float:
        """Share of the predicted that is right; 0 where nothing is predicted."""
        return self.matched / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the gold that is found; 0 where there is none."""
        return self.matched / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, 2 matched / (gold + predicted); 0 where both are empty."""
        total = self.gold + self.predicted
        return 2 * self.matched / total if total else 0.0


def count_matches(gold: Iterable[object], predicted: Iterable[object]) -> MatchCounts:
    """Counts one sentence's items (predicate words, or RoleTriples) as sets."""
    gold_set, predicted_set = set(gold), set(predicted)
    return MatchCounts(len(gold_set), len(predicted_set), len(gold_set & predicted_set))


def triples_of_cells(predicates: np.ndarray, roles: np.ndarray, *, none_role: int) -> set[RoleTriple]:
    """The triples that a labelling of all (predicate, word) pairs stands for; pairs without a role are none.

    With gold predicates in `predicates` the score is that of roles alone; with predicted ones a missed predicate misses
    its roles, and one too many has all of its roles wrong.

    Args:
        predicates: int [P], the words that are predicates, numbered from 1.
        roles: int [P, W], the role of each word to each predicate.
        none_role: the number that says "no role".
    """
    rows, columns = np.nonzero(roles != none_role)
    return {
        RoleTriple(int(predicates[row]), int(roles[row, column]), int(column) + 1)
        for row, column in zip(rows, columns, strict=True)
    }
