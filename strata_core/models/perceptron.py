"""The two-layer perceptron of the graph reasoner's heads."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Perceptron(nn.Module):
    """W2 relu(W1 dropout(x) + b1) + b2."""

    def __init__(self, d_in: int, d_hidden: int, d_out: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.inner = nn.Linear(d_in, d_hidden)
        self.outer = nn.Linear(d_hidden, d_out)

    def initial_stds(self) -> dict[str, float]:
        """Keeps variances (He et al. 2015 for the inner layer)."""
        return {
            "inner.weight": (2 / self.inner.in_features) ** 0.5,
            "outer.weight": self.outer.in_features**-0.5,
        }

    def forward(self, inputs: Tensor) -> Tensor:
        """float [..., d_in] to float [..., d_out]."""
        return self.outer(torch.relu(self.inner(self.dropout(inputs))))
