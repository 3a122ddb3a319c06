"""The learned predicate memory: who does what to whom, guessed while reading, written down and read back.

Soft predicates and soft roles make typed edges between positions. Each role has a channel of its own, so that what
fills it is not mixed with what fills others. An edge is written where its later endpoint stands, once as an argument
that its predicate can be asked for, once the other way round; nothing earlier can see it.

Shapes: B batch, L positions, D model width, R roles but NONE, K = R + 1, E width of a channel. In pairs the first L is
the predicate (or the reader), the second the argument (or what is read).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from strata_core.models.biaffine import Biaffine
from strata_core.models.config import ModelConfig
from strata_core.models.normalisation import RMSNorm

MEMORY_ROLES = ("NONE", "ARG0", "ARG1", "ARG2", "OTHER")
"""The roles that edges carry; finer ones would cost a score for each pair of positions."""

_CORE_OPPOSITE = {1: 2, 2: 1}
_LEAST_MASS = 1e-6
_RARITY = 3.0
"""Nats by which a position is no predicate, and a pair has no role, before anything is known of them."""


def memory_role(role: str) -> int:
    """The memory's number of a corpus role by its normalised name."""
    return MEMORY_ROLES.index(role) if role in MEMORY_ROLES[1:-1] else MEMORY_ROLES.index("OTHER")


@dataclass(frozen=True)
class PredicateMemoryConfig(ModelConfig):
    """Widths: of what a channel carries, and that the biaffine role scores work in; and the gate at the start."""

    channel_width: int = 32
    role_width: int = 64
    initial_gate: float = 0.0


class EdgeScores(NamedTuple):
    """What the edges are made of, after any override.

    Attributes:
        predicate_BL: float, log-odds of a position being a predicate.
        role_BKLL: float, scores of the role of the second position to the first, as MEMORY_ROLES.
    """

    predicate_BL: Tensor
    role_BKLL: Tensor


class RoleCell(NamedTuple):
    """A pair of positions, from 0, in a row, and the core role (1 or 2 of MEMORY_ROLES) to push it to."""

    row: int
    predicate: int
    argument: int
    role: int


class RoleOverride(NamedTuple):
    """What is added to EdgeScores, in the same shapes."""

    predicate_BL: Tensor
    role_BKLL: Tensor


def override_roles(
    cells: Sequence[RoleCell],
    *,
    rows: int,
    length: int,
    bias_value: float,
    scope: Literal["legacy", "role_only"],
    device: torch.device | None = None,
) -> RoleOverride:
    """A bias that gives pairs the core role asked for: +bias_value on it, -bias_value on the opposite one.

    Args:
        cells: the pairs; for a swap, both with the role that the other one has.
        rows: B.
        length: L.
        bias_value: in nats.
        scope: "legacy" adds bias_value to the log-odds of the cells' predicates too; "role_only" leaves them alone.
        device: where the biases are wanted.
    """
    predicate_BL = torch.zeros(rows, length)
    role_BKLL = torch.zeros(rows, len(MEMORY_ROLES), length, length)
    for row, predicate, argument, role in cells:
        role_BKLL[row, role, predicate, argument] = bias_value
        role_BKLL[row, _CORE_OPPOSITE[role], predicate, argument] = -bias_value
        if scope == "legacy":
            predicate_BL[row, predicate] = bias_value
    return RoleOverride(predicate_BL.to(device), role_BKLL.to(device))


