"""Augmentation replaces edges by what training proves, and by nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from strata_core.tasks.relation_prediction.composition_augmentation import (
    augmentation_draws,
    lengthened,
    proven_equalities,
)

MOTHER, BROTHER, UNCLE, FATHER = range(4)
RELATION_OF_TARGET = {0: MOTHER, 1: UNCLE}
"""Target 2 is called as no relation is."""


def test_a_two_hop_path_with_one_target_is_proven():
    examples = [([(MOTHER, BROTHER)], 1), ([(MOTHER, BROTHER)], 1), ([(BROTHER, MOTHER)], 0), ([(FATHER, BROTHER)], 1)]
    assert proven_equalities(examples, RELATION_OF_TARGET) == {
        UNCLE: [(MOTHER, BROTHER), (FATHER, BROTHER)],
        MOTHER: [(BROTHER, MOTHER)],
    }


@pytest.mark.parametrize(
    "examples",
    [
        [([(MOTHER, BROTHER)], 1), ([(MOTHER, BROTHER)], 0)],
        [([(MOTHER, BROTHER)], 2)],
        [([(MOTHER, BROTHER, BROTHER)], 1)],
        [([(MOTHER, BROTHER), (UNCLE,)], 1)],
        [([], 1)],
    ],
    ids=["two targets", "no relation of that name", "three hops", "two paths", "no path"],
)
def test_nothing_else_proves_anything(examples):
    assert proven_equalities(examples, RELATION_OF_TARGET) == {}


EQUALITIES = {UNCLE: [(MOTHER, BROTHER), (FATHER, BROTHER)], MOTHER: [(BROTHER, MOTHER)]}


def reduces_to(path: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether replacing proven pairs by what they are equal to can give `wanted`; tries every order."""
    if path == wanted:
        return True
    return any(
        reduces_to((*path[:place], relation, *path[place + 2 :]), wanted)
        for place in range(len(path) - 1)
        for relation, pairs in EQUALITIES.items()
        if path[place : place + 2] in pairs
    )


def test_what_is_put_in_reduces_to_what_was_there():
    lengths = set()
    for row in augmentation_draws(seed=1, step=0, positions=range(200), max_replacements=3):
        path = lengthened((UNCLE, FATHER, MOTHER), EQUALITIES, row)
        assert reduces_to(path, (UNCLE, FATHER, MOTHER))
        lengths.add(len(path))
    assert lengths == {3, 4, 5, 6}


def test_a_path_without_anything_proven_stays():
    assert lengthened((FATHER, BROTHER), EQUALITIES, np.array([0.99, 0.5, 0.5])) == (FATHER, BROTHER)


def test_the_longest_has_every_replacement():
    assert len(lengthened((UNCLE,), EQUALITIES, np.zeros(9), longest=True)) == 5
    assert lengthened((UNCLE,), EQUALITIES, np.zeros(9)) == (UNCLE,)


def test_draws_are_a_function_of_seed_and_step():
    draws = augmentation_draws(1, 5, range(8), 2)
    assert draws.shape == (8, 5)
    assert np.array_equal(draws, augmentation_draws(1, 5, range(8), 2))
    assert not np.array_equal(draws, augmentation_draws(1, 6, range(8), 2))
    assert not np.array_equal(draws, augmentation_draws(2, 5, range(8), 2))
