"""The explicit graph given with an example: typed edges between its positions, and what an experiment does to them.

Shapes: B batch, S slots, E edges of one example.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

Intervention = Literal["none", "typed", "untyped", "random"]

SHARED_TYPE = 0
"""The one type of untyped edges; true types are numbered from 1."""


@dataclass(frozen=True)
class EdgeSlots:
    """Edges as the graph-object memory reads them.

    Attributes:
        source_BS, target_BS: int64 positions, from 0.
        type_BS: int64.
        readable_BS: bool; False at padding, and everywhere under "none".
    """

    source_BS: Tensor
    target_BS: Tensor
    type_BS: Tensor
    readable_BS: Tensor


def pack_slots(
    edges: Sequence[np.ndarray], intervention: Intervention | Sequence[Intervention], seeds: Sequence[int]
) -> EdgeSlots:
    """The edges of each example under an intervention; all interventions give tensors of the same shapes.

    Args:
        edges: for each example its edges, int [E, 3]: source, target, type. For a role edit, those of the original and
            of the edited example come in the same order and with the same seed.
        intervention: see `intervene`, one for all examples or one for each; under "none" no slot is readable.
        seeds: one for each example, for "random".
    """
    slots = np.zeros((len(edges), max(map(len, edges), default=0), 3), dtype=np.int64)
    readable = np.zeros(slots.shape[:2], dtype=bool)
    of_each = [intervention] * len(edges) if isinstance(intervention, str) else intervention
    for row, (rows_edges, done, seed) in enumerate(zip(edges, of_each, seeds, strict=True)):
        slots[row, : len(rows_edges)] = intervene(rows_edges, done, seed)
        readable[row, : len(rows_edges)] = done != "none"
    source, target, types = torch.from_numpy(slots).unbind(dim=-1)
    return EdgeSlots(source, target, types, torch.from_numpy(readable))


def intervene(edges: np.ndarray, intervention: Intervention, seed: int) -> np.ndarray:
    """The edges, int [E, 3], as the object holds them.

    "untyped" gives all the shared type. "random" deals targets and types out anew, uniformly and each by itself: every
    position keeps its out-degree and its in-degree, every type its count; a single edge has nothing to be dealt. The
    others leave edges alone.
    """
    edges = edges.copy()
    if intervention == "untyped":
        edges[:, 2] = SHARED_TYPE
    if intervention == "random":
        generator = np.random.default_rng(seed)
        edges[:, 1] = generator.permutation(edges[:, 1])
        edges[:, 2] = generator.permutation(edges[:, 2])
    return edges
