"""What a selection of paths is worth.

Shapes: P paths, B examples.
"""

from __future__ import annotations

import torch
from torch import Tensor

from strata_core.models.graphs.segments import sum_rows


@torch.no_grad()
def selection_f1(selected_P: Tensor, supports_P: Tensor, path_examples_P: Tensor, wanted_B: Tensor) -> Tensor:
    """Set-F1 of each example's selected paths, float [B]; 1 where nothing is selected and nothing was wanted.

    Args:
        selected_P, supports_P: bool.
        path_examples_P: int64.
        wanted_B: int64, how many supporting paths there are, among the candidates or not.
    """
    n_examples = wanted_B.shape[0]
    right_B = sum_rows((selected_P & supports_P).float(), path_examples_P, n_examples)
    selected_B = sum_rows(selected_P.float(), path_examples_P, n_examples)
    both_B = selected_B + wanted_B
    return torch.where(both_B > 0, 2 * right_B / both_B.clamp(min=1), 1.0)
