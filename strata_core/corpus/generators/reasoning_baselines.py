"""What can be said of generated examples without the graph, or without the query: next to nothing, if they are fair.

The classifiers only count (naive Bayes over small whole numbers, Laplace's estimate), so they find whatever leans to
one label on its own: a relation that answers have more often, a graph that is larger when the query is supported.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from strata_core.corpus.graphs.batch import GraphBatch
from strata_core.corpus.graphs.example import Mode, Status
from strata_core.corpus.graphs.reading import GraphReader

_MOST_EXAMPLES = 6_000
_LARGEST_VALUE = 15


@dataclass(frozen=True)
class BaselineAccuracy:
    """How often a classifier is right on a split, beside what one gets that has seen nothing.

    Attributes:
        chance: share of the most frequent label; for answers, the mean share that answers have among nodes of their
            type.
        no_graph: from the query alone.
        no_query: from the graph alone.
        n_examples: how many were judged.
    """

    chance: float
    no_graph: float
    no_query: float
    n_examples: int


class CountingClassifier:
    """Naive Bayes over features that are whole numbers from 0; larger ones than 15 count as 15.

    Args:
        features: int [N, F].
        labels: int [N], from 0.
    """

    def __init__(self, features: np.ndarray, labels: np.ndarray) -> None:
        n_labels = int(labels.max()) + 1
        clipped = np.minimum(features, _LARGEST_VALUE)
        seen = np.bincount(labels, minlength=n_labels)
        counts = np.zeros((features.shape[1], n_labels, _LARGEST_VALUE + 1))
        for feature, table in enumerate(counts):
            cells = labels * (_LARGEST_VALUE + 1) + clipped[:, feature]
            table += np.bincount(cells, minlength=table.size).reshape(table.shape)
        totals = seen[:, None] + _LARGEST_VALUE + 1
        self._log_priors = np.log((seen + 1) / (seen.sum() + n_labels))
        self._log_likelihoods = np.log((counts + 1) / totals)

    def scores(self, features: np.ndarray) -> np.ndarray:
        """float64 [N, labels]: log probabilities up to a constant for each row."""
        clipped = np.minimum(features, _LARGEST_VALUE)
        scores = np.tile(self._log_priors, (len(features), 1))
        for feature, table in enumerate(self._log_likelihoods):
            scores += table[:, clipped[:, feature]].T
        return scores


class Baselines:
    """Classifiers of "status", "number" and "answer" (is this node an answer?), learned from one split.

    Args:
        train: to count in; its first 6,000 examples.
        n_relations: how many relations edges can have.
    """

    def __init__(self, train: GraphReader, n_relations: int) -> None:
        self._n_relations = n_relations
        seen = _Seen(train, n_relations)
        self._labels = {
            kind: tuple(CountingClassifier(features[rows], labels[rows]) for features in (seen.query, seen.graph))
            for kind, (labels, rows) in seen.labels().items()
            if rows.any()
        }
        is_answer = _is_answer(seen.batch).astype(np.int64)
        self._answers = (
            CountingClassifier(_node_numbers(seen.batch), is_answer),
            CountingClassifier(_node_features(seen.batch, n_relations), is_answer),
        )

    def accuracies(self, test: GraphReader) -> dict[str, BaselineAccuracy]:
        """How often each is right on the first 6,000 examples of a split; what it has no examples of is left out.

        For "answer" it is whether the node that looks most like an answer is one; equal nodes share the point.
        """
        seen = _Seen(test, self._n_relations)
        found = {}
        for kind, (labels, rows) in seen.labels().items():
            right = labels[rows]
            if len(right) and kind in self._labels:
                by_query, by_graph = self._labels[kind]
                found[kind] = BaselineAccuracy(
                    chance=float(np.bincount(right).max() / len(right)),
                    no_graph=float(np.mean(by_query.scores(seen.query[rows]).argmax(axis=1) == right)),
                    no_query=float(np.mean(by_graph.scores(seen.graph[rows]).argmax(axis=1) == right)),
                    n_examples=len(right),
                )
        n_asking = int(_asks_for_nodes(seen.batch).sum())
        if n_asking:
            by_number, by_place = self._answers
            found["answer"] = BaselineAccuracy(
                chance=_chance_among_type(seen.batch),
                no_graph=_mean_hits(seen.batch, by_number.scores(_node_numbers(seen.batch))),
                no_query=_mean_hits(seen.batch, by_place.scores(_node_features(seen.batch, self._n_relations))),
                n_examples=n_asking,
            )
        return found


class _Seen:
    """The first examples of a split, and what can be counted in them."""

    def __init__(self, reader: GraphReader, n_relations: int) -> None:
        self.batch = reader.batch(np.arange(min(len(reader), _MOST_EXAMPLES)))
        self.query = _query_features(self.batch, n_relations)
        self.graph = _graph_features(self.batch, n_relations)

    def labels(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """By kind: int [B], the labels; bool [B], which examples have one."""
        statuses = self.batch.statuses.astype(np.int64)
        return {
            "status": (statuses, np.ones(len(statuses), dtype=bool)),
            "number": (self.batch.numbers, self.batch.numbers >= 0),
        }


def _query_features(batch: GraphBatch, n_relations: int) -> np.ndarray:
    """int [B, F]: mode, branches, steps, and how often each relation is among the steps."""
    branch_examples = np.repeat(np.arange(len(batch.examples)), np.diff(batch.branch_offsets))
    step_examples = np.repeat(branch_examples, np.diff(batch.step_offsets))
    relations = np.zeros((len(batch.examples), n_relations), dtype=np.int64)
    np.add.at(relations, (step_examples, batch.steps), 1)
    n_branches = np.diff(batch.branch_offsets)
    return np.column_stack([batch.modes, n_branches, relations.sum(axis=1), relations])


def _graph_features(batch: GraphBatch, n_relations: int) -> np.ndarray:
    """int [B, F]: nodes and edges by tens, and how often each relation is among the edges; one graph an example."""
    relations = np.zeros((len(batch.examples), n_relations), dtype=np.int64)
    np.add.at(relations, (batch.edge_graphs, batch.edges[:, 1]), 1)
    n_nodes = np.diff(batch.node_offsets)
    return np.column_stack([n_nodes // 10, relations.sum(axis=1) // 10, relations])


def _node_features(batch: GraphBatch, n_relations: int) -> np.ndarray:
    """int [N, F]: type, edges in, edges out, and whether each relation leads in."""
    n_nodes = len(batch.node_types)
    relations_in = np.zeros((n_nodes, n_relations), dtype=np.int64)
    np.add.at(relations_in, (batch.edges[:, 2], batch.edges[:, 1]), 1)
    edges_out = np.bincount(batch.edges[:, 0], minlength=n_nodes)
    return np.column_stack([batch.node_types, relations_in.sum(axis=1), edges_out, relations_in])


def _node_numbers(batch: GraphBatch) -> np.ndarray:
    """int [N, 1]: a node's number in its graph, by tens."""
    return ((np.arange(len(batch.node_types)) - batch.node_offsets[batch.node_graphs]) // 10)[:, None]


def _is_answer(batch: GraphBatch) -> np.ndarray:
    answers = np.zeros(len(batch.node_types), dtype=bool)
    answers[batch.answers] = True
    return answers


def _asks_for_nodes(batch: GraphBatch) -> np.ndarray:
    """bool [B]: supported, and the answer is nodes."""
    return (batch.modes == Mode.ENTITY) & (batch.statuses == Status.SUPPORTED)


def _mean_hits(batch: GraphBatch, scores: np.ndarray) -> float:
    """Mean over examples of the chance that a best-scored node is an answer; `scores` is [N, no or yes]."""
    node_scores = scores[:, 1] - scores[:, 0]
    best = np.maximum.reduceat(node_scores, batch.node_offsets[:-1])
    is_best = node_scores == best[batch.node_graphs]
    n_graphs = len(batch.examples)
    n_best = np.bincount(batch.node_graphs[is_best], minlength=n_graphs)
    n_right = np.bincount(batch.node_graphs[is_best & _is_answer(batch)], minlength=n_graphs)
    return float(np.mean((n_right / n_best)[_asks_for_nodes(batch)]))


def _chance_among_type(batch: GraphBatch) -> float:
    """Mean over examples of the share that answers have among the nodes of their type."""
    n_graphs = len(batch.examples)
    n_answers = np.diff(batch.answer_offsets)
    asks = _asks_for_nodes(batch)
    answer_types = batch.node_types[batch.answers[batch.answer_offsets[:-1][asks]]]
    wanted_type = np.full(n_graphs, -1)
    wanted_type[asks] = answer_types
    same_type = batch.node_types == wanted_type[batch.node_graphs]
    n_candidates = np.bincount(batch.node_graphs[same_type], minlength=n_graphs)
    return float(np.mean(n_answers[asks] / n_candidates[asks]))