class PredicateMemory(nn.Module):
    """Reads states, gives back what the memory adds to them, and the scores its edges were made of.

    With the gate a in tanh(a) * read at 0 (Flamingo, Alayrac et al. 2022) the memory adds nothing at first; then what
    finds edges has no gradient either, and edits of roles can pass unnoticed for long.
    """

    def __init__(self, d_model: int, config: PredicateMemoryConfig, norm_eps: float) -> None:
        super().__init__()
        self.n_channels = len(MEMORY_ROLES) - 1
        self._initial_gate = config.initial_gate
        channels_width = self.n_channels * config.channel_width
        self.norm = RMSNorm(d_model, norm_eps)
        self.predicate = nn.Linear(d_model, 1)
        self.predicate_side = nn.Linear(d_model, config.role_width)
        self.argument_side = nn.Linear(d_model, config.role_width)
        self.role = Biaffine(config.role_width, len(MEMORY_ROLES))
        self.query = nn.Linear(d_model, channels_width, bias=False)
        self.key = nn.Linear(d_model, channels_width, bias=False)
        self.value = nn.Linear(d_model, channels_width, bias=False)
        self.output = nn.Linear(channels_width, d_model, bias=False)
        self.gate = nn.Parameter(torch.zeros(1))

    def initial_stds(self) -> dict[str, float]:
        """Keeps the variance of normalised states, so that the closed gate alone makes the read small."""
        from_states = ("predicate_side", "argument_side", "query", "key", "value")
        return {f"{name}.weight": self.query.in_features**-0.5 for name in from_states}

    def finish_initial_values(self) -> None:
        """What is read starts as the states that were written, edges as rare as they are, the gate as configured.

        With tied embeddings an opening gate then names what fills a role, and what is left to learn is whom to ask.
        Rare edges (a prior, as Lin et al. 2017 give rare classes) leave room for those that an override asserts.
        """
        self.output.weight.copy_(self.value.weight.T)
        self.predicate.bias.fill_(-_RARITY)
        self.role.weight[MEMORY_ROLES.index("NONE"), -1, -1] = _RARITY
        self.gate.fill_(self._initial_gate)

    def forward(
        self, states_BLD: Tensor, visible_BLL: Tensor, override: RoleOverride | None = None
    ) -> tuple[Tensor, EdgeScores]:
        """What the memory adds to the states, float [B, L, D], and its edge scores.

        Args:
            states_BLD: float.
            visible_BLL: bool [B or 1, L, L], whether the first position may know of the second.
            override: a bias on the scores.
        """
        normal_BLD = self.norm(states_BLD)
        scores = self._edge_scores(normal_BLD, override)
        read_BLX = self._read(normal_BLD, _edge_weights(scores), visible_BLL[:, None])
        return torch.tanh(self.gate) * self.output(read_BLX), scores

    def _edge_scores(self, states_BLD: Tensor, override: RoleOverride | None) -> EdgeScores:
        predicate_BL = self.predicate(states_BLD)[..., 0]
        sides = F.gelu(self.predicate_side(states_BLD)), F.gelu(self.argument_side(states_BLD))
        role_BKLL = self.role.all_pairs(*sides)
        wide = torch.promote_types(role_BKLL.dtype, torch.float32)
        scores = EdgeScores(predicate_BL.to(wide), role_BKLL.to(wide))
        if override is None:
            return scores
        return EdgeScores(scores.predicate_BL + override.predicate_BL, scores.role_BKLL + override.role_BKLL)

    def _read(self, states_BLD: Tensor, weights_BRLL: Tensor, visible_B1LL: Tensor) -> Tensor:
        """What every position reads from every channel, float [B, L, R * E].

        Position s holds two slots a channel: the edges of which it is the later endpoint as their predicate, keyed by
        itself and holding their arguments' mean; and those of which it is the later endpoint as an argument, keyed by
        their predicates' mean and holding itself. A slot counts in the softmax by the weight of its edges; a slot of
        weight 1 that holds zero is there for who finds nothing to read.
        """
        query, key, value = (self._channels(layer(states_BLD)) for layer in (self.query, self.key, self.value))
        as_predicate = weights_BRLL.masked_fill(~visible_B1LL.tril(), 0.0)
        as_argument = weights_BRLL.transpose(-1, -2).masked_fill(~visible_B1LL.tril(-1), 0.0)
        arguments_BRLE, predicate_mass_BRL = _weighted_mean(as_predicate, value)
        predicates_BRLE, argument_mass_BRL = _weighted_mean(as_argument, key)
        keys = torch.cat((key, predicates_BRLE), dim=2)
        masses = torch.cat((predicate_mass_BRL, argument_mass_BRL), dim=2)
        scores = query @ keys.transpose(-1, -2) / math.sqrt(query.shape[-1]) + masses.log()[:, :, None, :]
        scores = scores.masked_fill(~visible_B1LL.repeat(1, 1, 1, 2), float("-inf"))
        share = F.pad(scores, (1, 0)).softmax(dim=-1)[..., 1:]
        read_BRLE = share.to(value.dtype) @ torch.cat((arguments_BRLE, value), dim=2)
        return read_BRLE.transpose(1, 2).flatten(2)

    def _channels(self, flat_BLX: Tensor) -> Tensor:
        return flat_BLX.unflatten(-1, (self.n_channels, -1)).transpose(1, 2)


def _edge_weights(scores: EdgeScores) -> Tensor:
    """P(predicate) * P(role), float [B, R, L, L]."""
    return scores.predicate_BL.sigmoid()[:, None, :, None] * scores.role_BKLL.softmax(dim=1)[:, 1:]


def _weighted_mean(weights_BRLL: Tensor, vectors_BRLE: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of the vectors under each position's weights, and the sum of these; finite where all are zero."""
    mass_BRL = weights_BRLL.sum(dim=-1) + _LEAST_MASS
    share = weights_BRLL / mass_BRL[..., None]
    return share.to(vectors_BRLE.dtype) @ vectors_BRLE, mass_BRL
