"""The filtered softmax and the ranks, against the whole matrix of scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from strata_core.evaluation.ranking import filtered_ranks
from strata_core.objectives.link_prediction import EntityScores, filtered_cross_entropy, realistic_ranks

N_ENTITIES = 12


def make_case(seed: int) -> tuple[EntityScores, np.ndarray, np.ndarray, list[np.ndarray]]:
    """Scores with ties, some entities listed; with the whole matrix, the answers and all right answers."""
    generator = np.random.default_rng(seed)
    n_queries, unlisted = 7, float(generator.integers(-1, 2))
    listed = generator.random((n_queries, N_ENTITIES)) < 0.6
    matrix = np.where(listed, generator.integers(-2, 3, (n_queries, N_ENTITIES)), unlisted).astype(np.float32)
    right = generator.random((n_queries, N_ENTITIES)) < 0.3
    answers = generator.integers(0, N_ENTITIES, n_queries)
    right[np.arange(n_queries), answers] = True
    queries, entities = np.nonzero(listed)
    pairs = np.full(listed.shape, -1)
    pairs[queries, entities] = np.arange(len(queries))
    scores = EntityScores(
        torch.from_numpy(matrix[queries, entities]),
        torch.from_numpy(queries),
        torch.from_numpy(~right[queries, entities]),
        torch.tensor(unlisted),
        torch.from_numpy((~listed & ~right).sum(axis=1).astype(np.float32)),
        torch.from_numpy(pairs[np.arange(n_queries), answers]),
    )
    return scores, matrix, answers, [np.flatnonzero(row) for row in right]


@pytest.mark.parametrize("seed", range(8))
def test_ranks_are_those_of_the_whole_matrix(seed):
    scores, matrix, answers, right = make_case(seed)
    np.testing.assert_array_equal(realistic_ranks(scores).numpy(), filtered_ranks(matrix, answers, right))


@pytest.mark.parametrize("seed", range(4))
def test_the_loss_is_the_softmax_among_the_answer_and_all_wrong_entities(seed):
    scores, matrix, answers, right = make_case(seed)
    expected = []
    for row, answer, known in zip(matrix.tolist(), answers.tolist(), right, strict=True):
        rivals = [math.exp(score) for entity, score in enumerate(row) if entity not in known]
        expected.append(math.log(sum(rivals) + math.exp(row[answer])) - row[answer])

    np.testing.assert_allclose(filtered_cross_entropy(scores).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_a_query_without_wrong_entities_has_no_loss_and_rank_one():
    scores = EntityScores(
        torch.tensor([0.5, -3.0]),
        torch.tensor([0, 0]),
        torch.tensor([False, False]),
        torch.tensor(9.0),
        torch.tensor([0.0]),
        torch.tensor([1]),
    )
    assert filtered_cross_entropy(scores).tolist() == [0.0]
    assert realistic_ranks(scores).tolist() == [1.0]
