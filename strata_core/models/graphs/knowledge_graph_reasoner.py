"""Answers to queries over one large graph, by message passing that the query's relation conditions.

As NBFNet (Zhu et al. 2021): states start at the entity asked about, and each layer sends them over the edges, times
what the layer's weights make of the relation asked for and that of the edge. No parameter belongs to an entity. All
queries of a batch ask for the same relation, so the weights are made once for each relation of the graph.

Nothing before the score has a bias, so an entity that no message reached is exactly zero and scores what a zero state
does. Two layouts follow from that, with the same results: over the pairs of a query and an entity that its messages
reach (`score_reached`), whose number does not grow with the graph; and over all entities, with all relations mixed into
one adjacency matrix for each part of the state (`score_all`), which is faster where most entities are reached.

Shapes: N entities, E edges, Q starts, P pairs, R relations with inverses, D width, H parts of a state that have one
weight (D for "distmult", the heads for "gate"), W query width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from strata_core.models.config import ModelConfig
from strata_core.models.graphs.relational_passing import MessageWeights, PassingConfig
from strata_core.models.graphs.segments import take_rows
from strata_core.models.normalisation import RMSNorm


@dataclass(frozen=True)
class KnowledgeGraphConfig(ModelConfig):
    """The shape of a KnowledgeGraphReasoner.

    Attributes:
        n_relations: inverses counted.
        d_model: width of the states.
        n_layers: how far an answer may lie from the start, in edges.
        message_rank: width in which the two relations meet; also that of the query vector.
        d_score: hidden width of the score.
        message: "distmult" or "gate", see relational_passing.
        n_heads: of gates.
        dropout: probability, on what a layer adds to the states.
        message_dropout: probability, on the weights of messages.
        message_norm_eps: added to the mean square of summed messages where they are normalised.

    Raises:
        RecipeError: a message that does not exist, or heads that do not divide the width.
    """

    n_relations: int
    d_model: int = 32
    n_layers: int = 3
    message_rank: int = 32
    d_score: int = 64
    message: str = "distmult"
    n_heads: int = 4
    dropout: float = 0.0
    message_dropout: float = 0.0
    message_norm_eps: float = 1e-6

    def __post_init__(self) -> None:
        self.passing()

    def passing(self) -> PassingConfig:
        """The shape of the message weights of a layer."""
        return PassingConfig(
            n_relations=self.n_relations,
            d_model=self.d_model,
            d_query=self.message_rank,
            rank=self.message_rank,
            message=self.message,
            n_heads=self.n_heads,
        )


@dataclass(frozen=True)
class WholeGraph:
    """All edges of a graph, in two orders. A cell is destination x N + source.

    Attributes:
        relations_by_cell: int32 [E], the relation of each edge, the edges ordered by cell.
        cell_offsets: int32 [N * N + 1], where in them each cell begins.
        cells_by_relation: int32 [E], the cell of each edge, the edges ordered by relation.
        relation_offsets: int32 [R + 1], where in them each relation begins.
    """

    relations_by_cell: Tensor
    cell_offsets: Tensor
    cells_by_relation: Tensor
    relation_offsets: Tensor


@dataclass(frozen=True)
class Reached:
    """Pairs of a start and an entity that messages reach, in order of distance, 0 to L.

    The edges that leave one pair by one relation are those of one link. The first links are the starts, each with an
    edge to itself.

    Attributes:
        level_sizes: how many pairs have each distance; those of distance 0 are the starts.
        links: for each distance below L int64 [links, 2]: source and relation; the starts' are not listed.
        destinations: for each distance below L int32 [edges], pairs, link by link.
        link_ends: for each distance below L int32 [links], where the edges of each link end, through all distances.
        arriving: for each layer int32 [edges], the links of its edges in the order of their destinations.
        arrival_offsets: for each layer int32 [pairs + 1], where in `arriving` each destination begins.
    """

    level_sizes: Sequence[int]
    links: Sequence[Tensor]
    destinations: Sequence[Tensor]
    link_ends: Sequence[Tensor]
    arriving: Sequence[Tensor]
    arrival_offsets: Sequence[Tensor]


class _SumOverEdges(torch.autograd.Function):
    """The sum at each destination of the messages of its edges, gathered and added in one pass, as is its gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        messages_MX: Tensor,
        arriving_E: Tensor,
        arrival_offsets: Tensor,
        destinations_E: Tensor,
        message_offsets: Tensor,
    ) -> Tensor:
        """Sums at each of the destinations that `arrival_offsets` cut.

        Args:
            messages_MX: float, each sent over one or more edges.
            arriving_E: int32, the message of each edge, by destination.
            arrival_offsets: int32 [destinations + 1], which cut them.
            destinations_E: int32, the destination of each edge, by message.
            message_offsets: int32 [M + 1], which cut them.
        """
        ctx.save_for_backward(destinations_E, message_offsets)
        return F.embedding_bag(arriving_E, messages_MX, arrival_offsets, mode="sum", include_last_offset=True)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        destinations_E, offsets = ctx.saved_tensors
        upstream = upstream.contiguous()
        gradient = F.embedding_bag(destinations_E, upstream, offsets, mode="sum", include_last_offset=True)
        return gradient, None, None, None, None


