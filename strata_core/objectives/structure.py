"""What supervises structure, as sums; the engine divides each by its count over the global batch.

Shapes: ... any leading axes, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from strata_core.corpus.treebanks.labels import NO_LABEL


def class_loss(scores: Tensor, labels: Tensor, class_weights: Tensor | None = None) -> Tensor:
    """The sum of -weight[label] * log softmax(scores)[label], in nats; counts each label that is not NO_LABEL.

    Serves arcs (classes are heads), relations, node types, chart items and the types of edge slots.

    Args:
        scores: float [..., C]; -inf forbids a class.
        labels: int64 [...], NO_LABEL where nothing is annotated.
        class_weights: float [C]; None: 1 each. With weights the count is the sum of the labels' weights.

    Returns:
        A float32 scalar (float64 for float64 scores).
    """
    wide = torch.promote_types(scores.dtype, torch.float32)
    return F.cross_entropy(
        scores.flatten(0, -2).to(wide),
        labels.flatten(),
        weight=None if class_weights is None else class_weights.to(wide),
        ignore_index=NO_LABEL,
        reduction="sum",
    )


def predicate_loss(log_odds: Tensor, labels: Tensor) -> Tensor:
    """The sum of binary cross-entropies, in nats; counts each word whose label is not NO_LABEL.

    Args:
        log_odds: float [...].
        labels: integers [...], 1 for a predicate, 0 for none, NO_LABEL where nobody looked.
    """
    wide = torch.promote_types(log_odds.dtype, torch.float32)
    known = (labels != NO_LABEL).to(wide)
    return F.binary_cross_entropy_with_logits(
        log_odds.to(wide), labels.clamp_min(0).to(wide), weight=known, reduction="sum"
    )


def role_loss(scores: Tensor, roles: Tensor, *, none_role: int, none_weight: float) -> Tensor:
    """`class_loss` over (predicate, word) pairs in which NONE, the most frequent class by far, weighs less.

    Args:
        scores: float [..., C].
        roles: int64 [...], NO_LABEL at padding.
        none_role: the class that says "no role".
        none_weight: its weight; the count takes each NONE pair as this much.
    """
    weights_C = torch.ones(scores.shape[-1], device=scores.device)
    weights_C[none_role] = none_weight
    return class_loss(scores, roles, weights_C)


def core_role_loss(scores: Tensor, roles: Tensor, core_roles: Sequence[int]) -> Tensor:
    """`class_loss` over the pairs whose gold role is one of `core_roles` (ARG0, ARG1); counts these."""
    is_core = torch.isin(roles, torch.tensor(core_roles, device=roles.device))
    return class_loss(scores, torch.where(is_core, roles, NO_LABEL))
