"""Confusions counted and ordered."""

from __future__ import annotations

import numpy as np

from strata_core.evaluation.confusion import Confusion, confusion_matrix, largest_confusions


def test_rows_are_gold_and_columns_predicted_and_what_is_not_annotated_is_left_out():
    matrix = confusion_matrix(np.array([0, 0, 1, -1, 2]), np.array([0, 1, 1, 2, 0]), n_classes=3)
    assert matrix.tolist() == [[1, 1, 0], [0, 1, 0], [1, 0, 0]]


def test_the_largest_confusions_come_first_and_hits_are_none():
    matrix = np.array([[50, 2, 0], [7, 9, 2], [0, 1, 3]])
    assert largest_confusions(matrix, ["A", "B", "C"], most=3) == [
        Confusion("B", "A", 7),
        Confusion("A", "B", 2),
        Confusion("B", "C", 2),
    ]
    assert len(largest_confusions(matrix, ["A", "B", "C"], most=99)) == 4