class _MatrixProducts(torch.autograd.Function):
    """torch.bmm, of which both directions see contiguous operands; others are copied matrix by matrix."""

    @staticmethod
    def forward(ctx: Any, left_HNN: Tensor, right_HNX: Tensor) -> Tensor:
        left_HNN, right_HNX = left_HNN.contiguous(), right_HNX.contiguous()
        ctx.save_for_backward(left_HNN, right_HNX)
        return torch.bmm(left_HNN, right_HNX)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream_HNX: Tensor) -> tuple[Tensor, Tensor]:
        left_HNN, right_HNX = ctx.saved_tensors
        upstream_HNX = upstream_HNX.contiguous()
        of_left_HNN = torch.bmm(upstream_HNX, right_HNX.transpose(1, 2))
        return of_left_HNN, torch.bmm(left_HNN.transpose(1, 2), upstream_HNX)


class _Combine(nn.Module):
    """states + dropout(relu(A norm(sums) + B states)): what a node makes of its state and its messages."""

    def __init__(self, config: KnowledgeGraphConfig) -> None:
        super().__init__()
        self.of_sums = nn.Linear(config.d_model, config.d_model, bias=False)
        self.of_states = nn.Linear(config.d_model, config.d_model, bias=False)
        self.norm = RMSNorm(config.d_model, config.message_norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def initial_stds(self) -> dict[str, float]:
        """Keeps variances: two terms of unit size are added."""
        std = (2 * self.of_sums.in_features) ** -0.5
        return {"of_sums.weight": std, "of_states.weight": std}

    def forward(self, sums: Tensor, states: Tensor) -> Tensor:
        """float [P, D], and float [P', D] with P' <= P where later states are zero, to float [P, D]."""
        news = F.relu(_add_to_first(self.of_sums(self.norm(sums)), self.of_states(states)), inplace=True)
        news = self.dropout(news)
        return torch.cat([states + news[: len(states)], news[len(states) :]])


class _Score(nn.Module):
    """v . relu(A norm(sums) + B states + C query): the last layer and the score in one."""

    def __init__(self, config: KnowledgeGraphConfig) -> None:
        super().__init__()
        self.of_sums = nn.Linear(config.d_model, config.d_score, bias=False)
        self.of_states = nn.Linear(config.d_model, config.d_score, bias=False)
        self.of_query = nn.Linear(config.message_rank, config.d_score)
        self.norm = RMSNorm(config.d_model, config.message_norm_eps)
        self.out = nn.Linear(config.d_score, 1, bias=False)

    def initial_stds(self) -> dict[str, float]:
        """Keeps variances: what is multiplied is of unit size."""
        std = self.of_sums.in_features**-0.5
        return {
            "of_sums.weight": std,
            "of_states.weight": std,
            "of_query.weight": self.of_query.in_features**-0.5,
            "out.weight": self.out.in_features**-0.5,
        }

    def forward(self, sums: Tensor, states: Tensor, query_W: Tensor) -> Tensor:
        """float [..., D], [..., D] where later first rows are zero, and [W], to float [...]."""
        hidden = F.linear(self.norm(sums), self.of_sums.weight, self.of_query(query_W))
        hidden = _add_to_first(hidden, self.of_states(states))
        return self.out(F.relu(hidden, inplace=True)).squeeze(-1)

    def of_zero(self, query_W: Tensor) -> Tensor:
        """The score of an entity that nothing reached, float scalar."""
        return self.out(F.relu(self.of_query(query_W))).squeeze(-1)


def _add_to_first(values: Tensor, to_first: Tensor) -> Tensor:
    """`values`, to whose first rows others have been added in place."""
    values[: len(to_first)] += to_first
    return values


class KnowledgeGraphReasoner(nn.Module):
    """The model.

    Args:
        config: its shape.
    """

    def __init__(self, config: KnowledgeGraphConfig) -> None:
        super().__init__()
        self.config = config
        self.queries = nn.Embedding(config.n_relations, config.message_rank)
        self.start = nn.Linear(config.message_rank, config.d_model, bias=False)
        self.messages = nn.ModuleList(MessageWeights(config.passing()) for _ in range(config.n_layers))
        self.combine = nn.ModuleList(_Combine(config) for _ in range(config.n_layers - 1))
        self.score = _Score(config)

    def initial_stds(self) -> dict[str, float]:
        """Keeps variances: what is multiplied is of unit size."""
        return {"queries.weight": 1.0, "start.weight": self.config.message_rank**-0.5}

    def score_reached(self, relation_1: Tensor, reached: Reached) -> tuple[Tensor, Tensor]:
        """The scores of pairs.

        Args:
            relation_1: int64 [1], the relation asked for from all starts.
            reached: the pairs, to a distance of n_layers.

        Returns:
            float [P], the scores of the pairs in their order; float scalar, the score of every other entity.
        """
        query_W, boundary_D = self._query(relation_1)
        boundary_QD = boundary_D.expand(reached.level_sizes[0], -1)
        states_PD, sums_PD = boundary_QD, boundary_QD
        for layer, messages in enumerate(self._layers()):
            if layer:
                states_PD = self.combine[layer - 1](sums_PD, states_PD)
            sources, relations = torch.cat(list(reached.links[: layer + 1])).unbind(1)
            weights_RH = self._weights(messages, query_W)
            sent = messages.apply_to(take_rows(states_PD, sources), take_rows(weights_RH, relations))
            ends = torch.cat(list(reached.link_ends[: layer + 1]))
            sums_PD = _SumOverEdges.apply(
                torch.cat([boundary_QD, sent]),
                reached.arriving[layer],
                reached.arrival_offsets[layer],
                torch.cat(list(reached.destinations[: layer + 1])),
                F.pad(ends, (1, 0)),
            )
        return self.score(sums_PD, states_PD, query_W), self.score.of_zero(query_W)

    def score_all(self, relation_1: Tensor, starts_Q: Tensor, graph: WholeGraph, n_entities: int) -> Tensor:
        """The scores of all entities, float [N, Q]; the same function as `score_reached`.

        Args:
            relation_1: int64 [1], the relation asked for from all starts.
            starts_Q: int64, entities.
            graph: the edges, with inverses.
            n_entities: N.
        """
        query_W, boundary_D = self._query(relation_1)
        is_start_NQ1 = (torch.arange(n_entities, device=starts_Q.device)[:, None] == starts_Q)[..., None]
        boundary_NQD = is_start_NQ1 * boundary_D
        states_NQD, sums_NQD = boundary_NQD, boundary_NQD
        edges = (graph.relations_by_cell, graph.cell_offsets, graph.cells_by_relation, graph.relation_offsets)
        for layer, messages in enumerate(self._layers()):
            if layer:
                states_NQD = self.combine[layer - 1](sums_NQD, states_NQD)
            mixed_CH = _SumOverEdges.apply(self._weights(messages, query_W), *edges)
            mixed_HNN = mixed_CH.T.reshape(-1, n_entities, n_entities)
            sums_NQD = boundary_NQD + _mix(mixed_HNN, states_NQD)
        return self.score(sums_NQD, states_NQD, query_W)

    def _layers(self) -> Iterator[MessageWeights]:
        for messages in self.messages:
            assert isinstance(messages, MessageWeights)
            yield messages

    def _query(self, relation_1: Tensor) -> tuple[Tensor, Tensor]:
        """The query's vector, [W], and the state of its start, [D]."""
        query_W = self.queries(relation_1)[0]
        return query_W, self.start(query_W)

    def _weights(self, messages: MessageWeights, query_W: Tensor) -> Tensor:
        """The weights of a layer's messages over each relation, float [R, H]."""
        weights_RH = messages(messages.map_query(query_W), messages.relations.weight)
        return F.dropout(weights_RH, self.config.message_dropout, self.training)


def _mix(mixed_HNN: Tensor, states_NQD: Tensor) -> Tensor:
    """Sends the states through one matrix for each part of them, float [N, Q, D]."""
    n_parts = mixed_HNN.shape[0]
    n_entities, n_starts, d_model = states_NQD.shape
    parts_HNX = states_NQD.reshape(n_entities, n_starts, n_parts, d_model // n_parts).permute(2, 0, 1, 3).flatten(2)
    sums_HNQX = _MatrixProducts.apply(mixed_HNN, parts_HNX).reshape(n_parts, n_entities, n_starts, d_model // n_parts)
    return sums_HNQX.permute(1, 2, 0, 3).flatten(2)
