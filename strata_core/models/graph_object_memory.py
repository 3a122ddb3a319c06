"""The graph-object memory: edges given with the example, read by cross-attention.

Shapes: B batch, L positions, S slots, D model width, H heads, E width of a head, T types and the shared one.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from strata_core.errors import RecipeError
from strata_core.models.config import ModelConfig
from strata_core.models.edge_slots import EdgeSlots
from strata_core.models.normalisation import RMSNorm
from strata_core.models.word_states import states_at


@dataclass(frozen=True)
class GraphObjectMemoryConfig(ModelConfig):
    """How many types edges can have, the shared one not counted, the heads that read them, the gate at the start."""

    n_types: int
    n_heads: int = 4
    initial_gate: float = 0.0


class GraphObjectMemory(nn.Module):
    """A slot holds its endpoints' states and its type's embedding; every position attends to the slots it may know of.

    Whatever the slots hold, parameters and shapes are the same. With the gate at 0 the memory adds nothing, as in
    PredicateMemory; then what selects slots has no gradient either, and a swap of types can pass unnoticed for long.
    """

    def __init__(self, d_model: int, config: GraphObjectMemoryConfig, norm_eps: float) -> None:
        super().__init__()
        if d_model % config.n_heads:
            raise RecipeError(
                f"model.graph_object_memory.n_heads = {config.n_heads} does not divide model.d_model = {d_model}",
                hint="choose a divisor of d_model",
            )
        self.n_heads = config.n_heads
        self._initial_gate = config.initial_gate
        self.norm = RMSNorm(d_model, norm_eps)
        self.source = nn.Linear(d_model, d_model, bias=False)
        self.target = nn.Linear(d_model, d_model, bias=False)
        self.edge_type = nn.Embedding(config.n_types + 1, d_model)
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, d_model, bias=False)
        self.value = nn.Linear(d_model, d_model, bias=False)
        self.output = nn.Linear(d_model, d_model, bias=False)
        self.gate = nn.Parameter(torch.zeros(1))
        self.type_head = nn.Linear(d_model, config.n_types + 1)

    def initial_stds(self) -> dict[str, float]:
        """Keeps the variance of normalised states, so that the closed gate alone makes the read small.

        A type weighs as much in a slot as an endpoint does.
        """
        projections = ("source", "query", "key")
        return {f"{name}.weight": self.query.in_features**-0.5 for name in projections} | {"edge_type.weight": 1.0}

    def finish_initial_values(self) -> None:
        """What is read starts as the slots' targets, in the basis of the states; the gate as configured.

        With tied embeddings an opening gate then names the targets at once, and what is left to learn is which slot to
        read.
        """
        for layer in (self.target, self.value, self.output):
            nn.init.eye_(layer.weight)
        self.gate.fill_(self._initial_gate)

    def forward(self, states_BLD: Tensor, visible_BLL: Tensor, slots: EdgeSlots) -> tuple[Tensor, Tensor]:
        """What the memory adds to the states, float [B, L, D], and type scores of the slots, [B, S, T].

        The scores come from the endpoints alone; they serve the auxiliary objective. A position that may read no slot
        is given zeros.

        Args:
            states_BLD: float.
            visible_BLL: bool [B or 1, L, L], whether the first position may know of the second. A slot is visible
                where both of its endpoints are; so, in a causal pass, from the later one on.
            slots: what to read.
        """
        normal_BLD = self.norm(states_BLD)
        source_BSD = self.source(states_at(normal_BLD, slots.source_BS))
        ends_BSD = source_BSD + self.target(states_at(normal_BLD, slots.target_BS))
        slots_BSD = ends_BSD + self.edge_type(slots.type_BS)
        # A slot of zeros that all may read: attention over nothing would be NaN.
        key, value = (F.pad(layer(slots_BSD), (0, 0, 1, 0)) for layer in (self.key, self.value))
        readable_BLS = F.pad(visible_slots(visible_BLL, slots), (1, 0), value=True)
        read_BHLE = F.scaled_dot_product_attention(
            self._heads(self.query(normal_BLD)),
            self._heads(key),
            self._heads(value),
            attn_mask=readable_BLS[:, None],
        )
        added_BLD = torch.tanh(self.gate) * self.output(read_BHLE.transpose(1, 2).flatten(2))
        return added_BLD, self.type_head(F.gelu(ends_BSD))

    def _heads(self, flat_BXD: Tensor) -> Tensor:
        return flat_BXD.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)


def visible_slots(visible_BLL: Tensor, slots: EdgeSlots) -> Tensor:
    """bool [B, L, S]: whether the position may read the slot."""
    rows, length = slots.source_BS.shape[0], visible_BLL.shape[1]
    visible_BLL = visible_BLL.expand(rows, length, length)
    ends = (end[:, None, :].expand(-1, length, -1) for end in (slots.source_BS, slots.target_BS))
    sees_source_BLS, sees_target_BLS = (visible_BLL.gather(2, end_BLS) for end_BLS in ends)
    return sees_source_BLS & sees_target_BLS & slots.readable_BS[:, None, :]
