"""Biaffine scores of pairs (Dozat and Manning 2017, "Deep Biaffine Attention for Neural Dependency Parsing").

Shapes: B batch, I first and J second members, E width, N pairs, C classes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Biaffine(nn.Module):
    """[first; 1]' W_c [second; 1] for each class c: a bilinear term, a linear one for each member, and a bias."""

    def __init__(self, width: int, n_classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n_classes, width + 1, width + 1))

    def all_pairs(self, first_BIE: Tensor, second_BJE: Tensor) -> Tensor:
        """Scores of every pair, float [B, C, I, J]."""
        return torch.einsum("bie,cef,bjf->bcij", _with_one(first_BIE), self.weight, _with_one(second_BJE))

    def pairs(self, first_NE: Tensor, second_NE: Tensor) -> Tensor:
        """Scores of the n-th first with the n-th second, float [N, C]."""
        return torch.einsum("ne,cef,nf->nc", _with_one(first_NE), self.weight, _with_one(second_NE))


def _with_one(vectors: Tensor) -> Tensor:
    return F.pad(vectors, (0, 1), value=1.0)
