"""The losses of the graph reasoner by name: what parameters each reaches, what it is a sum over, and the sum."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import torch
from torch import Tensor, nn

from strata_core.corpus.graphs.batch import owners_of
from strata_core.corpus.graphs.example import N_STATUSES, NUMBER_MODES, PathKind, Status
from strata_core.corpus.graphs.reading import GraphReader
from strata_core.corpus.treebanks.labels import NO_LABEL
from strata_core.evaluation.path_selection import selection_f1
from strata_core.models.graphs.graph_reasoner import GraphReasoner, Selection, Walk
from strata_core.models.graphs.reasoning_batch import ReasoningBatch
from strata_core.models.graphs.segments import sum_rows
from strata_core.objectives import graph_answers, graph_paths
from strata_core.objectives.structure import class_loss
from strata_core.recipes.graph import GRAPH_WEIGHTS
from strata_core.tasks.graph_queries.negatives import count_non_edges

_MESSAGES = ("query_encoder.relations.", "passing.weights.relations.", "passing.weights.query_map.")
_WALK = (*_MESSAGES, "passing.", "start", "branch.")
_NODES = ("node_types.", "surroundings.", "edge_query")
_REACHED: dict[str, tuple[str, ...]] = {
    "answer": (*_WALK, "answer_head."),
    "node": (*_WALK, "node_head."),
    "link": (*_NODES, "link_head."),
    "next_hop": (*_MESSAGES, "next_hop_head."),
    "relation": (*_NODES, "relation_head."),
    "path_selection": (*_WALK, "path_selector."),
    "path_alignment": (*_WALK, "path_projection.", "query_projection."),
    "verification": (*_WALK, "status_head.signs.", "status_head.support."),
    "status": (*_WALK, "status_head.signs.", "status_head.statuses."),
    "count": (*_WALK, "number_head.", "query_encoder.modes."),
    "confidence": ("confidence_head.",),
    "pair_margin": (*_WALK, "status_head.signs.", "status_head.support."),
}
_SELECTING = {"path_selection", "path_alignment", "confidence"}
_OF_NODES = {"link", "relation"}


def freeze_unreached(model: nn.Module, losses: Collection[str], *, query_encoder: bool) -> None:
    """Freezes the parameters that no loss reaches, and the query encoder where asked for."""
    reached = tuple(prefix for loss in losses for prefix in _REACHED[loss])
    for name, parameter in model.named_parameters():
        frozen = query_encoder and name.startswith("query_encoder.")
        parameter.requires_grad_(name.startswith(reached) and not frozen)


def loss_counts(reader: GraphReader, losses: Collection[str], relation_samples: int) -> dict[str, np.ndarray]:
    """For each loss and example of a split, how many things the loss is a sum over; int64 [examples] each."""
    arrays = reader.arrays
    statuses, edges = np.asarray(arrays["statuses"]), reader.edge_counts
    known = statuses < N_STATUSES
    n_answers, asked = np.diff(arrays["answer_offsets"]), np.diff(arrays["branch_offsets"]) > 0
    supporting, hops = _supporting_paths(arrays)
    drawn = np.minimum(edges, relation_samples) if relation_samples else edges
    counts = {
        "answer": n_answers > 0,
        "node": reader.node_counts,
        "link": edges + np.where(_has_non_edges(reader), edges, 0) if "link" in losses else edges,
        "next_hop": hops,
        "relation": drawn,
        "path_selection": asked,
        "path_alignment": supporting,
        "verification": known,
        "status": known,
        "count": np.isin(arrays["modes"], NUMBER_MODES) & (np.asarray(arrays["numbers"]) >= 0),
        "confidence": asked,
        "pair_margin": (np.asarray(arrays["twins"]) >= 0) & (statuses != Status.SUPPORTED),
    }
    return {name: np.asarray(counts[name]).astype(np.int64) for name in GRAPH_WEIGHTS if name in losses}


def _supporting_paths(arrays: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Supporting paths of each example, and the places on them that a query's steps cover."""
    owners = owners_of(arrays["path_offsets"])
    supports = np.asarray(arrays["path_kinds"]) == PathKind.SUPPORTING
    branches = arrays["branch_offsets"][owners] + arrays["path_branches"]
    lengths = np.minimum(np.diff(arrays["path_edge_offsets"]), np.diff(arrays["step_offsets"])[branches])
    n_examples = len(arrays["path_offsets"]) - 1
    number = np.bincount(owners[supports], minlength=n_examples)
    places = np.bincount(owners[supports], weights=lengths[supports], minlength=n_examples)
    return number, places.astype(np.int64)


def _has_non_edges(reader: GraphReader) -> np.ndarray:
    """Whether the graph of each example has a pair of different nodes that no edge links, bool [examples]."""
    nodes, arrays = np.diff(reader.arrays["node_offsets"]), reader.arrays
    n_edges = np.diff(arrays["edge_offsets"])
    has = n_edges < nodes * (nodes - 1)
    for graph in np.flatnonzero(~has & (nodes > 1)):
        edges = np.asarray(arrays["edges"][slice(*arrays["edge_offsets"][graph : graph + 2])], dtype=np.int64)
        owners = np.zeros(len(edges), dtype=np.int64)
        has[graph] = count_non_edges(nodes[graph : graph + 1].astype(np.int64), edges, owners)[0] > 0
    return np.asarray(has[arrays["example_graphs"]])


