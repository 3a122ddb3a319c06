"""The queries of a knowledge graph in groups of one relation, and what a group may see of the graph.

A query asks what a relation leads to from an entity. A triple gives two: (head, relation, ?) and (tail, inverse, ?),
inverses being relations r + R. Queries of one relation are trained on together, because they share the weights of all
messages. The edges that the queries of a group ask about, and their inverses, are taken out of the graph that the
group sees; those of other groups stay.

Shapes: E edges, both directions of the training triples; R relations, N entities, L layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from strata_core.corpus.graphs.batch import cut_rows
from strata_core.training.order import SampleOrder

_NOT_REACHED = -1
_REGISTERS = 64


def with_inverses(triples: np.ndarray, n_relations: int) -> np.ndarray:
    """int64 [2T, 3]: the triples, and behind them each one backwards, as relation + n_relations."""
    heads, relations, tails = triples.astype(np.int64).T
    backwards = np.stack([tails, relations + n_relations, heads], axis=1)
    return np.concatenate([np.stack([heads, relations, tails], axis=1), backwards])


def batches_of_relations(queries: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Cuts queries into batches of one relation.

    Args:
        queries: int64 [Q, 2 or more]: head, relation.
        size: of a batch, at most.

    Yields:
        int64 [B], rows of the queries.
    """
    order = np.argsort(queries[:, 1], kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(queries[order, 1])) + 1):
        for start in range(0, len(rows), size):
            yield rows[start : start + size]


class AnswerTable:
    """The right answers of each query, looked up by head and relation.

    Args:
        triples: int64 [T, 3], inverses among them; one that is there twice counts once.
        n_relations: of the triples, inverses counted.
    """

    def __init__(self, triples: np.ndarray, n_relations: int) -> None:
        self._n_relations = n_relations
        keys = triples[:, 0] * n_relations + triples[:, 1]
        order = np.lexsort((triples[:, 2], keys))
        keys, tails = keys[order], triples[order, 2]
        first = np.ones(len(keys), dtype=bool)
        first[1:] = (keys[1:] != keys[:-1]) | (tails[1:] != tails[:-1])
        self._keys, self._tails = keys[first], tails[first]

    def of(self, heads: np.ndarray, relation: int) -> tuple[np.ndarray, np.ndarray]:
        """The answers of some queries, int64 [A], query by query and ascending; int64 [queries + 1] cuts them."""
        wanted = np.asarray(heads, dtype=np.int64) * self._n_relations + relation
        starts = np.searchsorted(self._keys, wanted)
        lengths = np.searchsorted(self._keys, wanted, side="right") - starts
        cuts = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.arange(cuts[-1]) + np.repeat(starts - cuts[:-1], lengths)
        return self._tails[rows], cuts


@dataclass(frozen=True)
class QueryGroup:
    """Queries of one relation: a micro-batch.

    Attributes:
        relation: what they ask for, from 0 to below 2 R.
        asked: int64 [queries], the edges they ask about.
        taken_out: int64 [edges], the edges that the graph lacks, with their inverses: those that the whole group, of
            which these queries may be a part, asks about.
    """

    relation: int
    asked: np.ndarray
    taken_out: np.ndarray


