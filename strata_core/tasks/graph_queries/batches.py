"""Reasoning examples as the flat tensors that the graph reasoner reads, made by whole-array operations alone.

Shapes as for models.reasoning_batch.ReasoningBatch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strata_core.corpus.graphs.batch import GraphBatch, cut_rows, owners_of
from strata_core.corpus.graphs.example import NUMBER_MODES, PathKind, Status
from strata_core.tasks.graph_queries.negatives import draw_non_edges
from strata_core.training.keyed_draws import uniform_draws


@dataclass(frozen=True)
class Drawn:
    """What is drawn for training.

    Attributes:
        link_keys, relation_keys: uint64 [B], what each example's draws are a function of.
        relation_samples: edges of each example for the relation loss at most; 0: all.
    """

    link_keys: np.ndarray
    relation_keys: np.ndarray
    relation_samples: int


@dataclass(frozen=True)
class _Copies:
    """Copies of graphs, one after another.

    Attributes:
        nodes, edge_rows: rows in the GraphBatch; `edge_rows` in its edges ordered by graph.
        node_offsets, edge_offsets: cut them.
        edges: int64 [., 3], nodes numbered through the copies.
    """

    nodes: np.ndarray
    edge_rows: np.ndarray
    node_offsets: np.ndarray
    edge_offsets: np.ndarray
    edges: np.ndarray

    @property
    def node_owners(self) -> np.ndarray:
        return owners_of(self.node_offsets)

    @property
    def edge_owners(self) -> np.ndarray:
        return owners_of(self.edge_offsets)


def reasoning_arrays(
    graphs: GraphBatch, drawn: Drawn | None = None, *, inverse_edges: bool = True
) -> dict[str, np.ndarray]:
    """The arrays of a ReasoningBatch by name.

    Args:
        graphs: the examples.
        drawn: None: no links, and no edges of the relation loss.
        inverse_edges: whether walks may go over edges backwards; False leaves more of the graphs out.
    """
    order = np.argsort(graphs.edge_graphs, kind="stable")
    by_graph = np.concatenate([[0], np.cumsum(np.bincount(graphs.edge_graphs, minlength=len(graphs.node_offsets) - 1))])
    branch_examples = owners_of(graphs.branch_offsets)
    examples = _copy(graphs, order, by_graph, graphs.graph_of_example)
    branches = _copy(graphs, order, by_graph, graphs.graph_of_example[branch_examples])
    place_in_graph = np.empty_like(order)
    place_in_graph[order] = np.arange(len(order)) - by_graph[graphs.edge_graphs[order]]
    arrays = (
        _examples_part(graphs, examples)
        | _branches_part(graphs, examples, branches, branch_examples, inverse_edges)
        | _paths_part(graphs, examples, place_in_graph)
    )
    arrays |= _choices_part(arrays)
    return arrays | _drawn_part(arrays, examples, drawn)


def ragged(offsets: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows that offsets cut, as a table: int64 [owners, width] row numbers, and bool, whether there is such a row."""
    table = offsets[:-1, None] + np.arange(width)
    return table, table < offsets[1:, None]


def _copy(graphs: GraphBatch, order: np.ndarray, by_graph: np.ndarray, wanted: np.ndarray) -> _Copies:
    nodes, node_offsets = cut_rows(graphs.node_offsets, wanted)
    edge_rows, edge_offsets = cut_rows(by_graph, wanted)
    edges = graphs.edges[order[edge_rows]]
    shift = (node_offsets[:-1] - graphs.node_offsets[wanted])[owners_of(edge_offsets)]
    edges[:, [0, 2]] += shift[:, None]
    return _Copies(nodes, edge_rows, node_offsets, edge_offsets, edges)


def _examples_part(graphs: GraphBatch, examples: _Copies) -> dict[str, np.ndarray]:
    answer_examples = owners_of(graphs.answer_offsets)
    shift = examples.node_offsets[:-1] - graphs.node_offsets[graphs.graph_of_example]
    statuses = graphs.statuses.astype(np.int64)
    numbers = np.where(np.isin(graphs.modes, NUMBER_MODES), graphs.numbers, -1)
    lacking = np.flatnonzero((graphs.twins >= 0) & (statuses != Status.SUPPORTED))
    return {
        "node_types_M": graphs.node_types[examples.nodes],
        "node_examples_M": examples.node_owners,
        "edges_F3": examples.edges,
        "edge_examples_F": examples.edge_owners,
        "modes_B": graphs.modes.astype(np.int64),
        "statuses_B": statuses,
        "numbers_B": numbers.astype(np.int64),
        "answers_A": graphs.answers + shift[answer_examples],
        "answer_examples_A": answer_examples,
        "pairs_Q2": np.stack([lacking, graphs.twins[lacking]], axis=1),
    }


