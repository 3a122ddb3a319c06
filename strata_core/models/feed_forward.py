"""The feed-forward layer of a block.

Shapes: B batch, L positions, D model width, F hidden width.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class FeedForward(nn.Module):
    """SwiGLU (Shazeer 2020): down(silu(gate(x)) * up(x)), no biases."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.gate = nn.Linear(d_model, d_ff, bias=False)
        self.up = nn.Linear(d_model, d_ff, bias=False)
        self.down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, states_BLD: Tensor) -> Tensor:
        """float [B, L, D] to float [B, L, D]."""
        return self.down(_GatedProduct.apply(self.gate(states_BLD), self.up(states_BLD)))


class _GatedProduct(torch.autograd.Function):
    """silu(gate) * up, keeping only its two inputs: autograd would keep silu(gate) as well."""

    @staticmethod
    def forward(ctx: Any, gate_BLF: Tensor, up_BLF: Tensor) -> Tensor:
        ctx.save_for_backward(gate_BLF, up_BLF)
        return F.silu(gate_BLF).mul_(up_BLF)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream_BLF: Tensor) -> tuple[Tensor, Tensor]:
        gate_BLF, up_BLF = ctx.saved_tensors
        gate_gradient_BLF = torch.ops.aten.silu_backward(upstream_BLF * up_BLF, gate_BLF)
        return gate_gradient_BLF, F.silu(gate_BLF).mul_(upstream_BLF)
