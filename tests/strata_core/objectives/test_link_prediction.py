"""The filtered softmax, against the whole matrix of scores."""

from __future__ import annotations

import math

import numpy as np
import pytest

from strata_core.objectives.link_prediction import filtered_cross_entropy
from tests.strata_core.objectives.entity_scores import make_case, without_wrong_entities


@pytest.mark.parametrize("seed", range(4))
def test_the_loss_is_the_softmax_among_the_answer_and_all_wrong_entities(seed):
    scores, matrix, answers, right = make_case(seed)
    expected = []
    for row, answer, known in zip(matrix.tolist(), answers.tolist(), right, strict=True):
        rivals = [math.exp(score) for entity, score in enumerate(row) if entity not in known]
        expected.append(math.log(sum(rivals) + math.exp(row[answer])) - row[answer])

    np.testing.assert_allclose(filtered_cross_entropy(scores).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_a_query_without_wrong_entities_has_no_loss():
    assert filtered_cross_entropy(without_wrong_entities()).tolist() == [0.0]
