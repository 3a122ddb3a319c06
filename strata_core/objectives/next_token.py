"""Next-token cross-entropy without ever holding the scores of all rows.

Rows go through the output weight in chunks. Where gradients are wanted they are computed at once, while a
chunk's probabilities are at hand, so that backward only scales them: no scores are stored or computed again.

Shapes: N rows, C rows of one chunk, D model width, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from strata_core.models.autocast import product_dtype

IGNORED = -100
"""The label of a row that takes no part."""

CHUNK_ROWS = 512
"""Rows whose scores exist at once. Measured on a CPU: fewer gain nothing, four times as many cost time."""


def next_token_loss(
    states_ND: Tensor,
    weight_VD: Tensor,
    labels_N: Tensor,
    *,
    ignore_index: int = IGNORED,
    chunk_rows: int = CHUNK_ROWS,
) -> Tensor:
    """The sum over rows of -log softmax(states @ weight.T)[label], in nats.

    Under autocast the products run in its dtype; softmax, the loss and the sum of the weight's gradient stay
    in float32. Only first derivatives exist.

    Args:
        states_ND: float.
        weight_VD: float.
        labels_N: int64 in [0, V), or `ignore_index`.
        ignore_index: the label of rows that count nothing.
        chunk_rows: rows whose scores are held at once.

    Returns:
        A float32 scalar (float64 for float64 states).
    """
    if torch.is_grad_enabled() and (states_ND.requires_grad or weight_VD.requires_grad):
        return _NextTokenLoss.apply(states_ND, weight_VD, labels_N, ignore_index, chunk_rows)
    nats_N = next_token_nats(states_ND, weight_VD, labels_N, ignore_index=ignore_index, chunk_rows=chunk_rows)
    return nats_N.sum()


@torch.no_grad()
def next_token_nats(
    states_ND: Tensor,
    weight_VD: Tensor,
    labels_N: Tensor,
    *,
    ignore_index: int = IGNORED,
    chunk_rows: int = CHUNK_ROWS,
) -> Tensor:
    """Each row's part of `next_token_loss`, [N], 0 where ignored; without gradient."""
    dtype = product_dtype(states_ND)
    weight_VD = weight_VD.to(dtype)
    chunks = zip(states_ND.split(chunk_rows), labels_N.split(chunk_rows), strict=True)
    with torch.autocast(states_ND.device.type, enabled=False):
        nats = [
            _row_nats(_log_probabilities(states_CD.to(dtype), weight_VD), labels_C, ignore_index)
            for states_CD, labels_C in chunks
        ]
    return torch.cat(nats)


class _NextTokenLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states_ND: Tensor, weight_VD: Tensor, labels_N: Tensor, ignore_index: int, chunk_rows: int
    ) -> Tensor:
        wants_states, wants_weight = ctx.needs_input_grad[:2]
        states_gradient = torch.empty_like(states_ND) if wants_states else None
        weight_gradient = torch.zeros_like(weight_VD, dtype=_sum_dtype(weight_VD)) if wants_weight else None
        loss = torch.zeros((), dtype=_sum_dtype(states_ND), device=states_ND.device)
        dtype = product_dtype(states_ND)
        cast_weight_VD = weight_VD.to(dtype)
        with torch.autocast(states_ND.device.type, enabled=False):
            for start in range(0, states_ND.shape[0], chunk_rows):
                labels_C = labels_N[start : start + chunk_rows]
                states_CD = states_ND[start : start + chunk_rows].to(dtype)
                log_probabilities_CV = _log_probabilities(states_CD, cast_weight_VD)
                loss += _row_nats(log_probabilities_CV, labels_C, ignore_index).sum()
                scores_gradient_CV = _scores_gradient(log_probabilities_CV, labels_C, ignore_index).to(dtype)
                # Ignored rows are left out here, in the narrow D, rather than by a pass over the V columns.
                counted_C1 = (labels_C != ignore_index)[:, None]
                if states_gradient is not None:
                    gradient_CD = (scores_gradient_CV @ cast_weight_VD) * counted_C1
                    states_gradient[start : start + chunk_rows] = gradient_CD
                if weight_gradient is not None:
                    _add_product(weight_gradient, scores_gradient_CV.T, states_CD * counted_C1)
        ctx.save_for_backward(states_gradient, weight_gradient)
        ctx.weight_dtype = weight_VD.dtype
        return loss

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        states_gradient, weight_gradient = ctx.saved_tensors
        return (
            None if states_gradient is None else states_gradient * upstream,
            None if weight_gradient is None else (weight_gradient * upstream).to(ctx.weight_dtype),
            None,
            None,
            None,
        )


def _sum_dtype(tensor: Tensor) -> torch.dtype:
    return torch.promote_types(tensor.dtype, torch.float32)


def _log_probabilities(states_CD: Tensor, weight_VD: Tensor) -> Tensor:
    return torch.log_softmax(states_CD @ weight_VD.T, dim=-1, dtype=_sum_dtype(states_CD))


def _row_nats(log_probabilities_CV: Tensor, labels_C: Tensor, ignore_index: int) -> Tensor:
    counted_C = labels_C != ignore_index
    label_C1 = torch.where(counted_C, labels_C, 0)[:, None]
    return torch.where(counted_C, -log_probabilities_CV.gather(1, label_C1)[:, 0], 0.0)


def _scores_gradient(log_probabilities_CV: Tensor, labels_C: Tensor, ignore_index: int) -> Tensor:
    """softmax - one_hot(label), written over its input; rows that are ignored hold nothing of use."""
    probabilities_CV = log_probabilities_CV.exp_()
    rows_C = torch.arange(labels_C.shape[0], device=labels_C.device)
    # Indexing has a deterministic kernel on every device; scatter_add_ has none on CUDA.
    probabilities_CV[rows_C, torch.where(labels_C != ignore_index, labels_C, 0)] -= 1.0
    return probabilities_CV


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    if total.dtype == left.dtype:
        total.addmm_(left, right)
    else:
        total.add_(left @ right)
