"""From the structure heads' scores to what the scorers compare: trees, labels, predicates, roles.

Shapes: B batch, W words, D model width, C classes, K roles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from strata_core.evaluation.trees import decode_tree
from strata_core.models.structure_heads import StructureHeads


class DecodedTree(NamedTuple):
    """int64 [words] each: heads, words being numbered from 1 and the root 0, and relations."""

    heads: np.ndarray
    relations: np.ndarray


@torch.no_grad()
def decode_trees(
    heads: StructureHeads, states_BWD: Tensor, real_BW: Tensor, *, root_relation: int | None = None
) -> list[DecodedTree]:
    """The best tree with one root of each sentence, and the best relation of each of its arcs.

    Args:
        heads: the model's heads.
        states_BWD: float.
        real_BW: bool, True for the words of a sentence, which come before its padding.
        root_relation: number of the relation that the root's arc has, and no other; None: any arc may have any.
    """
    scores_BWH = heads.arcs(states_BWD, real_BW).cpu().double().numpy()
    lengths = _lengths(real_BW)
    trees_BW = np.zeros(real_BW.shape, dtype=np.int64)
    for row, length in enumerate(lengths):
        trees_BW[row, :length] = decode_tree(scores_BWH[row, :length, : length + 1])
    scores_BWR = heads.relations(states_BWD, torch.from_numpy(trees_BW).to(states_BWD.device))
    if root_relation is not None:
        is_root_BW = torch.from_numpy(trees_BW == 0).to(scores_BWR.device)
        scores_BWR[..., root_relation] = torch.where(is_root_BW, torch.inf, -torch.inf).to(scores_BWR)
    relations = decode_classes(scores_BWR, real_BW)
    return [DecodedTree(trees_BW[row, :length], relations[row]) for row, length in enumerate(lengths)]


@torch.no_grad()
def decode_classes(scores_BWC: Tensor, real_BW: Tensor) -> list[np.ndarray]:
    """The best class of each word, int64 [words] for each sentence."""
    classes_BW = scores_BWC.argmax(dim=-1).cpu().numpy()
    return [classes_BW[row, :length] for row, length in enumerate(_lengths(real_BW))]


@torch.no_grad()
def decode_predicates(log_odds_BW: Tensor, real_BW: Tensor) -> list[np.ndarray]:
    """The words that are predicates more likely than not, numbered from 1, int64, for each sentence."""
    predicted_BW = ((log_odds_BW > 0) & real_BW).cpu().numpy()
    return [np.flatnonzero(row) + 1 for row in predicted_BW]


@torch.no_grad()
def decode_roles(
    heads: StructureHeads, states_BWD: Tensor, real_BW: Tensor, predicates: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """The best class of every (predicate, word) pair, int64 [predicates, words] for each sentence.

    Args:
        heads: the model's heads.
        states_BWD: float.
        real_BW: bool.
        predicates: of each sentence, gold or decoded, words numbered from 1.
    """
    places = [(row, word - 1) for row, words in enumerate(predicates) for word in words.tolist()]
    predicates_P2 = torch.tensor(places, dtype=torch.int64, device=states_BWD.device).reshape(-1, 2)
    classes_PW = heads.roles(states_BWD, predicates_P2).argmax(dim=-1).cpu().numpy()
    cuts = np.cumsum([len(words) for words in predicates])[:-1]
    parts = np.split(classes_PW, cuts)
    return [part[:, :length] for part, length in zip(parts, _lengths(real_BW), strict=True)]


def _lengths(real_BW: Tensor) -> list[int]:
    return real_BW.sum(dim=1).tolist()