class ReasoningLosses:
    """The sums of the losses that have a weight.

    Args:
        losses: their names.
        pair_margin_size: how far a missing-edge example's support score has to lie below its twin's.
    """

    def __init__(self, losses: Collection[str], pair_margin_size: float) -> None:
        self._losses = set(losses)
        self._margin = pair_margin_size

    def sums(
        self, model: GraphReasoner, batch: ReasoningBatch, walk: Walk | None = None, selection: Selection | None = None
    ) -> dict[str, Tensor]:
        """Each loss summed over the batch, in the order of GRAPH_WEIGHTS.

        Args:
            model: whose losses.
            batch: the examples.
            walk, selection: the model's of this batch, where they are there already.
        """
        walk = walk or model.walk(batch)
        sums = self._answer_sums(model, batch, walk) | self._path_sums(model, batch, walk)
        if self._losses & _SELECTING:
            selection = selection or model.select(walk, batch, model.candidates(walk, batch))
            sums |= self._selection_sums(model, batch, walk, selection)
        if self._losses & _OF_NODES:
            sums |= self._node_sums(model, batch)
        return {name: sums[name] for name in GRAPH_WEIGHTS if name in sums}

    def _answer_sums(self, model: GraphReasoner, batch: ReasoningBatch, walk: Walk) -> dict[str, Tensor]:
        wanted, sums = self._losses, {}
        known_B = batch.statuses_B < N_STATUSES
        if "answer" in wanted:
            sums["answer"] = graph_answers.answer_loss(
                model.answers(walk), batch.node_examples_M, batch.answers_A, batch.answer_examples_A, batch.n_examples
            )
        if "status" in wanted:
            labels_B = torch.where(known_B, batch.statuses_B, NO_LABEL)
            sums["status"] = class_loss(model.statuses(walk), labels_B)
        if wanted & {"verification", "pair_margin"}:
            support_B = model.support(walk)
        if "verification" in wanted:
            supported_B = batch.statuses_B == int(Status.SUPPORTED)
            sums["verification"] = graph_answers.verification_loss(support_B, supported_B, known_B)
        if "pair_margin" in wanted:
            sums["pair_margin"] = graph_answers.pair_margin_loss(support_B, batch.pairs_Q2, self._margin)
        if "count" in wanted:
            capped_B = batch.numbers_B.clamp(max=model.config.largest_number)
            labels_B = torch.where(batch.numbers_B < 0, NO_LABEL, capped_B)
            sums["count"] = class_loss(model.numbers(walk, batch), labels_B)
        return sums

    def _path_sums(self, model: GraphReasoner, batch: ReasoningBatch, walk: Walk) -> dict[str, Tensor]:
        wanted, sums = self._losses, {}
        if "node" in wanted:
            sums["node"] = graph_paths.node_loss(model.on_paths(walk, batch), batch.support_nodes_M)
        if "next_hop" in wanted:
            sums["next_hop"] = graph_paths.next_hop_loss(
                model.next_hops(walk, batch), batch.choice_items_C, batch.choice_supports_C, len(batch.hop_steps_I)
            )
        return sums

    def _selection_sums(
        self, model: GraphReasoner, batch: ReasoningBatch, walk: Walk, selection: Selection
    ) -> dict[str, Tensor]:
        wanted, sums = self._losses, {}
        supports_P, real_P = selection.candidates.supports_P, selection.candidates.real_P
        if "path_selection" in wanted:
            sums["path_selection"] = graph_paths.path_selection_loss(
                selection.scores_P, supports_P, real_P, selection.examples_P, batch.n_examples
            )
        if "path_alignment" in wanted:
            cosines_P = model.alignment(walk, batch, selection)
            sums["path_alignment"] = graph_paths.path_alignment_loss(
                cosines_P, supports_P, real_P, selection.examples_P, batch.n_examples
            )
        if "confidence" in wanted:
            sums["confidence"] = graph_answers.confidence_loss(
                model.confidence(walk, selection), selection_quality(selection, batch), asked_examples(batch)
            )
        return sums

    def _node_sums(self, model: GraphReasoner, batch: ReasoningBatch) -> dict[str, Tensor]:
        sums = {}
        nodes_MD = model.node_states(batch)
        if "link" in self._losses:
            sums["link"] = graph_paths.link_loss(model.links(nodes_MD, batch), batch.link_exists_L)
        if "relation" in self._losses:
            relations_J = batch.edges_F3[:, 1].index_select(0, batch.relation_edges_J)
            sums["relation"] = graph_paths.relation_loss(model.relations(nodes_MD, batch), relations_J)
        return sums


def selection_quality(selection: Selection, batch: ReasoningBatch) -> Tensor:
    """Set-F1 of the selected paths against the given supporting ones, float [B]."""
    examples_P = batch.branch_examples_S.index_select(0, batch.path_branches_P)
    wanted_B = sum_rows(batch.path_supports_P.long(), examples_P, batch.n_examples)
    selected_P = (selection.scores_P > 0) & selection.candidates.real_P
    return selection_f1(selected_P, selection.candidates.supports_P, selection.examples_P, wanted_B)


def asked_examples(batch: ReasoningBatch) -> Tensor:
    """Whether each example has a query, bool [B]."""
    return torch.zeros_like(batch.modes_B).index_fill(0, batch.branch_examples_S, 1) > 0
