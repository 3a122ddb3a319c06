"""Made-up scores of entities, listed and not."""

from __future__ import annotations

import numpy as np
import torch

from strata_core.objectives.link_prediction import EntityScores

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


def without_wrong_entities() -> EntityScores:
    """One query that every entity answers."""
    return EntityScores(
        torch.tensor([0.5, -3.0]),
        torch.tensor([0, 0]),
        torch.tensor([False, False]),
        torch.tensor(9.0),
        torch.tensor([0.0]),
        torch.tensor([1]),
    )
