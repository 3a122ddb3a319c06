"""The graph reasoner: it walks a query's branches through graphs and tells where it came to, how, and how surely.

Shapes as for ReasoningBatch, and: D width of states, W width of query vectors, K rank of messages, V width of path
vectors, R relations. In `branch_rows_KM` alone, K is the number of branches.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from strata_core.corpus.graphs.example import N_STATUSES, Mode
from strata_core.errors import RecipeError
from strata_core.models.config import ModelConfig
from strata_core.models.graphs.graph_heads import (
    ConfidenceHead,
    CosineLink,
    NumberHead,
    PathSelector,
    PerceptronLink,
    StatusHead,
    effective_number,
)
from strata_core.models.graphs.path_encoder import encode_paths, last_nodes
from strata_core.models.graphs.path_search import search_paths
from strata_core.models.graphs.query_encoder import QueryEncoder
from strata_core.models.graphs.reasoning_batch import ReasoningBatch
from strata_core.models.graphs.relational_passing import Graphs, PassingConfig, RelationalPassing, with_inverses
from strata_core.models.graphs.segments import sum_rows, take_rows
from strata_core.models.perceptron import Perceptron

LINK_HEADS = ("cosine", "mlp")


@dataclass(frozen=True)
class ReasonerConfig(ModelConfig):
    """The shape of a graph reasoner.

    Attributes:
        n_relations: of edges.
        n_node_types: of nodes.
        d_model: width of states and of query vectors.
        message, message_rank, n_heads: of the messages, see PassingConfig.
        dropout: probability, on messages and in heads.
        inverse_edges: whether walks may go over edges backwards.
        link_head, link_scale: "cosine" times the scale, or "mlp".
        largest_number: what the number head tells at most.
        on_policy_selection: whether paths are selected among those that the model's own search finds.
        search_width: paths that the search keeps for each branch.

    Raises:
        RecipeError: a value that cannot be.
    """

    n_relations: int
    n_node_types: int
    d_model: int = 64
    message: str = "gate"
    message_rank: int = 32
    n_heads: int = 16
    dropout: float = 0.0
    inverse_edges: bool = False
    link_head: str = "cosine"
    link_scale: float = 2.0
    largest_number: int = 16
    on_policy_selection: bool = False
    search_width: int = 8

    def __post_init__(self) -> None:
        if self.link_head not in LINK_HEADS:
            raise RecipeError(f"model.link_head is {self.link_head!r}", hint=f"choose one of {', '.join(LINK_HEADS)}")
        self.passing()

    def passing(self) -> PassingConfig:
        """The shape of the walk."""
        return PassingConfig(
            n_relations=self.n_relations * (2 if self.inverse_edges else 1),
            d_model=self.d_model,
            d_query=self.d_model,
            rank=self.message_rank,
            message=self.message,
            n_heads=self.n_heads,
            dropout=self.dropout,
            relation_part=True,
        )


@dataclass(frozen=True)
class Walk:
    """What the walk of a batch's queries came to.

    Attributes:
        mapped_TSK: float, the steps' vectors as the messages take them.
        steps_TSW: float, the steps' vectors.
        walked: T + 1 times float [N, D], states of branches' nodes before the first step and after each.
        states_MD: float, of examples' nodes, the branches brought together.
        signs_BD: float, what the status is told from.
    """

    mapped_TSK: Tensor
    steps_TSW: Tensor
    walked: list[Tensor]
    states_MD: Tensor
    signs_BD: Tensor


@dataclass(frozen=True)
class Candidates:
    """Paths to select from: those given, or those found.

    Attributes:
        edges_PT, lengths_P, branches_P, supports_P: as in ReasoningBatch.
        real_P: bool; rows that are no path are False.
    """

    edges_PT: Tensor
    lengths_P: Tensor
    branches_P: Tensor
    supports_P: Tensor
    real_P: Tensor


@dataclass(frozen=True)
class Selection:
    """What is made of the candidates.

    Attributes:
        candidates: the paths.
        examples_P: int64, whose each path is.
        scores_P: float, above 0 where the path is selected.
        states_PD, ends_PD: float, the paths' states and those of their last nodes.
    """

    candidates: Candidates
    examples_P: Tensor
    scores_P: Tensor
    states_PD: Tensor
    ends_PD: Tensor


class GraphReasoner(nn.Module):
    """The parts are called one by one; what no objective asks for is not computed."""

    def __init__(self, config: ReasonerConfig) -> None:
        super().__init__()
        self.config = config
        width = config.d_model
        passing = config.passing()
        self.query_encoder = QueryEncoder(passing.n_relations, len(Mode), width)
        self.start = nn.Parameter(torch.ones(width))
        self.passing = RelationalPassing(passing)
        self.branch = nn.Linear(width, width, bias=False)
        self.answer_head = Perceptron(width, width, 1, config.dropout)
        self.status_head = StatusHead(width, N_STATUSES, config.dropout)
        self.number_head = NumberHead(width, width, config.largest_number + 1)
        self.path_selector = PathSelector(width, config.dropout)
        self.path_projection = nn.Linear(2 * width, width, bias=False)
        self.query_projection = nn.Linear(width, width, bias=False)
        self.confidence_head = ConfidenceHead(width)
        self.next_hop_head = nn.Linear(config.message_rank, 1, bias=False)
        self.node_head = Perceptron(width, width, 1, config.dropout)
        self.node_types = nn.Embedding(config.n_node_types, width)
        self.surroundings = RelationalPassing(passing)
        self.edge_query = nn.Parameter(torch.ones(width))
        self.link_head: nn.Module = PerceptronLink(width)
        if config.link_head == "cosine":
            self.link_head = CosineLink(width, config.link_scale)
        self.relation_head = Perceptron(2 * width, width, config.n_relations, config.dropout)
        for name in ("status_temperature", "confidence_temperature"):
            self.register_buffer(name, torch.ones(()))
        self.status_temperature: Tensor
        self.confidence_temperature: Tensor

    def initial_stds(self) -> dict[str, float]:
        """Unit vectors to begin with; maps that keep variances."""
        width = self.config.d_model
        return {
            "start": 1.0,
            "edge_query": 1.0,
            "node_types.weight": 1.0,
            "branch.weight": width**-0.5,
            "path_projection.weight": (2 * width) ** -0.5,
            "query_projection.weight": width**-0.5,
            "next_hop_head.weight": self.config.message_rank**-0.5,
        }

    def walk(self, batch: ReasoningBatch) -> Walk:
        """Walks all branches and brings them together."""
        steps_TSW = self.query_encoder(batch.steps_ST)
        mapped_TSK = self.passing.weights.map_query(steps_TSW)
        walked = self.passing.states_by_step(
            self._at_starts(batch), self._branch_graphs(batch), mapped_TSK, batch.lengths_S
        )
        states_MD = self._meet(walked[-1], batch.branch_rows_KM)
        signs_BD = self.status_head.signs_of(states_MD, batch.node_examples_M, batch.n_examples)
        return Walk(mapped_TSK, steps_TSW, walked, states_MD, signs_BD)

    def _at_starts(self, batch: ReasoningBatch) -> Tensor:
        n_nodes = batch.branch_nodes_N.shape[0]
        at_start_N = torch.zeros(n_nodes, device=self.start.device, dtype=self.start.dtype)
        at_start_N = at_start_N.index_fill(0, batch.branch_starts_S, 1.0)
        return at_start_N[:, None] * self.start

    def _branch_graphs(self, batch: ReasoningBatch) -> Graphs:
        graphs = Graphs(batch.branch_edges_E3, batch.edge_branches_E, batch.node_branches_N)
        return with_inverses(graphs, self.config.n_relations) if self.config.inverse_edges else graphs

    def _example_graphs(self, batch: ReasoningBatch) -> Graphs:
        graphs = Graphs(batch.edges_F3, batch.edge_examples_F, batch.node_examples_M)
        return with_inverses(graphs, self.config.n_relations) if self.config.inverse_edges else graphs

    def _meet(self, states_ND: Tensor, branch_rows_KM: Tensor) -> Tensor:
        """The product over branches: a node has what all branches that the query has come to."""
        neutral_1D = states_ND.new_ones(1, states_ND.shape[1])
        padded_ND = torch.cat([self.branch(states_ND), neutral_1D, torch.zeros_like(neutral_1D)])
        met_MD = take_rows(padded_ND, branch_rows_KM[0])
        for rows_M in branch_rows_KM[1:]:
            met_MD = met_MD * take_rows(padded_ND, rows_M)
        return met_MD

    def answers(self, walk: Walk) -> Tensor:
        """Scores of nodes as answers, float [M], for a softmax over each example's nodes."""
        return self.answer_head(walk.states_MD)[..., 0]

    def statuses(self, walk: Walk) -> Tensor:
        """Scores of graph_example.Status 0 to 2, float [B, 3]."""
        return self.status_head.statuses(walk.signs_BD)

    def support(self, walk: Walk) -> Tensor:
        """How well the query is supported, log-odds, float [B]."""
        return self.status_head.support(walk.signs_BD)[..., 0]

    def numbers(self, walk: Walk, batch: ReasoningBatch) -> Tensor:
        """Scores of numbers 0 to largest_number, float [B, numbers]; the answers are not taught through them."""
        modes_BW = self.query_encoder.mode(batch.modes_B)
        mapped_BK = self.passing.weights.map_query(modes_BW)
        graphs = self._example_graphs(batch)
        vectors = self.passing.edge_vectors(graphs, batch.n_examples)
        levels_MD = self.passing.update(self.passing.collect(walk.states_MD, graphs, mapped_BK, vectors))
        answers_B = effective_number(self.answers(walk).detach(), batch.node_examples_M, batch.n_examples)
        return self.number_head(walk.states_MD, levels_MD, batch.node_examples_M, modes_BW, answers_B)

    def on_paths(self, walk: Walk, batch: ReasoningBatch) -> Tensor:
        """Log-odds of nodes lying on supporting paths, float [M].

        The walk back from where the branches met, over the same steps in reverse: a node lies on a path where both
        walks pass at the same step.
        """
        forwards = self._branch_graphs(batch)
        backwards = Graphs(forwards.edges_E3.flip(1), forwards.edge_graphs_E, forwards.node_graphs_N)
        states_ND = take_rows(walk.states_MD, batch.branch_nodes_N)
        passed_ND = torch.zeros_like(states_ND)
        vectors = self.passing.edge_vectors(backwards, batch.lengths_S.shape[0])
        for step in reversed(range(walk.mapped_TSK.shape[0])):
            walking_N1 = (batch.lengths_S > step).index_select(0, batch.node_branches_N)[:, None]
            passed_ND = passed_ND + states_ND * walk.walked[step + 1] * walking_N1
            sums_ND = self.passing.collect(states_ND, backwards, walk.mapped_TSK[step], vectors)
            states_ND = torch.where(walking_N1, self.passing.update(sums_ND), states_ND)
        passed_ND = passed_ND + states_ND * walk.walked[0]
        passed_MD = sum_rows(passed_ND, batch.branch_nodes_N, batch.node_types_M.shape[0])
        return self.node_head(passed_MD)[..., 0]

    def next_hops(self, walk: Walk, batch: ReasoningBatch) -> Tensor:
        """Scores of the edges to choose from, float [C], for a softmax over those of each item."""
        mapped_K = walk.mapped_TSK[batch.hop_steps_I, batch.hop_branches_I]
        relations_C = batch.edges_F3[:, 1].index_select(0, batch.choice_edges_C)
        met_CK = take_rows(mapped_K, batch.choice_items_C) * self.passing.weights.relation_vectors(relations_C)
        return self.next_hop_head(met_CK)[..., 0]

    def candidates(self, walk: Walk, batch: ReasoningBatch) -> Candidates:
        """The paths to select from, by `on_policy_selection`."""
        if not self.config.on_policy_selection:
            real_P = torch.ones_like(batch.path_supports_P)
            return Candidates(
                batch.path_edges_PT, batch.path_lengths_P, batch.path_branches_P, batch.path_supports_P, real_P
            )
        return self.found(walk, batch)

    def found(self, walk: Walk, batch: ReasoningBatch) -> Candidates:
        """Paths that the model's own search finds, search_width for each branch."""
        relations = torch.cat([batch.edges_F3[:, 1], batch.edges_F3.new_zeros(1)])

        def score_edges(step: int, edges_SWO: Tensor) -> Tensor:
            vectors = self.passing.weights.relation_vectors(relations[edges_SWO])
            return self.next_hop_head(walk.mapped_TSK[step][:, None, None] * vectors)[..., 0]

        starts_S = batch.branch_nodes_N.index_select(0, batch.branch_starts_S)
        edges_SWT, found_SW = search_paths(
            score_edges,
            starts_S,
            batch.lengths_S,
            batch.out_edges_MO,
            batch.edges_F3,
            width=self.config.search_width,
            n_steps=batch.steps_ST.shape[1],
        )
        n_branches, width, _ = edges_SWT.shape
        branches_SW = torch.arange(n_branches, device=edges_SWT.device)[:, None].expand(-1, width)
        lengths_SW = torch.where(found_SW, batch.lengths_S[:, None], -1)
        supports_SW = found_SW & _among_supporting(edges_SWT, lengths_SW, batch)
        return Candidates(
            edges_SWT.flatten(0, 1),
            lengths_SW.flatten(),
            branches_SW.flatten(),
            supports_SW.flatten(),
            found_SW.flatten(),
        )

    def select(self, walk: Walk, batch: ReasoningBatch, candidates: Candidates) -> Selection:
        """Scores the candidates."""
        states_PD = encode_paths(
            self.passing,
            self.start,
            walk.mapped_TSK,
            batch.lengths_S,
            batch.edges_F3[:, 1],
            candidates.edges_PT,
            candidates.lengths_P,
            candidates.branches_P,
        )
        starts_S = batch.branch_nodes_N.index_select(0, batch.branch_starts_S)
        starts_P = starts_S.index_select(0, candidates.branches_P)
        ends_P = last_nodes(candidates.edges_PT, candidates.lengths_P, batch.edges_F3, starts_P)
        ends_PD = take_rows(walk.states_MD, ends_P)
        examples_P = batch.branch_examples_S.index_select(0, candidates.branches_P)
        return Selection(candidates, examples_P, self.path_selector(states_PD, ends_PD), states_PD, ends_PD)

    def alignment(self, walk: Walk, batch: ReasoningBatch, selection: Selection) -> Tensor:
        """The cosine of each candidate with its query, float [P]."""
        given_TS1 = (torch.arange(walk.steps_TSW.shape[0], device=batch.lengths_S.device)[:, None] < batch.lengths_S)[
            ..., None
        ]
        queries_SV = self.query_projection((walk.steps_TSW * given_TS1).sum(0))
        features_P = torch.cat([selection.states_PD, selection.states_PD * selection.ends_PD], dim=-1)
        paths_PV = self.path_projection(features_P)
        queries_PV = take_rows(queries_SV, selection.candidates.branches_P)
        return F.cosine_similarity(paths_PV, queries_PV, dim=-1, eps=1e-6)

    def confidence(self, walk: Walk, selection: Selection) -> Tensor:
        """Log-odds of the selection being right, float [B]; nothing but the head learns by it."""
        scores_P = torch.where(selection.candidates.real_P, selection.scores_P.detach(), -ConfidenceHead.WIDEST)
        return self.confidence_head(walk.signs_BD.detach(), scores_P, selection.examples_P)

    def node_states(self, batch: ReasoningBatch) -> Tensor:
        """What is known of nodes whatever is asked, float [M, D]: their types and their surroundings."""
        types_MD = take_rows(self.node_types.weight, batch.node_types_M)
        mapped_BK = self.surroundings.weights.map_query(self.edge_query.expand(batch.n_examples, -1))
        graphs = self._example_graphs(batch)
        vectors = self.surroundings.edge_vectors(graphs, batch.n_examples)
        return self.surroundings.update(self.surroundings.collect(types_MD, graphs, mapped_BK, vectors) + types_MD)

    def links(self, nodes_MD: Tensor, batch: ReasoningBatch) -> Tensor:
        """Log-odds of pairs of nodes being linked, float [L]."""
        return self.link_head(nodes_MD, batch.links_L2)

    def relations(self, nodes_MD: Tensor, batch: ReasoningBatch) -> Tensor:
        """Scores of the relations of edges, from their nodes alone, float [J, R]."""
        edges_J3 = batch.edges_F3.index_select(0, batch.relation_edges_J)
        ends = torch.cat([take_rows(nodes_MD, edges_J3[:, 0]), take_rows(nodes_MD, edges_J3[:, 2])], dim=-1)
        return self.relation_head(ends)


def _among_supporting(edges_SWT: Tensor, lengths_SW: Tensor, batch: ReasoningBatch) -> Tensor:
    """Which found paths are supporting ones that were given, bool [S, W]."""
    n_edges = batch.edges_F3.shape[0]
    nothing_1T = batch.path_edges_PT.new_full((1, batch.path_edges_PT.shape[1]), n_edges)
    supports_P = torch.cat([batch.path_supports_P, batch.path_supports_P.new_zeros(1)])
    lengths_P = torch.cat([batch.path_lengths_P, batch.path_lengths_P.new_full((1,), -2)])
    given_SXT = torch.cat([batch.path_edges_PT, nothing_1T])[batch.branch_paths_SX]
    same_SWX = (edges_SWT[:, :, None] == given_SXT[:, None]).all(-1)
    same_SWX &= lengths_SW[:, :, None] == lengths_P[batch.branch_paths_SX][:, None]
    return (same_SWX & supports_P[batch.branch_paths_SX][:, None]).any(-1)
