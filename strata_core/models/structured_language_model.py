"""The language model that is taught structure: one set of weights, a causal and a full pass, memories in the middle.

Shapes: B batch, L positions (subwords in the causal pass, words in the full one), D model width, V vocabulary, S slots,
T types of edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

from strata_core.errors import RecipeError
from strata_core.models.attention import AttentionPlan, plan_attention
from strata_core.models.config import ModelConfig
from strata_core.models.edge_slots import EdgeSlots
from strata_core.models.graph_object_memory import GraphObjectMemory, GraphObjectMemoryConfig
from strata_core.models.predicate_memory import EdgeScores, PredicateMemory, PredicateMemoryConfig, RoleOverride
from strata_core.models.readback import Readback, full_strength
from strata_core.models.rotary import Rotation
from strata_core.models.segmenter import CharacterSegmenter, SegmenterConfig
from strata_core.models.structure_heads import HeadsConfig, StructureHeads
from strata_core.models.transformer import CAUSAL, Transformer, TransformerConfig
from strata_core.models.word_states import Words, WordStates

GRAPH_OBJECT_PREFIX = "graph_object_memory."
"""What the names of the graph-object parameters begin with, and no others do."""


@dataclass(frozen=True)
class StructuredConfig(ModelConfig):
    """The shape of a structured language model.

    Attributes:
        transformer: its transformer.
        heads: its structure heads.
        feature_buckets: rows of the hashed word features' embedding.
        word_dropout: probability, in the full pass of training, that a word is left out of the input.
        memory_layer: how many blocks stand before the memories.
        predicate_memory, graph_object_memory, segmenter: None where the model has none.

    Raises:
        RecipeError: memory_layer is no place in the transformer.
    """

    transformer: TransformerConfig
    heads: HeadsConfig
    feature_buckets: int = 16384
    word_dropout: float = 0.0
    memory_layer: int = 1
    predicate_memory: PredicateMemoryConfig | None = None
    graph_object_memory: GraphObjectMemoryConfig | None = None
    segmenter: SegmenterConfig | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.memory_layer <= self.transformer.n_layers:
            raise RecipeError(
                f"model.memory_layer = {self.memory_layer}, but the model has {self.transformer.n_layers} blocks "
                "(model.n_layers)",
                hint="choose from 0 to n_layers",
            )

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values; a segmenter that is not there is not named, as before there were any."""
        values = {**super().to_dict(), "heads": self.heads.to_dict()}
        return values if self.segmenter is not None else {key: values[key] for key in values if key != "segmenter"}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`.

        Raises:
            DataError: as ModelConfig.from_dict, of the parts too.
        """
        parts: dict[str, type[ModelConfig]] = {"transformer": TransformerConfig, "heads": HeadsConfig}
        optional: dict[str, type[ModelConfig]] = {
            "predicate_memory": PredicateMemoryConfig,
            "graph_object_memory": GraphObjectMemoryConfig,
            "segmenter": SegmenterConfig,
        }
        parts |= {name: part for name, part in optional.items() if values.get(name) is not None}
        built = {name: part.from_dict(values.get(name) or {}) for name, part in parts.items()}
        return super().from_dict({**values, **built})


@dataclass(frozen=True)
class MemoryInput:
    """What an example brings to the memories.

    Attributes:
        slots: the graph object; None reads nothing.
        override: a bias on the learned memory's edge scores.
        readback: how strongly each row reads them; None: both at full strength.
    """

    slots: EdgeSlots | None = None
    override: RoleOverride | None = None
    readback: Readback | None = None


NOTHING = MemoryInput()


@dataclass(frozen=True)
class PassResult:
    """What a pass gives.

    Attributes:
        states_BLD: float, normalised.
        edges: the learned memory's edge scores; None without one.
        slot_types_BST: float, scores of the slots' types from their endpoints; None without slots.
    """

    states_BLD: Tensor
    edges: EdgeScores | None
    slot_types_BST: Tensor | None


class StructuredLanguageModel(nn.Module):
    """Parameters that a LanguageModel has too go by the same names here, so that they begin alike and can be shared."""

    def __init__(self, config: StructuredConfig) -> None:
        super().__init__()
        self.config = config
        shape = config.transformer
        self.transformer = Transformer(shape)
        self.output = None if shape.tie_embeddings else nn.Linear(shape.d_model, shape.vocab_size, bias=False)
        self.words = WordStates(shape.d_model, config.feature_buckets, config.word_dropout)
        self.heads = StructureHeads(shape.d_model, config.heads)
        self.predicate_memory: PredicateMemory | None = None
        if config.predicate_memory is not None:
            self.predicate_memory = PredicateMemory(shape.d_model, config.predicate_memory, shape.norm_eps)
        self.graph_object_memory: GraphObjectMemory | None = None
        if config.graph_object_memory is not None:
            self.graph_object_memory = GraphObjectMemory(shape.d_model, config.graph_object_memory, shape.norm_eps)
        self.segmenter = None if config.segmenter is None else CharacterSegmenter(config.segmenter)

    @property
    def output_weight(self) -> Tensor:
        """float [V, D]; the embedding itself when tied."""
        return self.transformer.embedding.weight if self.output is None else self.output.weight

    def forward(
        self,
        tokens_BL: Tensor,
        *,
        attention: AttentionPlan = CAUSAL,
        positions_BL: Tensor | None = None,
        memory: MemoryInput = NOTHING,
    ) -> PassResult:
        """The causal pass over int64 tokens: nothing at a position depends on a later one.

        Args:
            tokens_BL: int64.
            attention: a causal plan.
            positions_BL: as for Transformer.
            memory: slots and cells at token positions.

        Raises:
            DataError: the sequence is longer than max_seq_len.
        """
        states_BLD = self.transformer.embed(tokens_BL)
        return self._run(states_BLD, attention, self.transformer.rotation(states_BLD, positions_BL), memory)

    def full_pass(self, words: Words, memory: MemoryInput = NOTHING) -> PassResult:
        """The pass in which every word sees its whole sentence; positions are words.

        Raises:
            DataError: a sentence has more words than max_seq_len.
        """
        states_BWD = self.words(words, self.transformer.embedding.weight)
        plan = plan_attention(causal=False, real_BL=words.real_BW)
        return self._run(states_BWD, plan, self.transformer.rotation(states_BWD), memory)

    def _run(self, states_BLD: Tensor, plan: AttentionPlan, rotation: Rotation, memory: MemoryInput) -> PassResult:
        transformer, layer = self.transformer, self.config.memory_layer
        states_BLD = transformer.run_blocks(transformer.dropout(states_BLD), plan, rotation, stop=layer)
        visible_BLL = visible_positions(plan, states_BLD)
        readback = memory.readback or full_strength(states_BLD.shape[0], states_BLD.device)
        edges, slot_types_BST, read_BLD = None, None, states_BLD
        if self.predicate_memory is not None:
            learned_BLD, edges = self.predicate_memory(states_BLD, visible_BLL, memory.override)
            read_BLD = read_BLD + _scaled(learned_BLD, readback.learned_B)
        if self.graph_object_memory is not None and memory.slots is not None:
            object_BLD, slot_types_BST = self.graph_object_memory(states_BLD, visible_BLL, memory.slots)
            read_BLD = read_BLD + _scaled(object_BLD, readback.graph_object_B)
        states_BLD = transformer.norm(transformer.run_blocks(read_BLD, plan, rotation, start=layer))
        return PassResult(states_BLD, edges, slot_types_BST)


def visible_positions(plan: AttentionPlan, states_BLD: Tensor) -> Tensor:
    """bool [B or 1, L, L], True where the plan lets the first position read the second."""
    if plan.allowed_B1LL is not None:
        return plan.allowed_B1LL[:, 0]
    length = states_BLD.shape[1]
    visible_1LL = torch.ones(1, length, length, dtype=torch.bool, device=states_BLD.device)
    return visible_1LL.tril() if plan.causal else visible_1LL


def _scaled(added_BLD: Tensor, factor_B: Tensor) -> Tensor:
    return added_BLD * factor_B[:, None, None].to(added_BLD.dtype)
