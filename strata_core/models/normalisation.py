"""Root mean square normalisation (Zhang and Sennrich 2019).

Shapes: ... any leading axes, N their product, D width.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """x / sqrt(mean(x ** 2) + eps) * weight, over the last axis; the result has the input's dtype.

    CUDA has a fused kernel for it. On a CPU its parts would keep two more tensors of the input's size, so there it
    runs as one function that keeps its input alone, as the fused kernel does.
    """

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, states: Tensor) -> Tensor:
        """float [..., D] to float [..., D]."""
        if states.device.type == "cpu":
            return _RMSNorm.apply(states, self.weight, self.eps)
        return F.rms_norm(states, self.weight.shape, self.weight, self.eps)


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, weight_D: Tensor, eps: float) -> Tensor:
        wide = states.to(torch.promote_types(states.dtype, torch.float32))
        inverse = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True).add_(eps))
        ctx.save_for_backward(states, weight_D, inverse)
        return (wide * inverse).mul_(weight_D).to(states.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        states, weight_D, inverse = ctx.saved_tensors
        states_ND = states.flatten(0, -2).to(inverse.dtype)
        upstream_ND = upstream.flatten(0, -2).to(inverse.dtype)
        inverse_N1 = inverse.flatten(0, -2)
        product_ND = upstream_ND * states_ND
        weight_gradient_D = product_ND.T @ inverse_N1[:, 0]
        # The part of the gradient along the states themselves, which the normalisation removes.
        along_N1 = (product_ND @ weight_D)[:, None] * inverse_N1.pow(3) / weight_D.shape[0]
        gradient_ND = (upstream_ND * weight_D).mul_(inverse_N1).addcmul_(states_ND, along_N1, value=-1.0)
        return gradient_ND.view_as(states).to(states.dtype), weight_gradient_D, None
