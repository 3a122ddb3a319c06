"""Losses of composing relations along paths.

Shapes: P paths, V bracketings of each, D width, K classes, B examples.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def composition_loss(scores_PVK: Tensor, targets_B: Tensor, path_examples_P: Tensor, path_weights_P: Tensor) -> Tensor:
    """Cross-entropy of each bracketing of each path, averaged over both and summed over the examples.

    Args:
        scores_PVK: float [P, V, K], logits.
        targets_B: int64 [B].
        path_examples_P: int64 [P], the example of each path.
        path_weights_P: float32 [P]; those of an example sum to 1.

    Returns:
        float32 scalar, nats.
    """
    log_probabilities_PVK = F.log_softmax(scores_PVK.float(), dim=-1)
    index_PV1 = targets_B[path_examples_P][:, None, None].expand(-1, scores_PVK.shape[1], 1)
    nats_P = -log_probabilities_PVK.gather(2, index_PV1).mean(dim=(1, 2))
    return (nats_P * path_weights_P).sum()


def associativity_loss(states_PVD: Tensor, path_weights_P: Tensor) -> Tensor:
    """How far bracketings of one path lie apart: half the mean squared distance of two, summed over examples.

    That is the unbiased variance over bracketings, averaged over the width; for two bracketings x and y it is
    mean((x - y)^2) / 2. It is zero where composition is associative.

    Args:
        states_PVD: float [P, V, D], V at least 2.
        path_weights_P: float32 [P]; those of an example sum to 1.
    """
    variance_P = states_PVD.float().var(dim=1).mean(dim=-1)
    return (variance_P * path_weights_P).sum()


def closure_loss(states_PVD: Tensor, named_PD: Tensor, path_weights_P: Tensor) -> Tensor:
    """How far a composed path lies from the relation that bears its label's name: mean squared distance, summed.

    Relations being closed under composition, the composed path may stand wherever that relation may.

    Args:
        states_PVD: float [P, V, D].
        named_PD: float [P, D].
        path_weights_P: float32 [P]; those of an example sum to 1.
    """
    distances_P = (states_PVD.float() - named_PD.float()[:, None]).square().mean(dim=(1, 2))
    return (distances_P * path_weights_P).sum()
