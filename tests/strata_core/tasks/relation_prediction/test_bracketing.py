"""Trees laid out by level, against bracketings written out one by one."""

from __future__ import annotations

import numpy as np
import pytest

from strata_core.tasks.relation_prediction.bracketing import TreeLevels, lay_out_trees


def bracketing(items: list[str], priorities: list[float]) -> str:
    """Merges neighbours in ascending order of priority, on lists, one at a time."""
    items, priorities = list(items), list(priorities[: len(items) - 1])
    while priorities:
        gap = priorities.index(min(priorities))
        items[gap : gap + 2] = [f"({items[gap]}{items[gap + 1]})"]
        del priorities[gap]
    return items[0]


def read_back(levels: TreeLevels, leaves: list[str]) -> list[str]:
    nodes = list(leaves)
    for pairs in levels.pairs_LW2:
        nodes += [f"({nodes[left]}{nodes[right]})" for left, right in pairs]
    return [nodes[root] for root in levels.roots_T]


@pytest.mark.parametrize("seed", range(30))
def test_trees_are_those_of_merging_one_by_one(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 8, size=int(rng.integers(1, 6)))
    first = np.cumsum(lengths) - lengths
    leaves = [chr(97 + number) for number in range(lengths.sum())]
    priorities = rng.random((len(lengths), 9))
    levels = lay_out_trees(first, lengths, priorities, len(leaves))
    expected = [
        bracketing(leaves[start : start + length], row.tolist())
        for start, length, row in zip(first, lengths, priorities, strict=True)
    ]
    assert read_back(levels, leaves) == expected


def test_trees_may_share_leaves_and_equal_priorities_merge_from_the_left():
    levels = lay_out_trees(np.array([0, 0]), np.array([4, 4]), np.array([[0.0, 0, 0], [3.0, 2, 1]]), 4)
    assert read_back(levels, list("abcd")) == ["(((ab)c)d)", "(a(b(cd)))"]


def test_a_single_relation_is_its_own_tree():
    levels = lay_out_trees(np.array([0, 1]), np.array([1, 1]), np.zeros((2, 0)), 2)
    assert levels.pairs_LW2.shape == (0, 0, 2)
    assert levels.roots_T.tolist() == [0, 1]


def test_there_are_as_many_levels_as_the_deepest_tree_has():
    balanced = lay_out_trees(np.array([0]), np.array([4]), np.array([[0.0, 2, 1]]), 4)
    assert balanced.pairs_LW2.tolist() == [[[0, 1], [2, 3]], [[4, 5], [0, 0]]]
    assert balanced.roots_T.tolist() == [6]
