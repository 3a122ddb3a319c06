"""How strongly the two memories are read, row by row: mixture, anneal and dropout.

Shapes: B batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


class Mixture(NamedTuple):
    """What the readback of each memory is multiplied by, as numbers or as float scalars."""

    learned: float | Tensor
    graph_object: float | Tensor


ADDED = Mixture(1.0, 1.0)
"""Both at full strength: the graph object is added, nothing is replaced."""


def mixture_at(
    step: int, anneal_steps: int, *, final_learned_weight: float = 1.0, fixed_learned_weight: float | None = None
) -> Mixture:
    """The mixture that the full pass of annotated rows reads with.

    Args:
        step: optimizer step, from 0.
        anneal_steps: steps that the anneal takes.
        final_learned_weight: v in [0, 1]. 1 gives ADDED throughout; below it, learned goes linearly from 1 at the
            first step to v at the last of the anneal and stays there, the graph object from 0 to 1 - v.
        fixed_learned_weight: w in [0, 1] gives (w, 1 - w) throughout, whatever final_learned_weight says.
    """
    if fixed_learned_weight is not None:
        return Mixture(fixed_learned_weight, 1.0 - fixed_learned_weight)
    if final_learned_weight == 1.0:
        return ADDED
    progress = min(step / max(anneal_steps - 1, 1), 1.0)
    graph_object = (1.0 - final_learned_weight) * progress
    return Mixture(1.0 - graph_object, graph_object)


@dataclass(frozen=True)
class Readback:
    """Factors of the two memories' readback for each row, float [B]."""

    learned_B: Tensor
    graph_object_B: Tensor


def full_strength(rows: int, device: torch.device | None = None) -> Readback:
    """Both memories as they are: the causal pass, and rows of plain text."""
    return Readback(torch.ones(rows, device=device), torch.ones(rows, device=device))


def full_pass_readback(
    rows: int, mixture: Mixture, *, learned_dropout: float = 0.0, device: torch.device | None = None
) -> Readback:
    """The factors in a full pass over annotated rows.

    Args:
        rows: B.
        mixture: what both are read with; tensors are on the device.
        learned_dropout: probability in [0, 1) that a row does not read the learned memory; drawn from the default
            generator. 0 outside training.
        device: where the factors are wanted.
    """
    ones_B = torch.ones(rows, device=device)
    learned_B = ones_B * mixture.learned
    if learned_dropout > 0:
        learned_B = learned_B.masked_fill(torch.rand(rows, device=device) < learned_dropout, 0.0)
    return Readback(learned_B, ones_B * mixture.graph_object)


def graph_object_alone(rows: int, device: torch.device | None = None) -> Readback:
    """The factors with which a role edit of the graph object is scored: nothing else can tell original from edited."""
    return Readback(torch.zeros(rows, device=device), torch.ones(rows, device=device))