def _branches_part(
    graphs: GraphBatch, examples: _Copies, branches: _Copies, branch_examples: np.ndarray, inverse_edges: bool
) -> dict[str, np.ndarray]:
    """The branches' graphs, of which only what a walk can come to is kept: the states of the rest would be 0."""
    first_graph_node = graphs.node_offsets[graphs.graph_of_example[branch_examples]]
    starts = branches.node_offsets[:-1] + graphs.branch_starts - first_graph_node
    lengths = np.diff(graphs.step_offsets)
    steps_left = _steps_left(branches, starts, lengths, inverse_edges)
    nodes, left = np.flatnonzero(steps_left >= 0), steps_left[branches.edges[:, [0, 2]]]
    walked = np.flatnonzero(left.max(axis=1, initial=0) > 0 if inverse_edges else left[:, 0] > 0)
    place = np.full(len(steps_left), len(nodes) + 1, dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    edges = branches.edges[walked]
    edges[:, [0, 2]] = place[edges[:, [0, 2]]]
    first_example_node = examples.node_offsets[branch_examples]
    owners = branches.node_owners
    in_copy = np.arange(len(owners)) - branches.node_offsets[owners]
    rows, real = ragged(graphs.step_offsets, int(lengths.max(initial=0)))
    steps = np.zeros(rows.shape, dtype=np.int64)
    steps[real] = graphs.steps[rows[real]]
    return {
        "branch_nodes_N": (first_example_node[owners] + in_copy)[nodes],
        "node_branches_N": owners[nodes],
        "branch_edges_E3": edges,
        "edge_branches_E": branches.edge_owners[walked],
        "branch_starts_S": place[starts],
        "branch_examples_S": branch_examples,
        "steps_ST": steps,
        "lengths_S": lengths,
        "branch_rows_KM": _branch_rows(graphs, examples, branches, place, len(nodes)),
    }


def _steps_left(branches: _Copies, starts: np.ndarray, lengths: np.ndarray, inverse_edges: bool) -> np.ndarray:
    """How many steps a walk still has at each node at most, whatever relations it follows; -1: it never gets there."""
    sources, destinations = branches.edges[:, 0], branches.edges[:, 2]
    if inverse_edges:
        sources, destinations = np.concatenate([sources, destinations]), np.concatenate([destinations, sources])
    left = np.full(len(branches.nodes), -1, dtype=np.int64)
    left[starts] = lengths
    for _ in range(int(lengths.max(initial=0))):
        onward = left[sources] - 1
        farther = onward > left[destinations]
        if not farther.any():
            break
        np.maximum.at(left, destinations[farther], onward[farther])
    return left


def _branch_rows(
    graphs: GraphBatch, examples: _Copies, branches: _Copies, place: np.ndarray, n_nodes: int
) -> np.ndarray:
    """For each node of an example the places of its copies in its branches; n_nodes where there is no such branch."""
    most = max(int(np.diff(graphs.branch_offsets).max(initial=0)), 1)
    table, real = ragged(graphs.branch_offsets, most)
    owners = examples.node_owners
    in_copy = np.arange(len(examples.nodes)) - examples.node_offsets[owners]
    first = np.where(real, branches.node_offsets[np.where(real, table, 0)], 0)
    padded = np.append(place, n_nodes)
    return padded[np.where(real[owners].T, first[owners].T + in_copy, len(place))]


def _paths_part(graphs: GraphBatch, examples: _Copies, place_in_graph: np.ndarray) -> dict[str, np.ndarray]:
    n_edges, longest = len(examples.edges), int(np.diff(graphs.step_offsets).max(initial=0))
    path_examples = owners_of(graphs.path_offsets)
    rows, real = ragged(graphs.path_edge_offsets, longest)
    edges = np.full(rows.shape, n_edges, dtype=np.int64)
    first_edges = np.broadcast_to(examples.edge_offsets[path_examples][:, None], rows.shape)
    edges[real] = place_in_graph[graphs.path_edges[rows[real]]] + first_edges[real]
    by_branch = np.argsort(graphs.path_branches, kind="stable")
    counts = np.bincount(graphs.path_branches, minlength=len(graphs.branch_starts))
    offsets = np.concatenate([[0], np.cumsum(counts)])
    table, there = ragged(offsets, int(counts.max(initial=0)))
    branch_paths = np.full(table.shape, len(rows), dtype=np.int64)
    branch_paths[there] = by_branch[table[there]]
    return {
        "path_edges_PT": edges,
        "path_lengths_P": np.diff(graphs.path_edge_offsets),
        "path_branches_P": graphs.path_branches,
        "path_supports_P": graphs.path_kinds == PathKind.SUPPORTING,
        "branch_paths_SX": branch_paths,
    }


def _choices_part(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What leaves each node, and the places on supporting paths with the edges to choose from there."""
    edges, n_nodes = arrays["edges_F3"], len(arrays["node_types_M"])
    leaving = np.argsort(edges[:, 0], kind="stable")
    degrees = np.bincount(edges[:, 0], minlength=n_nodes)
    offsets = np.concatenate([[0], np.cumsum(degrees)])
    table, real = ragged(offsets, max(int(degrees.max(initial=0)), 1))
    out_edges = np.full(table.shape, len(edges), dtype=np.int64)
    out_edges[real] = leaving[table[real]]

    lengths = np.minimum(arrays["path_lengths_P"], arrays["lengths_S"][arrays["path_branches_P"]])
    longest = arrays["path_edges_PT"].shape[1]
    on_path = arrays["path_supports_P"][:, None] & (np.arange(longest) < lengths[:, None])
    path, step = np.nonzero(on_path)
    taken = arrays["path_edges_PT"][path, step]
    branch = arrays["path_branches_P"][path]
    choice_rows, choice_offsets = cut_rows(offsets, edges[taken, 0])
    items, choices = owners_of(choice_offsets), leaving[choice_rows]

    def code(branch: np.ndarray, step: np.ndarray, edge: np.ndarray) -> np.ndarray:
        return (branch * max(longest, 1) + step) * max(len(edges), 1) + edge

    supports = np.isin(code(branch[items], step[items], choices), code(branch, step, taken))
    support_nodes = np.zeros(n_nodes, dtype=bool)
    support_nodes[edges[taken][:, [0, 2]]] = True
    return {
        "out_edges_MO": out_edges,
        "hop_branches_I": branch,
        "hop_steps_I": step,
        "choice_items_C": items,
        "choice_edges_C": choices,
        "choice_supports_C": supports,
        "support_nodes_M": support_nodes,
    }


def _drawn_part(arrays: dict[str, np.ndarray], examples: _Copies, drawn: Drawn | None) -> dict[str, np.ndarray]:
    edges, owners = arrays["edges_F3"], arrays["edge_examples_F"]
    if drawn is None:
        nothing = np.zeros(0, dtype=np.int64)
        return {
            "links_L2": nothing.reshape(0, 2),
            "link_exists_L": nothing.astype(bool),
            "relation_edges_J": nothing,
        }
    counts = np.diff(examples.edge_offsets)
    others = draw_non_edges(np.diff(examples.node_offsets), edges, owners, counts, drawn.link_keys)
    return {
        "links_L2": np.concatenate([edges[:, [0, 2]], others]),
        "link_exists_L": np.arange(len(edges) + len(others)) < len(edges),
        "relation_edges_J": _sampled_edges(examples, drawn),
    }


def _sampled_edges(examples: _Copies, drawn: Drawn) -> np.ndarray:
    """At most so many edges of each example, each set of them alike likely; in order."""
    owners, counts = examples.edge_owners, np.diff(examples.edge_offsets)
    if not drawn.relation_samples or counts.max(initial=0) <= drawn.relation_samples:
        return np.arange(len(owners))
    places = np.arange(len(owners)) - examples.edge_offsets[owners]
    order = np.lexsort((uniform_draws(drawn.relation_keys[owners], places), owners))
    return np.sort(order[places < drawn.relation_samples])
