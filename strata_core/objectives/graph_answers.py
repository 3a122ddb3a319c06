"""Losses of the graph reasoner on what it answers, and how sure it is. All are sums, float32 scalars.

Status and number are classes, see `structure.class_loss`. Shapes: M nodes, B examples, A answers, Q pairs.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from strata_core.models.graphs.segments import segment_logsumexp, sum_rows


def answer_loss(
    scores_M: Tensor, node_examples_M: Tensor, answers_A: Tensor, answer_examples_A: Tensor, n_examples: int
) -> Tensor:
    """Cross-entropy of a softmax over each example's nodes against all its answers alike, summed over examples.

    Args:
        scores_M: float.
        node_examples_M: int64, whose each node is, 0 to B - 1.
        answers_A: int64, nodes.
        answer_examples_A: int64, whose each answer is; an example without answers adds nothing.
        n_examples: B.
    """
    scores_M = scores_M.float()
    totals = segment_logsumexp(scores_M, node_examples_M, n_examples)
    surprise_A = totals.index_select(0, answer_examples_A) - scores_M.index_select(0, answers_A)
    ones_A = torch.ones_like(surprise_A)
    n_answers = sum_rows(ones_A, answer_examples_A, n_examples).index_select(0, answer_examples_A)
    return (surprise_A / n_answers).sum()


def verification_loss(support_B: Tensor, supported_B: Tensor, known_B: Tensor) -> Tensor:
    """Binary cross-entropy of support scores, log-odds, over examples of known status (bool)."""
    losses_B = F.binary_cross_entropy_with_logits(support_B.float(), supported_B.float(), reduction="none")
    return (losses_B * known_B).sum()


def pair_margin_loss(support_B: Tensor, pairs_Q2: Tensor, margin: float) -> Tensor:
    """max(0, margin - (support of the supported twin - support of the example that lacks an edge)), summed.

    Args:
        support_B: float, scores.
        pairs_Q2: int64, the example and its supported twin.
        margin: how far apart they have to be.
    """
    lacking_Q, supported_Q = support_B.float().index_select(0, pairs_Q2.flatten()).reshape(-1, 2).unbind(1)
    return torch.relu(margin - (supported_Q - lacking_Q)).sum()


def confidence_loss(confidence_B: Tensor, quality_B: Tensor, asked_B: Tensor) -> Tensor:
    """Binary cross-entropy of confidences, log-odds, against the set-F1 of the selection, which takes no gradient.

    Args:
        confidence_B: float, log-odds.
        quality_B: float in [0, 1].
        asked_B: bool, False for examples without a query.
    """
    losses_B = F.binary_cross_entropy_with_logits(confidence_B.float(), quality_B.detach().float(), reduction="none")
    return (losses_B * asked_B).sum()
