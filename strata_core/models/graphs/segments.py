"""Rows taken by number and summed by owner, and what a softmax over each owner's rows needs.

Shapes: R rows, S segments (owners), K taken rows, ... any further axes.

On a CPU scattering along an expanded index is four times as fast as adding by index, which is what the backward of
taking rows does too; on CUDA adding by index is what can be made deterministic.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def take_rows(values: Tensor, rows_K: Tensor) -> Tensor:
    """values[rows], float [R, ...] and int64 [K] to float [K, ...]; the backward sums in the order of `rows`."""
    if values.device.type != "cpu" or values.ndim == 1:
        return values.index_select(0, rows_K)
    return _TakeRows.apply(values, rows_K)


class _TakeRows(torch.autograd.Function):
    """index_select, with the faster of the two ways back."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, rows_K: Tensor) -> Tensor:
        ctx.save_for_backward(rows_K)
        ctx.n_rows = values.shape[0]
        return values.index_select(0, rows_K)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        (rows_K,) = ctx.saved_tensors
        return sum_rows(upstream, rows_K, ctx.n_rows), None


def sum_rows(values: Tensor, owners_R: Tensor, n_segments: int) -> Tensor:
    """The sum of each segment's rows, float [R, ...] and int64 [R] to float [S, ...]; 0 for a segment without rows."""
    flat = values.flatten(1) if values.ndim > 1 else values
    sums = flat.new_zeros(n_segments, *flat.shape[1:])
    if values.device.type != "cpu" or values.ndim == 1:
        sums = sums.index_add(0, owners_R, flat)
    else:
        sums = sums.scatter_add(0, owners_R[:, None].expand(-1, flat.shape[1]), flat)
    return sums.reshape(n_segments, *values.shape[1:])


def largest_rows(values: Tensor, owners_R: Tensor, n_segments: int, *, least: float) -> Tensor:
    """The largest of each segment's rows in each column, at least `least`; float [R, ...] to float [S, ...].

    The backward goes to the largest rows, in equal parts where several are.
    """
    flat = values.flatten(1)
    index = owners_R[:, None].expand(-1, flat.shape[1])
    largest = flat.new_full((n_segments, flat.shape[1]), least).scatter_reduce(0, index, flat, "amax")
    return largest.reshape(n_segments, *values.shape[1:])


def segment_logsumexp(scores_R: Tensor, owners_R: Tensor, n_segments: int, *, least: float = -1e4) -> Tensor:
    """log of the sum of exp of each segment's scores, float [S]; about `least` for a segment without rows.

    Args:
        scores_R: float, above `least`.
        owners_R: int64, which segment each score is of.
        n_segments: how many there are.
        least: what an empty segment has.
    """
    with torch.no_grad():
        shift_S = scores_R.new_full((n_segments,), least).scatter_reduce(0, owners_R, scores_R, "amax")
    sums_S = sum_rows((scores_R - shift_S.index_select(0, owners_R)).exp(), owners_R, n_segments)
    return sums_S.clamp(min=torch.finfo(sums_S.dtype).tiny).log() + shift_S
