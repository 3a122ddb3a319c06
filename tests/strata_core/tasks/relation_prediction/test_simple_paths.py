"""Simple paths against a search that tries every sequence of edges."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from strata_core.tasks.relation_prediction.simple_paths import Edge, simple_paths


def every_simple_path(edges: list[Edge], start: int, end: int, max_edges: int) -> set[tuple[int, ...]]:
    """The slow obvious search: all sequences of edges, those kept that are walks and come to no node twice."""
    found = set()
    for length in range(1, max_edges + 1):
        for sequence in itertools.permutations(edges, length):
            nodes = [sequence[0][0], *(edge[2] for edge in sequence)]
            joined = all(left[2] == right[0] for left, right in itertools.pairwise(sequence))
            inner = nodes[:-1] if start == end else nodes
            if joined and nodes[0] == start and nodes[-1] == end and len(set(inner)) == len(inner):
                found.add(tuple(edge[1] for edge in sequence))
    return found


@pytest.mark.parametrize("seed", range(60))
def test_finds_what_trying_everything_finds(seed):
    rng = np.random.default_rng(seed)
    n_nodes, n_edges = rng.integers(1, 6), rng.integers(0, 8)
    edges = [
        (int(rng.integers(n_nodes)), int(rng.integers(3)), int(rng.integers(n_nodes))) for _ in range(int(n_edges))
    ]
    start, end = int(rng.integers(n_nodes)), int(rng.integers(n_nodes))
    max_edges = int(rng.integers(1, 5))
    found = simple_paths(edges, start, end, max_edges=max_edges, max_paths=1000)
    assert set(found) == every_simple_path(edges, start, end, max_edges)
    assert len(set(found)) == len(found)
    assert [len(path) for path in found] == sorted(len(path) for path in found)


def test_a_walk_that_comes_back_is_cut_short():
    walk = [(0, 7, 1), (1, 8, 2), (2, 9, 1), (1, 5, 3)]
    assert simple_paths(walk, 0, 3, max_edges=10, max_paths=10) == [(7, 5)]


def test_without_a_way_there_is_no_path():
    assert simple_paths([(1, 0, 0), (2, 0, 1)], 0, 2, max_edges=10, max_paths=10) == []
    assert simple_paths([], 0, 0, max_edges=10, max_paths=10) == []


def test_from_a_node_to_itself_lead_the_cycles_through_it():
    edges = [(0, 1, 0), (0, 2, 1), (1, 3, 0), (1, 4, 1), (1, 5, 2), (2, 6, 0)]
    assert simple_paths(edges, 0, 0, max_edges=10, max_paths=10) == [(1,), (2, 3), (2, 5, 6)]


def test_the_shortest_come_first_and_no_more_than_asked_for():
    edges = [(0, 0, 1), (1, 0, 2), (2, 0, 3), (1, 1, 3), (0, 2, 3), (0, 3, 3)]
    assert simple_paths(edges, 0, 3, max_edges=10, max_paths=3) == [(2,), (3,), (0, 1)]
    assert simple_paths(edges, 0, 3, max_edges=2, max_paths=9) == [(2,), (3,), (0, 1)]


def test_parallel_edges_of_one_relation_are_one_path():
    assert simple_paths([(0, 1, 1), (0, 1, 1)], 0, 1, max_edges=3, max_paths=9) == [(1,)]


def test_a_dense_graph_is_left_as_soon_as_there_are_enough_paths():
    edges = [(source, 0, destination) for source in range(60) for destination in range(60) if source != destination]
    relations = [(source, source * 60 + destination, destination) for source, _, destination in edges]
    found = simple_paths(relations, 0, 59, max_edges=30, max_paths=5)
    assert found[0] == (59,)
    assert [len(path) for path in found] == [1, 2, 2, 2, 2]
