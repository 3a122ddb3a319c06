"""Pairs that are no edge: never one, evenly drawn, the same for the same key, in graphs of any density."""

import numpy as np

from strata_core.tasks.graph_queries.negatives import count_non_edges, draw_non_edges

KEYS = np.arange(1, 9).astype(np.uint64) * np.uint64(7919)


def graphs_of(seed, sizes, n_edges):
    rng = np.random.default_rng(seed)
    edges, owners, first = [], [], 0
    for number, (size, count) in enumerate(zip(sizes, n_edges, strict=True)):
        if size:
            pairs = rng.integers(0, size, (count, 2)) + first
            edges += [(s, 0, d) for s, d in pairs.tolist()]
            owners += [number] * count
        first += size
    return np.array(edges, dtype=np.int64).reshape(-1, 3), np.array(owners, dtype=np.int64)


def missing_pairs(size, first, edges):
    linked = {(s, d) for s, _, d in edges.tolist()}
    nodes = range(first, first + size)
    return {(s, d) for s in nodes for d in nodes if s != d and (s, d) not in linked}


def test_drawn_pairs_are_never_edges_and_lie_within_their_graph():
    sizes = np.array([1, 2, 5, 40, 3, 0, 7, 12])
    edges, owners = graphs_of(0, sizes, [4, 3, 18, 70, 40, 0, 0, 300])
    wanted = np.array([4, 3, 50, 70, 40, 5, 9, 300])
    drawn = draw_non_edges(sizes, edges, owners, wanted, KEYS)
    counts, place = count_non_edges(sizes, edges, owners), 0
    for number, first in enumerate(np.cumsum(sizes) - sizes):
        missing = missing_pairs(sizes[number], first, edges)
        assert counts[number] == len(missing)
        many = wanted[number] if missing else 0
        assert set(map(tuple, drawn[place : place + many].tolist())) <= missing
        place += many
    assert place == len(drawn)


def test_a_complete_graph_has_none():
    pairs = [(s, 0, d) for s in range(4) for d in range(4) if s != d]
    edges = np.array(pairs)
    assert len(draw_non_edges(np.array([4]), edges, np.zeros(12, dtype=np.int64), np.array([12]), KEYS[:1])) == 0


def test_every_missing_pair_is_as_likely_as_another():
    sizes = np.array([6])
    edges, owners = graphs_of(3, sizes, [9])
    drawn = draw_non_edges(sizes, edges, owners, np.array([60_000]), KEYS[:1])
    pairs, counts = np.unique(drawn, axis=0, return_counts=True)
    missing = missing_pairs(6, 0, edges)
    assert set(map(tuple, pairs.tolist())) == missing
    expected = 60_000 / len(missing)
    assert (((counts - expected) ** 2) / expected).sum() < 60  # chi-square of about 21 degrees of freedom


def test_draws_go_by_the_key_and_not_by_the_place_in_the_batch():
    sizes = np.array([10, 10])
    edges, owners = graphs_of(5, sizes, [15, 15])
    both = draw_non_edges(sizes, edges, owners, np.array([15, 15]), KEYS[:2])
    second = edges[owners == 1] - np.array([10, 0, 10])
    alone = draw_non_edges(sizes[1:], second, np.zeros(15, dtype=np.int64), np.array([15]), KEYS[1:2])
    assert np.array_equal(both[15:] - 10, alone)
    other = draw_non_edges(sizes[1:], second, np.zeros(15, dtype=np.int64), np.array([15]), KEYS[2:3])
    assert not np.array_equal(alone, other)
