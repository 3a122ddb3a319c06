"""Graphs and queries of many examples laid out as one block-diagonal graph, by whole-array operations alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from strata_core.corpus.graphs.layout import NOTHING


@dataclass(frozen=True)
class GraphBatch:
    """B examples over G graphs with N nodes and E edges; nodes and edges are numbered through the batch.

    Graphs stand in the order in which the examples first name them; one that several examples ask about is there once.
    All arrays are int64 unless another type is given. Arrays of offsets cut what is named after them: row i of the
    owner has rows offsets[i] to offsets[i + 1].

    Attributes:
        examples: [B], numbers of the examples in their split.
        graph_of_example: [B].
        node_offsets: [G + 1], graphs in nodes.
        node_graphs: [N], graph of each node.
        node_types: [N].
        edges: [E, 3]: source, relation, destination; sorted by relation, and in the order of the corpus within each.
        edge_graphs: [E].
        modes, statuses: uint8 [B], graph_example.Mode and Status.
        supported_probabilities: float32 [B]; NaN where not known.
        numbers, targets: [B]; -1: none.
        ends: [B], node; -1: none.
        query_edges: [B], edge; -1: none.
        twins: [B], position in the batch of the supported twin; -1: none, or not in this batch.
        branch_offsets: [B + 1], examples in branches.
        branch_starts: [branches], node.
        step_offsets: [branches + 1], branches in steps.
        steps: [steps], relation; relation + number of relations: walked backwards.
        answer_offsets: [B + 1], examples in answers.
        answers: [answers], node.
        path_offsets: [B + 1], examples in paths.
        path_kinds: uint8 [paths], graph_example.PathKind.
        path_branches: [paths], row in branch_starts.
        path_edge_offsets: [paths + 1], paths in path_edges.
        path_edges: [path edges], edge, in walking order.
    """

    examples: np.ndarray
    graph_of_example: np.ndarray
    node_offsets: np.ndarray
    node_graphs: np.ndarray
    node_types: np.ndarray
    edges: np.ndarray
    edge_graphs: np.ndarray
    modes: np.ndarray
    statuses: np.ndarray
    supported_probabilities: np.ndarray
    numbers: np.ndarray
    targets: np.ndarray
    ends: np.ndarray
    query_edges: np.ndarray
    twins: np.ndarray
    branch_offsets: np.ndarray
    branch_starts: np.ndarray
    step_offsets: np.ndarray
    steps: np.ndarray
    answer_offsets: np.ndarray
    answers: np.ndarray
    path_offsets: np.ndarray
    path_kinds: np.ndarray
    path_branches: np.ndarray
    path_edge_offsets: np.ndarray
    path_edges: np.ndarray


def lay_out(arrays: Mapping[str, np.ndarray], examples: np.ndarray) -> GraphBatch:
    """Makes a batch of some examples of a split.

    Args:
        arrays: the split's arrays, as graph_layout names them.
        examples: int [B], numbers of examples, in the order wanted.
    """
    examples = np.asarray(examples, dtype=np.int64)
    graphs, graph_of_example = _in_order_of_use(arrays["example_graphs"][examples])
    node_rows, node_offsets = cut_rows(arrays["node_offsets"], graphs)
    edge_rows, edge_offsets = cut_rows(arrays["edge_offsets"], graphs)
    edge_graphs = owners_of(edge_offsets)
    edges = arrays["edges"][edge_rows].astype(np.int64)
    edges[:, [0, 2]] += node_offsets[edge_graphs][:, None]
    order = np.argsort(edges[:, 1], kind="stable")
    place_of_edge = np.empty_like(order)
    place_of_edge[order] = np.arange(len(order))
    first_nodes, first_edges = node_offsets[graph_of_example], edge_offsets[graph_of_example]

    branch_rows, branch_offsets = cut_rows(arrays["branch_offsets"], examples)
    step_rows, step_offsets = cut_rows(arrays["step_offsets"], branch_rows)
    answer_rows, answer_offsets = cut_rows(arrays["answer_offsets"], examples)
    path_rows, path_offsets = cut_rows(arrays["path_offsets"], examples)
    path_edge_rows, path_edge_offsets = cut_rows(arrays["path_edge_offsets"], path_rows)
    path_examples = owners_of(path_offsets)
    path_edge_examples = path_examples[owners_of(path_edge_offsets)]
    query_edges = _shifted(arrays["query_edges"][examples], first_edges)
    asks_about_edge = query_edges != NOTHING
    query_edges[asks_about_edge] = place_of_edge[query_edges[asks_about_edge]]
    return GraphBatch(
        examples=examples,
        graph_of_example=graph_of_example,
        node_offsets=node_offsets,
        node_graphs=owners_of(node_offsets),
        node_types=arrays["node_types"][node_rows].astype(np.int64),
        edges=edges[order],
        edge_graphs=edge_graphs[order],
        modes=arrays["modes"][examples],
        statuses=arrays["statuses"][examples],
        supported_probabilities=arrays["supported_probabilities"][examples],
        numbers=arrays["numbers"][examples].astype(np.int64),
        targets=arrays["targets"][examples].astype(np.int64),
        ends=_shifted(arrays["ends"][examples], first_nodes),
        query_edges=query_edges,
        twins=_places(arrays["twins"][examples], examples),
        branch_offsets=branch_offsets,
        branch_starts=arrays["branch_starts"][branch_rows] + first_nodes[owners_of(branch_offsets)],
        step_offsets=step_offsets,
        steps=arrays["steps"][step_rows].astype(np.int64),
        answer_offsets=answer_offsets,
        answers=arrays["answers"][answer_rows] + first_nodes[owners_of(answer_offsets)],
        path_offsets=path_offsets,
        path_kinds=arrays["path_kinds"][path_rows],
        path_branches=arrays["path_branches"][path_rows] + branch_offsets[path_examples],
        path_edge_offsets=path_edge_offsets,
        path_edges=place_of_edge[arrays["path_edges"][path_edge_rows] + first_edges[path_edge_examples]],
    )


def cut_rows(offsets: np.ndarray, owners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows that some owners have.

    Args:
        offsets: int [all owners + 1].
        owners: int [K].

    Returns:
        int64 [R], the rows, owner by owner; int64 [K + 1], offsets that cut them again.
    """
    starts = np.asarray(offsets[owners], dtype=np.int64)
    lengths = offsets[owners + 1] - starts
    cuts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return np.arange(cuts[-1]) + np.repeat(starts - cuts[:-1], lengths), cuts


def owners_of(offsets: np.ndarray) -> np.ndarray:
    """For each row that offsets cut, whose it is."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def _in_order_of_use(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Different numbers in order of first use, and for each given one its place among them."""
    different, first, place = np.unique(numbers, return_index=True, return_inverse=True)
    by_use = np.argsort(first)
    new_place = np.empty_like(by_use)
    new_place[by_use] = np.arange(len(by_use))
    return different[by_use], new_place[place]


def _shifted(numbers: np.ndarray, by: np.ndarray) -> np.ndarray:
    return np.where(numbers == NOTHING, NOTHING, numbers + by)


def _places(wanted: np.ndarray, examples: np.ndarray) -> np.ndarray:
    """Where in `examples` each wanted one stands; NOTHING where it does not."""
    order = np.argsort(examples, kind="stable")
    found = np.searchsorted(examples, wanted, sorter=order)
    place = order[np.minimum(found, len(order) - 1)] if len(order) else order
    return np.where(examples[place] == wanted, place, NOTHING)
