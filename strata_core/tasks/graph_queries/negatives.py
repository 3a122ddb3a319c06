"""Pairs of nodes that are no edge, drawn evenly among all of them without listing them or trying twice.

The ordered pairs of different nodes are numbered. Among the sorted numbers of the edges, the j-th that is missing is
found by bisection, so a nearly complete graph costs what an empty one does.
"""

from __future__ import annotations

import numpy as np

from strata_core.training.keyed_draws import uniform_draws


def count_non_edges(node_counts: np.ndarray, edges: np.ndarray, edge_graphs: np.ndarray) -> np.ndarray:
    """Ordered pairs of different nodes of each graph that no edge links, int64 [G].

    Args:
        node_counts: int64 [G].
        edges: int64 [E, 3]; nodes numbered through all graphs.
        edge_graphs: int64 [E].
    """
    return _count_missing(node_counts, _edge_codes(node_counts, edges, edge_graphs))


def draw_non_edges(
    node_counts: np.ndarray, edges: np.ndarray, edge_graphs: np.ndarray, wanted: np.ndarray, keys: np.ndarray
) -> np.ndarray:
    """Draws pairs, with replacement.

    Args:
        node_counts: int64 [G].
        edges: int64 [E, 3]; nodes numbered through all graphs.
        edge_graphs: int64 [E].
        wanted: int64 [G], how many pairs; a graph in which every pair is linked has none.
        keys: uint64 [G], what the draws of each graph are a function of.

    Returns:
        int64 [pairs, 2], graph by graph.
    """
    codes = _edge_codes(node_counts, edges, edge_graphs)
    first_codes = _first_codes(node_counts)
    edges_before = np.searchsorted(codes, first_codes)
    missing = _count_missing(node_counts, codes)
    wanted = np.where(missing > 0, wanted, 0)
    graphs = np.repeat(np.arange(len(wanted)), wanted)
    places = np.arange(len(graphs)) - np.repeat(np.cumsum(wanted) - wanted, wanted)
    chosen = (uniform_draws(keys[graphs], places) * missing[graphs]).astype(np.int64)
    in_all = chosen + (first_codes - edges_before)[graphs]
    codes_before = np.searchsorted(codes - np.arange(len(codes)), in_all, side="right")
    local = in_all + codes_before - first_codes[graphs]
    first_nodes = (np.cumsum(node_counts) - node_counts)[graphs]
    source, rest = np.divmod(local, np.maximum(node_counts[graphs] - 1, 1))
    destination = rest + (rest >= source)
    return np.stack([first_nodes + source, first_nodes + destination], axis=1)


def _count_missing(node_counts: np.ndarray, codes: np.ndarray) -> np.ndarray:
    ends = np.cumsum(node_counts * (node_counts - 1))
    linked = np.diff(np.searchsorted(codes, ends), prepend=0)
    return node_counts * (node_counts - 1) - linked


def _first_codes(node_counts: np.ndarray) -> np.ndarray:
    pairs = node_counts * (node_counts - 1)
    return np.cumsum(pairs) - pairs


def _edge_codes(node_counts: np.ndarray, edges: np.ndarray, edge_graphs: np.ndarray) -> np.ndarray:
    """Sorted numbers of the pairs that are linked, self-loops left out."""
    first_nodes = (np.cumsum(node_counts) - node_counts)[edge_graphs]
    source, destination = edges[:, 0] - first_nodes, edges[:, 2] - first_nodes
    proper = source != destination
    others = (node_counts - 1)[edge_graphs]
    codes = _first_codes(node_counts)[edge_graphs] + source * others + destination - (destination > source)
    codes = np.sort(codes[proper])
    return codes[np.diff(codes, prepend=-1) > 0]
