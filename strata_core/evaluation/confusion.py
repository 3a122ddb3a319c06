"""Which class is taken for which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Confusion(NamedTuple):
    """`times` items of class `gold` were called `predicted`."""

    gold: str
    predicted: str
    times: int


def confusion_matrix(gold: np.ndarray, predicted: np.ndarray, *, n_classes: int) -> np.ndarray:
    """Counts pairs of classes.

    Args:
        gold: int [N] in [-1, n_classes); -1, not annotated, is left out.
        predicted: int [N] in [0, n_classes).
        n_classes: number of classes.

    Returns:
        int64 [n_classes, n_classes]; rows are gold, columns predicted.
    """
    annotated = np.asarray(gold) >= 0
    pairs = np.asarray(gold)[annotated].astype(np.int64) * n_classes + np.asarray(predicted)[annotated]
    return np.bincount(pairs, minlength=n_classes * n_classes).reshape(n_classes, n_classes)


def largest_confusions(matrix: np.ndarray, names: Sequence[str], *, most: int) -> list[Confusion]:
    """The most frequent mistakes, in falling order of their counts, then by gold and predicted class."""
    mistakes = matrix.copy()
    np.fill_diagonal(mistakes, 0)
    order = np.argsort(-mistakes, axis=None, kind="stable")[:most]
    cells = (divmod(int(place), len(names)) for place in order)
    return [Confusion(names[g], names[p], int(mistakes[g, p])) for g, p in cells if mistakes[g, p]]
