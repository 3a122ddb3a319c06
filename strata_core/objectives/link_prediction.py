"""Which entity answers a query: a filtered softmax over all entities.

Entities that the model's messages did not reach share one score and are not listed, so their number costs nothing.
Filtered (Bordes et al. 2013): other right answers of a query count neither for nor against it.

Shapes: B queries, P pairs of a query and a listed entity.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from strata_core.models.graphs.segments import segment_logsumexp

_LEAST = -1e4


@dataclass(frozen=True)
class EntityScores:
    """The scores of all entities for each query.

    Attributes:
        scores_P: float, of the listed entities.
        queries_P: int64, the query of each pair.
        is_rival_P: bool, whether the entity is no right answer of the query.
        unlisted: float scalar, the score of every entity that is not listed.
        n_unlisted_B: float32, how many of each query's unlisted entities are no right answer.
        targets_B: int64, the pair of the answer in question; -1: it is not listed.
    """

    scores_P: Tensor
    queries_P: Tensor
    is_rival_P: Tensor
    unlisted: Tensor
    n_unlisted_B: Tensor
    targets_B: Tensor

    def of_targets(self) -> Tensor:
        """The score of each query's answer, float [B]."""
        with_unlisted = torch.cat([self.scores_P, self.unlisted.reshape(1)])
        n_listed = self.scores_P.shape[0]
        return with_unlisted.index_select(0, torch.where(self.targets_B < 0, n_listed, self.targets_B))


def filtered_cross_entropy(entities: EntityScores) -> Tensor:
    """-log softmax of each query's answer, among itself and all entities that are no right answer; float [B], nats."""
    rivals_P = entities.scores_P.masked_fill(~entities.is_rival_P, _LEAST)
    n_queries = entities.targets_B.shape[0]
    listed_B = segment_logsumexp(rivals_P, entities.queries_P, n_queries, least=_LEAST)
    n_unlisted_B = entities.n_unlisted_B
    unlisted_B = torch.where(n_unlisted_B > 0, n_unlisted_B.clamp(min=1).log() + entities.unlisted, _LEAST)
    right_B = entities.of_targets()
    return torch.stack([listed_B, unlisted_B, right_B]).logsumexp(dim=0) - right_B
