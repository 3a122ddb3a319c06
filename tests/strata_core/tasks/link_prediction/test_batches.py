"""Groups of queries, their order, and what a group sees of the graph, against plain searches."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from strata_core.tasks.link_prediction.batches import AnswerTable, GroupOrder, KnowledgeGraph, with_inverses


def random_triples(seed: int, n_triples: int = 60, n_entities: int = 25, n_relations: int = 4) -> np.ndarray:
    generator = np.random.default_rng(seed)
    triples = {
        (int(generator.integers(n_entities)), int(generator.integers(n_relations)), int(generator.integers(n_entities)))
        for _ in range(n_triples)
    }
    return np.array(sorted(triples))


def search(edges: list[tuple[int, int, int]], start: int, longest: int) -> dict[int, int]:
    """The distance of each entity that is reached."""
    distances = {start: 0}
    for distance in range(longest):
        here = [entity for entity, found in distances.items() if found == distance]
        for source, _, target in edges:
            if source in here:
                distances.setdefault(target, distance + 1)
    return distances


@pytest.mark.parametrize("seed", range(3))
def test_a_frontier_has_what_a_search_from_each_start_finds(seed):
    graph = KnowledgeGraph(random_triples(seed), 25, 4)
    stays = np.random.default_rng(seed).random(len(graph.edges)) < 0.7
    starts = np.array([3, 8, 3, 20])
    frontier = graph.frontier(starts, 3, stays)
    left = [tuple(edge) for edge in graph.edges[stays].tolist()]

    distances = [search(left, start, 3) for start in starts.tolist()]
    for level in range(4):
        found = set(zip(frontier.owners[level].tolist(), frontier.entities[level].tolist(), strict=True))
        assert found == {(q, e) for q, reached in enumerate(distances) for e, d in reached.items() if d == level}
    pair_of = {(q, int(e)): int(frontier.pairs[q, e]) for q in range(4) for e in np.flatnonzero(frontier.pairs[q] >= 0)}
    owners, entities = np.concatenate(frontier.owners), np.concatenate(frontier.entities)
    listed = list(zip(owners.tolist(), entities.tolist(), strict=True))
    assert [pair_of[pair] for pair in listed] == list(range(len(listed)))
    destinations = np.concatenate(frontier.destinations)
    of_links = np.split(destinations, np.concatenate(frontier.link_ends)[:-1])
    assert [part.tolist() for part in of_links[:4]] == [[0], [1], [2], [3]]
    links = np.concatenate(frontier.links).tolist()
    assert len({tuple(link) for link in links}) == len(links) == len(of_links) - 4
    expected = Counter(
        (pair_of[q, source], relation, pair_of[q, target])
        for q, reached in enumerate(distances)
        for source, relation, target in left
        if reached.get(source, 3) < 3
    )
    by_link = zip(links, of_links[4:], strict=True)
    assert Counter((source, relation, end) for (source, relation), ends in by_link for end in ends.tolist()) == expected


@pytest.mark.parametrize("seed", range(3))
def test_arrivals_are_the_edges_of_each_layer_by_destination(seed):
    graph = KnowledgeGraph(random_triples(seed), 25, 4)
    frontier = graph.frontier(np.array([3, 8, 20]), 3)
    link_of_edge = np.repeat(
        np.arange(sum(map(len, frontier.link_ends))), np.diff(np.concatenate(frontier.link_ends), prepend=0)
    )
    for layer, (arriving, offsets) in enumerate(frontier.arrivals()):
        destinations = np.concatenate(frontier.destinations[: layer + 1])
        n_pairs = sum(map(len, frontier.entities[: layer + 2]))
        for pair, links in enumerate(np.split(arriving, offsets[1:-1])):
            assert links.tolist() == link_of_edge[: len(destinations)][destinations == pair].tolist()
        assert len(offsets) == n_pairs + 1


def test_an_edge_taken_out_is_gone_in_both_directions_and_no_other_is():
    triples = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 1], [2, 0, 2]])
    graph = KnowledgeGraph(triples, 3, 2)

    left = {tuple(edge) for edge in graph.edges[graph.without(np.array([0, 7]))].tolist()}

    assert left == {(1, 0, 0), (0, 2, 1), (0, 1, 1), (1, 3, 0)}


def test_sizes_of_frontiers_are_estimated_without_making_them():
    graph = KnowledgeGraph(random_triples(5, n_triples=2000, n_entities=1500), 1500, 4)
    exact = [sum(map(len, graph.frontier(np.array([start]), 4).destinations)) - 1 for start in range(1500)]
    ratios = graph.frontier_sizes(4)[np.array(exact) > 0] / np.array(exact)[np.array(exact) > 0]
    assert max(exact) > 300
    assert abs(np.median(ratios) - 1) < 0.1
    assert np.quantile(np.abs(ratios - 1), 0.9) < 0.35
    assert (graph.frontier_sizes(4)[np.array(exact) == 0] == 0).all()


def test_answers_are_those_of_head_and_relation_once_each():
    triples = np.array([[0, 1, 5], [0, 1, 3], [0, 1, 5], [2, 1, 4], [0, 0, 9]])
    answers, cuts = AnswerTable(triples, 2).of(np.array([2, 0, 1, 0]), 1)
    assert np.split(answers, cuts[1:-1])[0].tolist() == [4]
    assert [part.tolist() for part in np.split(answers, cuts[1:-1])] == [[4], [3, 5], [], [3, 5]]


def test_an_epoch_has_each_query_once_in_groups_of_one_relation():
    relations = with_inverses(random_triples(2), 4)[:, 1]
    order = GroupOrder(relations, 6, seed=7)
    for epoch in range(2):
        groups = [order.group(epoch * order.n_groups + place) for place in range(order.n_groups)]
        assert sorted(np.concatenate([edges for _, edges in groups]).tolist()) == list(range(len(relations)))
        assert all(set(relations[edges]) == {relation} and 1 <= len(edges) <= 6 for relation, edges in groups)


def test_the_groups_of_a_relation_are_few_and_of_one_size():
    relations = np.repeat([0, 1, 2, 3], [3, 7, 16, 100])
    order = GroupOrder(relations, 6, seed=0)
    sizes: dict[int, list[int]] = {}
    for place in range(order.n_groups):
        relation, edges = order.group(place)
        sizes.setdefault(relation, []).append(len(edges))
    assert {relation: sorted(found) for relation, found in sizes.items()} == {
        0: [3],
        1: [3, 4],
        2: [5, 5, 6],
        3: [5] * 2 + [6] * 15,
    }


def test_epochs_and_seeds_have_other_orders_and_a_position_always_the_same_group():
    relations = with_inverses(random_triples(2), 4)[:, 1]
    order = GroupOrder(relations, 6, seed=7)
    n_groups = order.n_groups
    epochs = [[order.group(epoch * n_groups + place)[1].tolist() for place in range(n_groups)] for epoch in (0, 1)]
    of_other_seed = [GroupOrder(relations, 6, seed=8).group(place)[1].tolist() for place in range(n_groups)]
    assert epochs[0] != epochs[1]
    assert epochs[0] != of_other_seed
    assert {frozenset(group) for group in epochs[0]} != {frozenset(group) for group in epochs[1]}
    assert GroupOrder(relations, 6, seed=7).group(n_groups + 3)[1].tolist() == epochs[1][3]


def test_relations_without_an_edge_have_no_group():
    order = GroupOrder(np.array([4, 4, 1]), 2, seed=0)
    assert sorted(order.group(place)[0] for place in range(order.n_groups)) == [1, 4]


def test_both_orders_of_a_whole_graph_have_the_edges_that_stay():
    graph = KnowledgeGraph(random_triples(1), 25, 4)
    stays = np.random.default_rng(0).random(len(graph.edges)) < 0.6
    arrays = graph.by_cell_and_relation(stays)
    expected = Counter((target * 25 + source, relation) for source, relation, target in graph.edges[stays].tolist())

    cells = np.repeat(np.arange(25 * 25), np.diff(arrays["cell_offsets"]))
    relations = np.repeat(np.arange(8), np.diff(arrays["relation_offsets"]))

    assert Counter(zip(cells.tolist(), arrays["relations_by_cell"].tolist(), strict=True)) == expected
    assert Counter(zip(arrays["cells_by_relation"].tolist(), relations.tolist(), strict=True)) == expected
