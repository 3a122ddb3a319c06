"""Rotary positions (Su et al. 2021, RoFormer): queries and keys turn by angles that grow with position.

Shapes: B batch, L positions, H heads, E width of a head.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Rotation(NamedTuple):
    """float32 cosines and sines of every position's angles, [B or 1, L, 1, E / 2]."""

    cosine: Tensor
    sine: Tensor


def rotation_at(positions_BL: Tensor, head_width: int, theta: float) -> Rotation:
    """The rotation at integer positions [B or 1, L]: pair i of a head turns by position * theta ** (-2i / E).

    Only differences of positions reach the scores, so positions need not start again at each document of a
    packed row: a document mask alone makes the row equal to its documents run one by one.
    """
    pair = torch.arange(head_width // 2, dtype=torch.float32, device=positions_BL.device)
    frequency = theta ** (-2.0 * pair / head_width)
    angle_BL1P = (positions_BL.to(torch.float32)[..., None] * frequency)[:, :, None, :]
    return Rotation(angle_BL1P.cos(), angle_BL1P.sin())


def rotate(heads_BLHE: Tensor, rotation: Rotation) -> Tensor:
    """Turns channels i and i + E/2 of each head together, in float32; the result has the input's dtype."""
    first, second = heads_BLHE.chunk(2, dim=-1)
    cosine, sine = rotation
    turned = torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)
    return turned.to(heads_BLHE.dtype)