@dataclass(frozen=True)
class Frontier:
    """What message passing reaches from some starts: pairs of a start and an entity, in order of distance.

    Edges that leave one pair by one relation carry the same message, which is made once: they are the edges of one
    link. The first links are the starts, each with one edge, to itself: what the boundary condition of each layer adds.

    Attributes:
        entities: for each distance 0 to L, int64 [pairs], the entity of each pair.
        owners: for each distance int64 [pairs], which start each pair is of.
        links: for each distance 0 to L - 1, int64 [links, 2]: source and relation of the links that leave pairs of this
            distance, the boundary's not among them; pairs are numbered through all distances.
        destinations: for each distance 0 to L - 1, int64 [edges], the pairs that the links lead to, link by link; those
            of the boundary come first.
        link_ends: for each distance int64 [links], where the edges of each link end, numbered through all distances;
            those of the boundary come first.
        pairs: int64 [starts, entities], the number of each pair; -1 where the entity is not reached.
    """

    entities: tuple[np.ndarray, ...]
    owners: tuple[np.ndarray, ...]
    links: tuple[np.ndarray, ...]
    destinations: tuple[np.ndarray, ...]
    link_ends: tuple[np.ndarray, ...]
    pairs: np.ndarray

    def arrivals(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each layer, int32 [edges]: the links that its edges belong to, ordered by destination; and int32 [pairs +
        1], where the edges to each destination begin. Layer l has the edges that leave distances up to l."""
        destinations = np.concatenate(self.destinations)
        ends = np.concatenate(self.link_ends)
        links = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        order = _stable_order(destinations)
        found, n_edges, n_pairs = [], 0, len(self.entities[0])
        for entities, leaving in zip(self.entities[1:], self.destinations, strict=True):
            n_edges, n_pairs = n_edges + len(leaving), n_pairs + len(entities)
            arriving = np.bincount(destinations[:n_edges], minlength=n_pairs)
            offsets = np.concatenate([[0], np.cumsum(arriving)])
            found.append((links[order[order < n_edges]].astype(np.int32), offsets.astype(np.int32)))
        return found


def _stable_order(numbers: np.ndarray) -> np.ndarray:
    """As argsort(kind="stable") of numbers below 2 ** 32, in two passes of the radix sort that 16-bit numbers have."""
    order = np.argsort((numbers & 0xFFFF).astype(np.uint16), kind="stable")
    return order[np.argsort((numbers >> 16).astype(np.uint16)[order], kind="stable")]


class KnowledgeGraph:
    """The training triples as one graph.

    Args:
        triples: int [T, 3]: head, relation, tail; none twice.
        n_entities, n_relations: N and R.

    Attributes:
        edges: int64 [E, 3]: source, relation, destination; E = 2 T. Edge e and (e + T) mod E are inverses.
    """

    def __init__(self, triples: np.ndarray, n_entities: int, n_relations: int) -> None:
        self.n_entities = n_entities
        self.n_relations = n_relations
        self.edges = with_inverses(triples, n_relations)
        self._by_source = np.lexsort((self.edges[:, 1], self.edges[:, 0]))
        self._by_cell = np.lexsort((self.edges[:, 0], self.edges[:, 2]))
        self._by_relation = np.argsort(self.edges[:, 1], kind="stable")
        out_degrees = np.bincount(self.edges[:, 0], minlength=n_entities)
        self._source_offsets = np.concatenate([[0], np.cumsum(out_degrees)])

    def without(self, edges: np.ndarray) -> np.ndarray:
        """bool [E]: which edges stay when some, and their inverses, are taken out."""
        stays = np.ones(len(self.edges), dtype=bool)
        stays[edges] = False
        stays[(edges + len(self.edges) // 2) % len(self.edges)] = False
        return stays

    def frontier(self, starts: np.ndarray, n_layers: int, stays: np.ndarray | None = None) -> Frontier:
        """What is reached from some entities in up to `n_layers` steps.

        Args:
            starts: int64 [S].
            n_layers: L.
            stays: bool [E], the edges that are there; None: all.
        """
        pairs = np.full(len(starts) * self.n_entities, _NOT_REACHED, dtype=np.int64)
        owner, entity = np.arange(len(starts)), np.asarray(starts, dtype=np.int64)
        pairs[owner * self.n_entities + entity] = owner
        entities, owners, links, destinations, link_ends = [entity], [owner], [], [owner], [owner + 1]
        reached, before, n_edges = len(starts), 0, len(starts)
        for _ in range(n_layers):
            rows, cuts = cut_rows(self._source_offsets, entity)
            source = np.repeat(np.arange(len(entity)), np.diff(cuts))
            rows = self._by_source[rows]
            if stays is not None:
                source, rows = source[stays[rows]], rows[stays[rows]]
            relation = self.edges[rows, 1]
            places = owner[source] * self.n_entities + self.edges[rows, 2]
            new = _first_of_each(places[pairs[places] == _NOT_REACHED], pairs)
            pairs[new] = reached + np.arange(len(new))
            first = np.flatnonzero((np.diff(source, prepend=-1) != 0) | (np.diff(relation, prepend=-1) != 0))
            links.append(np.stack([before + source[first], relation[first]], axis=1))
            destinations.append(pairs[places])
            link_ends.append(n_edges + np.append(first[1:], len(rows))[: len(first)])
            before, reached, n_edges = reached, reached + len(new), n_edges + len(rows)
            owner, entity = new // self.n_entities, new % self.n_entities
            entities.append(entity)
            owners.append(owner)
        return Frontier(
            tuple(entities),
            tuple(owners),
            tuple(links),
            (np.concatenate(destinations[:2]), *destinations[2:]),
            (np.concatenate(link_ends[:2]), *link_ends[2:]),
            pairs.reshape(len(starts), self.n_entities),
        )

    def by_cell_and_relation(self, stays: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """The edges that are there, as `WholeGraph` of the model wants them.

        Args:
            stays: bool [E], the edges that are there; None: all.
        """
        if stays is None:
            stays = np.ones(len(self.edges), dtype=bool)
        relations = self.edges[:, 1]
        cells = self.edges[:, 2] * self.n_entities + self.edges[:, 0]
        by_cell, by_relation = (order[stays[order]] for order in (self._by_cell, self._by_relation))
        n_of_cells = np.bincount(cells[by_cell], minlength=self.n_entities**2)
        n_of_relations = np.bincount(relations[by_relation], minlength=2 * self.n_relations)
        return {
            "relations_by_cell": relations[by_cell].astype(np.int32),
            "cell_offsets": np.concatenate([[0], np.cumsum(n_of_cells)]).astype(np.int32),
            "cells_by_relation": cells[by_relation].astype(np.int32),
            "relation_offsets": np.concatenate([[0], np.cumsum(n_of_relations)]).astype(np.int32),
        }

    def frontier_sizes(self, n_layers: int) -> np.ndarray:
        """float64 [N]: about how many edges the frontier from each entity has, to a tenth in most cases.

        Counted by sketches that neighbours hand on (HyperANF, Boldi, Rosa and Vigna 2011), in memory and time that the
        size of the frontiers does not matter to.
        """
        draws = np.random.default_rng(0)
        registers = draws.integers(_REGISTERS, size=len(self.edges))
        sketches = np.zeros((self.n_entities, _REGISTERS), dtype=np.uint8)
        np.maximum.at(sketches, (self.edges[:, 0], registers), draws.geometric(0.5, len(self.edges)).astype(np.uint8))
        leads_on = np.diff(self._source_offsets) > 0
        neighbours = self.edges[self._by_source, 2]
        for _ in range(n_layers - 1):
            of_neighbours = np.maximum.reduceat(sketches[neighbours], self._source_offsets[:-1][leads_on])
            sketches[leads_on] = np.maximum(sketches[leads_on], of_neighbours)
        return _sketched_counts(sketches)


def _first_of_each(places: np.ndarray, scratch: np.ndarray) -> np.ndarray:
    """Different numbers, each where it stands last, without sorting; their entries in `scratch` are overwritten."""
    order = np.arange(len(places))
    scratch[places] = order
    return places[scratch[places] == order]


def _sketched_counts(sketches: np.ndarray) -> np.ndarray:
    """float64 [sketches]: as HyperLogLog estimates (Flajolet et al. 2007), small counts by empty registers."""
    estimates = 0.709 * _REGISTERS**2 / np.exp2(-sketches.astype(np.float64)).sum(axis=1)
    n_empty = np.count_nonzero(sketches == 0, axis=1)
    by_empty = _REGISTERS * np.log(_REGISTERS / np.maximum(n_empty, 1))
    return np.where((estimates <= 2.5 * _REGISTERS) & (n_empty > 0), by_empty, estimates)


class GroupOrder:
    """The order in which a run sees the queries: a pure function of (seed, position), as SampleOrder is.

    In each epoch the edges of each relation are put in an order and cut into as few groups as can be, of equal size or
    one less; then all groups are put in an order.

    Args:
        relations: int [E], of the edges.
        group_size: queries in a group, at most.
        seed: the run's seed.

    Attributes:
        n_groups: in one epoch.
    """

    def __init__(self, relations: np.ndarray, group_size: int, seed: int) -> None:
        self._by_relation = np.argsort(relations, kind="stable")
        self._offsets = np.concatenate([[0], np.cumsum(np.bincount(relations))])
        n_edges = np.diff(self._offsets)
        self._first_groups = np.concatenate([[0], np.cumsum(-(-n_edges // group_size))])
        self.n_groups = int(self._first_groups[-1])
        self._order = SampleOrder(self.n_groups, seed, "query groups")
        self._edge_orders: Mapping[int, SampleOrder] = {
            relation: SampleOrder(int(n), seed, f"queries of relation {relation}")
            for relation, n in enumerate(n_edges)
            if n
        }

    def group(self, position: int) -> tuple[int, np.ndarray]:
        """The relation and the edges of the group at a position, counted from 0 through all epochs."""
        epoch = position // self.n_groups
        number = int(self._order.samples(position, 1)[0])
        relation = int(np.searchsorted(self._first_groups, number, side="right")) - 1
        n_edges = int(self._offsets[relation + 1] - self._offsets[relation])
        place = number - int(self._first_groups[relation])
        n_groups = int(self._first_groups[relation + 1]) - int(self._first_groups[relation])
        first, stop = place * n_edges // n_groups, (place + 1) * n_edges // n_groups
        places = self._edge_orders[relation].samples(epoch * n_edges + first, stop - first)
        return relation, self._by_relation[self._offsets[relation] + places]
