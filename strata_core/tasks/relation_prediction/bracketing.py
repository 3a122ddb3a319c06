"""Bracketings of sequences as binary trees, laid out so that a model evaluates all trees of a batch level by level.

Shapes: T trees, G gaps between neighbours, L levels, W nodes of the widest level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TreeLevels:
    """Trees over leaves 0 .. n_leaves - 1; inner node w of level l is number n_leaves + l W + w.

    Attributes:
        pairs_LW2: int64 [L, W, 2], the two children of each inner node; a row that is no node has (0, 0).
        roots_T: int64 [T], the node that each tree ends in.
    """

    pairs_LW2: np.ndarray
    roots_T: np.ndarray


def lay_out_trees(
    first_leaves_T: np.ndarray, lengths_T: np.ndarray, priorities_TG: np.ndarray, n_leaves: int
) -> TreeLevels:
    """The trees that come of merging neighbours in ascending order of the priority of the gap between them.

    Args:
        first_leaves_T: int [T], number of each tree's first leaf; its others follow. Trees may share leaves.
        lengths_T: int [T], leaves of each tree, at least 1.
        priorities_TG: float [T, G], G at least the longest length less one; finite, of equal ones the left is first.
        n_leaves: leaves of all trees.
    """
    n_trees, n_merges = len(lengths_T), int(lengths_T.max(initial=1)) - 1
    positions = np.arange(n_merges + 1)
    nodes = np.where(positions < lengths_T[:, None], positions, -1)
    waiting = np.where(positions[1:] < lengths_T[:, None], priorities_TG[:, :n_merges], np.inf)
    heights = np.zeros((n_trees, 2 * n_merges + 1), dtype=np.int64)
    children = np.zeros((n_trees, n_merges, 2), dtype=np.int64)
    for merge in range(n_merges):
        rows = np.flatnonzero(lengths_T - 1 > merge)
        gaps = waiting[rows].argmin(axis=1)
        pairs = np.stack([nodes[rows, gaps], nodes[rows, gaps + 1]], axis=1)
        inside = (nodes[rows, None, :] == pairs[:, :, None]).any(axis=1)
        nodes[rows] = np.where(inside, n_merges + 1 + merge, nodes[rows])
        waiting[rows, gaps] = np.inf
        children[rows, merge] = pairs
        heights[rows, n_merges + 1 + merge] = 1 + heights[rows[:, None], pairs].max(axis=1)
    numbers = np.concatenate([first_leaves_T[:, None] + positions, np.zeros_like(heights[:, n_merges + 1 :])], axis=1)
    return _by_level(numbers, heights[:, n_merges + 1 :], children, nodes[:, 0], n_leaves)


def _by_level(
    numbers: np.ndarray, heights: np.ndarray, children: np.ndarray, tops_T: np.ndarray, n_leaves: int
) -> TreeLevels:
    """Numbers the merges of all trees by height, from 1, and writes the children of each in those numbers."""
    trees, merges = np.nonzero(heights)
    levels = heights[trees, merges] - 1
    widths = np.bincount(levels)
    widest = int(widths.max(initial=0))
    order = np.argsort(levels, kind="stable")
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order)) - np.repeat(np.cumsum(widths) - widths, widths)
    numbers[trees, numbers.shape[1] - heights.shape[1] + merges] = n_leaves + levels * widest + ranks
    pairs = np.zeros((len(widths), widest, 2), dtype=np.int64)
    pairs[levels, ranks] = numbers[trees[:, None], children[trees, merges]]
    return TreeLevels(pairs, numbers[np.arange(len(tops_T)), tops_T])
