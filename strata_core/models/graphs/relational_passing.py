"""Message passing over typed edges that is conditioned on a query, from the nodes where the query starts.

The generalised Bellman-Ford iteration of NBFNet (Zhu et al. 2021), with one query vector for each step, so that a
query that is a path of relations is walked: in step t the messages are those that its t-th step lets through. All steps
share their weights, and a query's states stand still when its own steps are over, whatever the other queries of
the batch have: a walk of twice the length is the same iteration, twice as often. No parameter belongs to an entity.

The states of the start are not added to the sums of every step, as NBFNet does: a query that says step by step where to
go wants them forgotten.

Nothing has a bias, so a node that no message reached is exactly zero. `limit` shortens what is too long and nothing
else: a node reached by several ways is one that was reached, and a weak message stays as weak as it is, however many
steps follow (with a gain above one at zero, what leaks through a wrong edge grows to full size).

Shapes: N nodes, E edges, G graphs, each with one query, T steps, D width, H heads, W width of a query's vector, K rank.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from strata_core.errors import RecipeError
from strata_core.models.graphs.segments import sum_rows, take_rows

MESSAGES = ("distmult", "gate")


@dataclass(frozen=True)
class PassingConfig:
    """The shape of the message passing.

    Attributes:
        n_relations: of edges, inverse ones counted where the edges have them.
        d_model: width of the node states.
        d_query: width of the query vectors.
        rank: width in which a query and a relation meet.
        message: "distmult" multiplies a state by a vector, "gate" each of its heads by a number from 0 to 1.
        n_heads: of gates; divides d_model where messages are gates.
        dropout: probability, on what is sent.
        relation_part: whether messages have a part that is the relation's alone, whatever the query's step is.

    Raises:
        RecipeError: a message that does not exist, or gates that do not divide the width.
    """

    n_relations: int
    d_model: int = 64
    d_query: int = 64
    rank: int = 32
    message: str = "gate"
    n_heads: int = 16
    dropout: float = 0.0
    relation_part: bool = False

    def __post_init__(self) -> None:
        if self.message not in MESSAGES:
            raise RecipeError(f"model.message is {self.message!r}", hint=f"choose one of {', '.join(MESSAGES)}")
        if self.message == "gate" and self.d_model % self.n_heads:
            raise RecipeError(
                f"model.n_heads {self.n_heads} does not divide model.d_model {self.d_model}",
                hint="choose a divisor of d_model",
            )


@dataclass(frozen=True)
class Graphs:
    """A block-diagonal batch of graphs.

    Attributes:
        edges_E3: int64, source, relation and destination; nodes numbered through the batch, in any fixed order, best by
            relation.
        edge_graphs_E, node_graphs_N: int64, the graph of each edge and node.
    """

    edges_E3: Tensor
    edge_graphs_E: Tensor
    node_graphs_N: Tensor


def with_inverses(graphs: Graphs, n_relations: int) -> Graphs:
    """The graphs with each edge backwards too, as relation + n_relations; these edges stand behind the others."""
    sources_E, relations_E, destinations_E = graphs.edges_E3.unbind(1)
    backwards_E3 = torch.stack([destinations_E, relations_E + n_relations, sources_E], dim=1)
    return Graphs(
        torch.cat([graphs.edges_E3, backwards_E3]), torch.cat([graphs.edge_graphs_E] * 2), graphs.node_graphs_N
    )


class MessageWeights(nn.Module):
    """What a step of a query makes of a state that goes over an edge of a relation.

    out((query_map q) * r): a map of the pair of low rank, to one number for each part of the state; with a part of the
    relation's alone, out((1 + query_map q) * r).
    """

    def __init__(self, config: PassingConfig) -> None:
        super().__init__()
        self.config = config
        self.relations = nn.Embedding(config.n_relations, config.rank)
        self.query_map = nn.Linear(config.d_query, config.rank, bias=False)
        self.is_gate = config.message == "gate"
        self.out = nn.Linear(config.rank, config.n_heads if self.is_gate else config.d_model, bias=self.is_gate)

    def initial_stds(self) -> dict[str, float]:
        """Keeps variances: what is multiplied is of unit size."""
        return {
            "relations.weight": 1.0,
            "query_map.weight": self.config.d_query**-0.5,
            "out.weight": self.config.rank**-0.5,
        }

    def forward(self, mapped_query: Tensor, relation_vectors: Tensor) -> Tensor:
        """float [..., K] (of `map_query` and `relation_vectors`) to float [..., H or D]; the axes broadcast."""
        scores = self.out(mapped_query * relation_vectors)
        return torch.sigmoid(scores) if self.is_gate else scores

    def map_query(self, query: Tensor) -> Tensor:
        """float [..., W] to float [..., K]."""
        mapped = self.query_map(query)
        return 1 + mapped if self.config.relation_part else mapped

    def relation_vectors(self, relation: Tensor) -> Tensor:
        """int64 [...] to float [..., K]."""
        return take_rows(self.relations.weight, relation.reshape(-1)).reshape(*relation.shape, self.config.rank)

    def apply_to(self, states: Tensor, weights: Tensor) -> Tensor:
        """float [..., D] weighed by float [..., H or D]."""
        if not self.is_gate:
            return states * weights
        heads = states.unflatten(-1, (self.config.n_heads, -1))
        return (heads * weights[..., None]).flatten(-2)


def limit(states: Tensor) -> Tensor:
    """x / max(1, rms(x)) over the last axis."""
    return states * torch.rsqrt(states.square().mean(dim=-1, keepdim=True).clamp(min=1.0))


class Update(nn.Module):
    """limit(sum + W2 relu(W1 sum)): what a node makes of the sum of its messages."""

    def __init__(self, config: PassingConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.d_model, config.d_model, bias=False)
        self.outer = nn.Linear(config.d_model, config.d_model, bias=False)

    def initial_stds(self) -> dict[str, float]:
        """Starts as the identity."""
        return {"inner.weight": self.inner.in_features**-0.5, "outer.weight": 0.0}

    def forward(self, sums: Tensor) -> Tensor:
        """float [..., D] to float [..., D]."""
        return limit(sums + self.outer(torch.relu(self.inner(sums))))


class RelationalPassing(nn.Module):
    """The iteration."""

    def __init__(self, config: PassingConfig) -> None:
        super().__init__()
        self.config = config
        self.weights = MessageWeights(config)
        self.update = Update(config)
        self.dropout = nn.Dropout(config.dropout)

    def states_by_step(
        self, boundary_ND: Tensor, graphs: Graphs, mapped_TGK: Tensor, lengths_G: Tensor
    ) -> list[Tensor]:
        """The states before the first step and after each.

        Args:
            boundary_ND: float, states before the first step: zero but at the nodes where queries start.
            graphs: the nodes and edges.
            mapped_TGK: float, the vector of each step, mapped by `weights.map_query`; what stands behind a query's own
                steps is not used.
            lengths_G: int64, steps of each query, 0 to T.

        Returns:
            T + 1 times float [N, D].
        """
        states_ND = boundary_ND
        all_states = [states_ND]
        vectors = self.edge_vectors(graphs, lengths_G.shape[0])
        for step in range(mapped_TGK.shape[0]):
            sums_ND = self.collect(states_ND, graphs, mapped_TGK[step], vectors)
            walking_N1 = (lengths_G > step).index_select(0, graphs.node_graphs_N)[:, None]
            states_ND = torch.where(walking_N1, self.update(sums_ND), states_ND)
            all_states.append(states_ND)
        return all_states

    def edge_vectors(self, graphs: Graphs, n_graphs: int) -> Tensor:
        """Relations as the messages take them, for all steps: of each edge, or in one graph of each relation."""
        if n_graphs == 1:
            return self.weights.relations.weight
        return self.weights.relation_vectors(graphs.edges_E3[:, 1])

    def collect(self, states_ND: Tensor, graphs: Graphs, mapped_GK: Tensor, vectors: Tensor) -> Tensor:
        """The sum of the messages that come to each node in one step, float [N, D].

        In one graph the weights depend on the relation alone: they are made once for each and taken by the edges.

        Args:
            states_ND: float.
            graphs: the nodes and edges.
            mapped_GK: float, the step's vectors, mapped.
            vectors: of `edge_vectors`.
        """
        sources_E, relations_E, destinations_E = graphs.edges_E3.unbind(1)
        if mapped_GK.shape[0] == 1:
            weights_EX = take_rows(self.weights(mapped_GK, vectors), relations_E)
        else:
            weights_EX = self.weights(take_rows(mapped_GK, graphs.edge_graphs_E), vectors)
        messages_ED = self.weights.apply_to(take_rows(states_ND, sources_E), weights_EX)
        return sum_rows(self.dropout(messages_ED), destinations_E, states_ND.shape[0])
