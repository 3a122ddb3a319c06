"""What the paths of an example say together.

Shapes: P paths, V bracketings of each, K classes, B examples.
"""

from __future__ import annotations

import torch
from torch import Tensor

from strata_core.models.graphs.segments import sum_rows


def vote(scores_PVK: Tensor, path_examples_P: Tensor, path_weights_P: Tensor, n_examples: int) -> Tensor:
    """Probabilities of an example's classes: the mean over its paths and their bracketings.

    Args:
        scores_PVK: float [P, V, K], logits.
        path_examples_P: int64 [P].
        path_weights_P: float32 [P]; those of an example sum to 1.
        n_examples: B.

    Returns:
        float32 [B, K].
    """
    probabilities_PK = torch.softmax(scores_PVK.float(), dim=-1).mean(dim=1) * path_weights_P[:, None]
    return sum_rows(probabilities_PK, path_examples_P, n_examples)
