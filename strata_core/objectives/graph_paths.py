"""Losses of the graph reasoner on paths. All are sums, float32 scalars.

Shapes: P paths, B examples, I items, C edges to choose from, M nodes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from strata_core.models.graphs.segments import segment_logsumexp

_NONE = -1e4
"""Stands for the score of nothing; its exp is 0."""


def path_selection_loss(
    scores_P: Tensor, supports_P: Tensor, real_P: Tensor, path_examples_P: Tensor, n_examples: int
) -> Tensor:
    """The adaptive-thresholding loss of Zhou et al. (2021), summed over examples.

    Each supporting path is told from the threshold class among the supporting ones and the threshold, and the threshold
    from all others: -sum over supporting p of log softmax(p | supporting, threshold) - log softmax(threshold | others,
    threshold).

    Args:
        scores_P: float, above the score of the threshold class, which is 0 thereby.
        supports_P, real_P: bool.
        path_examples_P: int64.
        n_examples: B.
    """
    scores_P = scores_P.float()
    positive_P = supports_P & real_P
    zeros_B = scores_P.new_zeros(n_examples)
    among_positive_B = torch.logaddexp(
        segment_logsumexp(torch.where(positive_P, scores_P, _NONE), path_examples_P, n_examples), zeros_B
    )
    among_others_B = torch.logaddexp(
        segment_logsumexp(torch.where(real_P & ~supports_P, scores_P, _NONE), path_examples_P, n_examples), zeros_B
    )
    surprise_P = among_positive_B.index_select(0, path_examples_P) - scores_P
    return torch.where(positive_P, surprise_P, 0.0).sum() + among_others_B.sum()


def path_alignment_loss(
    cosines_P: Tensor,
    supports_P: Tensor,
    real_P: Tensor,
    path_examples_P: Tensor,
    n_examples: int,
    *,
    temperature: float = 0.1,
) -> Tensor:
    """InfoNCE (van den Oord et al. 2018) of each supporting path against the others of its query, summed over paths.

    Args:
        cosines_P: float, of each path with its query.
        supports_P, real_P: bool.
        path_examples_P: int64.
        n_examples: B.
        temperature: cosines are divided by it.
    """
    scores_P = cosines_P.float() / temperature
    positive_P = supports_P & real_P
    others_P = torch.where(real_P & ~supports_P, scores_P, _NONE)
    others_B = segment_logsumexp(others_P, path_examples_P, n_examples)
    losses_P = F.softplus(others_B.index_select(0, path_examples_P) - scores_P)
    return torch.where(positive_P, losses_P, 0.0).sum()


def next_hop_loss(scores_C: Tensor, items_C: Tensor, supports_C: Tensor, n_items: int) -> Tensor:
    """-log of what a softmax over the edges that leave a node gives those on supporting paths, summed over items.

    Args:
        scores_C: float.
        items_C: int64, the item each edge is for.
        supports_C: bool; one at least in each item.
        n_items: I.
    """
    scores_C = scores_C.float()
    all_I = segment_logsumexp(scores_C, items_C, n_items)
    right_I = segment_logsumexp(torch.where(supports_C, scores_C, _NONE), items_C, n_items)
    return (all_I - right_I).sum()


def node_loss(scores_M: Tensor, supports_M: Tensor) -> Tensor:
    """Binary cross-entropy of log-odds of lying on a supporting path, summed over nodes."""
    return F.binary_cross_entropy_with_logits(scores_M.float(), supports_M.float(), reduction="sum")


def link_loss(scores_L: Tensor, exists_L: Tensor) -> Tensor:
    """Binary cross-entropy of log-odds of being linked, summed over pairs."""
    return F.binary_cross_entropy_with_logits(scores_L.float(), exists_L.float(), reduction="sum")


def relation_loss(scores_JR: Tensor, relations_J: Tensor) -> Tensor:
    """Cross-entropy of relations, summed over edges."""
    return F.cross_entropy(scores_JR.float(), relations_J, reduction="sum")
