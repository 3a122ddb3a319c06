"""The task of answering queries over one knowledge graph: what a relation leads to from an entity."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from strata_core.corpus.graphs.corpus import GraphCorpus
from strata_core.errors import DataError, RecipeError
from strata_core.evaluation.ranking import hits_at, mean_reciprocal_rank, realistic_ranks
from strata_core.models.graphs.knowledge_graph_reasoner import (
    KnowledgeGraphConfig,
    KnowledgeGraphReasoner,
    Reached,
    WholeGraph,
)
from strata_core.models.initialisation import initialise
from strata_core.objectives.link_prediction import EntityScores, filtered_cross_entropy
from strata_core.recipes.graph import GraphRecipe
from strata_core.tasks.graph_settings import refuse_reasoner_settings
from strata_core.tasks.link_prediction.batches import (
    AnswerTable,
    Frontier,
    GroupOrder,
    KnowledgeGraph,
    QueryGroup,
    batches_of_relations,
    with_inverses,
)
from strata_core.training.order import SampleOrder
from strata_core.training.task import Batch, EvaluationContext, StepPlan

_DENSE_CELLS_PER_EDGE = 16
"""A graph whose adjacency matrix has no more cells than this for each edge is worked on as a matrix."""


class LinkPredictionTask:
    """Both queries of each training triple: its tail from its head, and its head from its tail.

    The queries of a step come in groups of one relation (`batch.relation_group_size`); the edges that a group asks
    about are taken out of the graph for the whole group, so that cutting it into micro-batches changes nothing.
    """

    kind = "knowledge-graph"
    rate_factors: Mapping[str, float] = {}
    shapes_vary = True
    metric_directions: Mapping[str, str] = {
        "loss": "min",
        "mrr": "max",
        "hits_at_1": "max",
        "hits_at_3": "max",
        "hits_at_10": "max",
        "selection_score": "max",
    }

    def __init__(self, recipe: GraphRecipe, corpus: GraphCorpus) -> None:
        """Takes the corpus as it is; `check` tells whether it serves.

        Raises:
            DataError: the corpus holds something else than one graph and triples.
        """
        self.loss_weights: Mapping[str, float] = {"answer": recipe.objective.answer}
        self._recipe = recipe
        self._corpus = corpus
        self._n_relations = corpus.info.relations
        self._triples = {split: _triples(corpus, split) for split in corpus.info.splits}
        self.graph = KnowledgeGraph(self._triples["train"], corpus.info.entities, self._n_relations)
        both = {split: with_inverses(triples, self._n_relations) for split, triples in self._triples.items()}
        self._queries = both
        self._trained = AnswerTable(both["train"], 2 * self._n_relations)
        self._known = AnswerTable(np.concatenate(list(both.values())), 2 * self._n_relations)
        self._micro_batch_size = recipe.batch.micro_batch_size
        self._group_size = recipe.batch.relation_group_size
        self._order = GroupOrder(self.graph.edges[:, 1], self._group_size, recipe.run.seed)
        self.is_dense = self.graph.n_entities**2 <= _DENSE_CELLS_PER_EDGE * len(self.graph.edges)
        model = recipe.model
        self._shape = KnowledgeGraphConfig(
            n_relations=2 * self._n_relations,
            d_model=model.d_model,
            n_layers=model.n_layers,
            message_rank=model.message_rank,
            d_score=model.d_model,
            message=model.message,
            n_heads=model.n_heads,
            dropout=model.dropout,
            message_dropout=model.message_dropout,
            message_norm_eps=model.message_norm_eps,
        )

    def check(self) -> None:
        """Refuses settings that do not fit together, and data without a validation split where one is needed.

        Raises:
            RecipeError: what is wrong, with the numbers.
        """
        batch = self._recipe.batch
        if self._group_size % self._micro_batch_size or batch.batch_size % self._group_size:
            raise RecipeError(
                f"batch.relation_group_size {self._group_size} is not a multiple of batch.micro_batch_size "
                f"{self._micro_batch_size} that divides batch.batch_size {batch.batch_size}",
                hint="a step is made of whole groups, and a group of whole micro-batches",
            )
        if self._recipe.objective.answer == 0:
            raise RecipeError("objective.answer is 0, and a knowledge graph has nothing else to learn from")
        refuse_reasoner_settings(self._recipe, self._corpus.path)
        every = self._recipe.evaluation.every
        if every and not len(self._triples.get("val", ())):
            raise RecipeError(
                f"evaluation.every is {every}, but {self._corpus.path} has no validation triples",
                hint="set evaluation.every = 0",
            )

    def build_model(self) -> KnowledgeGraphReasoner:
        """The model with its first weights, on the default device."""
        model = KnowledgeGraphReasoner(self._shape)
        initialise(model, self._recipe.run.seed)
        return model

    def plan(self, step: int) -> StepPlan:
        """The groups at the step's positions in the order, cut into micro-batches."""
        n_groups = self._recipe.batch.batch_size // self._group_size
        n_parts = self._group_size // self._micro_batch_size
        groups = [self._order.group(step * n_groups + place) for place in range(n_groups)]
        micro_batches = [
            QueryGroup(relation, asked, edges) for relation, edges in groups for asked in np.array_split(edges, n_parts)
        ]
        queries = sum(len(edges) for _, edges in groups)
        return StepPlan(micro_batches, {"answer": queries}, samples=queries, tokens=queries)

    def worst_step(self) -> StepPlan:
        """Micro-batches that reach most, of a graph without anything taken out: the edges of one relation whose starts
        have the largest frontiers, or, for a graph worked on as a matrix, those with most different starts."""
        costs = self._costs()
        by_cost = [edges[np.argsort(-costs[edges], kind="stable")] for edges in self._edges_of_relations()]
        asked = max((edges[: self._micro_batch_size] for edges in by_cost), key=lambda edges: costs[edges].sum())
        nothing = np.zeros(0, dtype=np.int64)
        worst = QueryGroup(int(self.graph.edges[asked[0], 1]), asked, nothing)
        n_micro_batches = self._recipe.batch.batch_size // self._micro_batch_size
        queries = len(asked) * n_micro_batches
        return StepPlan([worst] * n_micro_batches, {"answer": queries}, samples=queries, tokens=queries)

    def _edges_of_relations(self) -> list[np.ndarray]:
        relations = self.graph.edges[:, 1]
        return np.split(np.argsort(relations, kind="stable"), np.flatnonzero(np.diff(np.sort(relations))) + 1)

    def _costs(self) -> np.ndarray:
        """float64 [E], how much a query about each edge costs, roughly."""
        if not self.is_dense:
            return self.graph.frontier_sizes(self._shape.n_layers)[self.graph.edges[:, 0]]
        pairs = self.graph.edges[:, 0] * 2 * self._n_relations + self.graph.edges[:, 1]
        costs = np.zeros(len(pairs))
        costs[np.unique(pairs, return_index=True)[1]] = 1.0
        return costs

    def fetch(self, micro_batch: QueryGroup) -> Batch:
        """The tensors of `_batch`, for a graph without the edges that the group asks about."""
        queries = self.graph.edges[micro_batch.asked]
        return self._batch(queries, micro_batch.relation, self._trained, self.graph.without(micro_batch.taken_out))

    def _batch(self, queries: np.ndarray, relation: int, answers: AnswerTable, stays: np.ndarray | None) -> Batch:
        """What the model needs to score some queries of one relation.

        Args:
            queries: int64 [B, 3], head, relation and the answer in question.
            relation: theirs.
            answers: the right answers, which are no rivals.
            stays: bool [E], the edges that are there; None: all.

        Returns:
            "relation" int64 [1]; "targets" int64 [B], the pair of each answer, -1 where it is not reached; "rivals"
            bool, [B, N] or [P]; and, for the layout as a matrix, "starts" int64 [S], "start_of_query" int64 [B],
            and the arrays of `WholeGraph`; for the other "unreached" float32 [B], how many rivals are not reached, and
            "owners_0" to "owners_L", and for each layer from 0 "links_", "destinations_", "link_ends_", "arriving_" and
            "arrival_offsets_", see `Frontier`.
        """
        heads, targets = queries[:, 0], queries[:, 2]
        right, cuts = answers.of(heads, relation)
        rows = np.repeat(np.arange(len(queries)), np.diff(cuts))
        layout = self._matrix_layout if self.is_dense else self._frontier_layout
        return _tensors(layout(heads, targets, rows, right, stays), relation)

    def _matrix_layout(
        self, heads: np.ndarray, targets: np.ndarray, rows: np.ndarray, right: np.ndarray, stays: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        rivals = np.ones((len(heads), self.graph.n_entities), dtype=bool)
        rivals[rows, right] = False
        return {
            **self._matrix_arrays(heads, stays),
            "rivals": rivals,
            "targets": np.arange(len(heads)) * self.graph.n_entities + targets,
        }

    def _matrix_arrays(self, heads: np.ndarray, stays: np.ndarray | None) -> dict[str, np.ndarray]:
        """What all entities are scored from."""
        starts, start_of_query = np.unique(heads, return_inverse=True)
        return {"starts": starts, "start_of_query": start_of_query, **self.graph.by_cell_and_relation(stays)}

    def _frontier_layout(
        self, heads: np.ndarray, targets: np.ndarray, rows: np.ndarray, right: np.ndarray, stays: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        frontier = self.graph.frontier(heads, self._shape.n_layers, stays)
        n_reached = sum(len(owners) for owners in frontier.owners)
        right_pairs = frontier.pairs[rows, right]
        rivals = np.ones(n_reached, dtype=bool)
        rivals[right_pairs[right_pairs >= 0]] = False
        listed = np.bincount(np.concatenate(frontier.owners), minlength=len(heads))
        unlisted_right = np.bincount(rows[right_pairs < 0], minlength=len(heads))
        return {
            "rivals": rivals,
            "targets": frontier.pairs[np.arange(len(heads)), targets],
            "unreached": (self.graph.n_entities - listed - unlisted_right).astype(np.float32),
            **_reached_arrays(frontier),
        }

    def loss_sums(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """ "answer": nats summed over the queries."""
        return {"answer": filtered_cross_entropy(self._scores(model, batch)).sum()}

    def _scores(self, model: nn.Module, batch: Batch) -> EntityScores:
        assert isinstance(model, KnowledgeGraphReasoner)
        if self.is_dense:
            return _all_listed(self._scores_of_all(model, batch), batch)
        scores_P, owners_P, unlisted = self._scores_of_reached(model, batch)
        return EntityScores(scores_P, owners_P, batch["rivals"], unlisted, batch["unreached"], batch["targets"])

    def _scores_of_all(self, model: KnowledgeGraphReasoner, batch: Batch) -> Tensor:
        """float32 [B, N]."""
        graph = WholeGraph(**{field.name: batch[field.name] for field in dataclasses.fields(WholeGraph)})
        scores_NS = model.score_all(batch["relation"], batch["starts"], graph, self.graph.n_entities).float()
        return scores_NS.T.index_select(0, batch["start_of_query"])

    def _scores_of_reached(self, model: KnowledgeGraphReasoner, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """float32 [P], int64 [P], the query of each pair; and the score of every other entity, float32 scalar."""
        owners = [batch[f"owners_{level}"] for level in range(self._shape.n_layers + 1)]
        parts = ("links", "destinations", "link_ends", "arriving", "arrival_offsets")
        of_layers = {part: [batch[f"{part}_{layer}"] for layer in range(self._shape.n_layers)] for part in parts}
        reached = Reached([level.shape[0] for level in owners], **of_layers)
        scores_P, unlisted = model.score_reached(batch["relation"], reached)
        return scores_P.float(), torch.cat(owners), unlisted.float()

    def score_entities(self, model: nn.Module, heads: np.ndarray, relation: int, context: EvaluationContext) -> Tensor:
        """How well each entity answers some queries of one relation, scored over the whole graph as in an evaluation.

        Args:
            model: of `build_model`.
            heads: int64 [B], the entities asked from.
            relation: what is asked for, below 2 R; from R on the inverses, which ask for heads.
            context: where to compute.

        Returns:
            float32 [B, N], higher is better; entities that no message reached have one score.
        """
        assert isinstance(model, KnowledgeGraphReasoner)
        if self.is_dense:
            batch = _on(context.device, _tensors(self._matrix_arrays(heads, None), relation))
            with context.autocast():
                return self._scores_of_all(model, batch)
        frontier = self.graph.frontier(heads, self._shape.n_layers)
        batch = _on(context.device, _tensors(_reached_arrays(frontier), relation))
        with context.autocast():
            scores_P, owners_P, unlisted = self._scores_of_reached(model, batch)
        scores_BN = unlisted.repeat(len(heads), self.graph.n_entities)
        scores_BN[owners_P, torch.from_numpy(np.concatenate(frontier.entities)).to(context.device)] = scores_P
        return scores_BN

    def trained_answers(self, head: int, relation: int) -> np.ndarray:
        """int64 [A], ascending: what the training triples have as answers to a query; see `score_entities`."""
        return self._trained.of(np.array([head]), relation)[0]

    def evaluate(self, model: nn.Module, context: EvaluationContext) -> dict[str, float]:
        """ "loss" in nats per query, "mrr" and "hits_at_1", "_3", "_10" on the validation split, both directions.

        Ranks are filtered by the triples of all splits, and realistic. "selection_score" is "mrr". With
        evaluation.batches set only a sample of the triples is asked about, the same in every evaluation.

        Raises:
            EvaluationStopped: a stop was requested meanwhile.
        """
        queries = self._queries["val"]
        limit = self._recipe.evaluation.batches * self._micro_batch_size
        n_triples = len(queries) // 2
        if 0 < limit < n_triples:
            chosen = np.sort(SampleOrder(n_triples, self._recipe.run.seed, "evaluation").samples(0, limit))
            queries = queries[np.concatenate([chosen, chosen + n_triples])]
        ranks, losses = self._rank(model, queries, context)
        mrr = mean_reciprocal_rank(ranks)
        hits = {f"hits_at_{k}": hits_at(ranks, k) for k in (1, 3, 10)}
        return {"loss": float(losses.mean()), "mrr": mrr, **hits, "selection_score": mrr}

    def _rank(self, model: nn.Module, queries: np.ndarray, context: EvaluationContext) -> tuple[np.ndarray, np.ndarray]:
        """float64 [queries]: the rank of each query's answer, and its loss in nats; the same on every rank."""
        batches = list(batches_of_relations(queries, self._micro_batch_size))
        found = context.zeros(2, len(queries))
        for index in context.my_share(len(batches)):
            rows = batches[index]
            batch = self._batch(queries[rows], int(queries[rows[0], 1]), self._known, None)
            with context.autocast():
                scores = self._scores(model, _on(context.device, batch))
            values = torch.stack([realistic_ranks(scores), filtered_cross_entropy(scores)])
            found[:, torch.from_numpy(rows).to(context.device)] = values.to(found)
        ranks, losses = np.array(context.ranks.sum(found).tolist(), dtype=np.float64)
        # Nothing compares with NaN, so that a query with such scores would come out as answered perfectly.
        return np.where(np.isnan(losses), np.nan, ranks), losses

    def report(self, model: nn.Module, split: str, context: EvaluationContext) -> dict[str, Any]:
        """Filtered ranking on a split: in all, by direction and by relation, and what in it training never saw.

        Args:
            model: of `build_model`.
            split: one of the corpus's.
            context: where to compute.

        Returns:
            "queries", "mrr", "hits_at_1", "hits_at_3", "hits_at_10"; tables of the same under "by_direction" and
            "by_relation"; and under "unseen_entities", "unseen_relations" and "known_from_training" the same for the
            queries that have the property, "queries" alone where none has.

        Raises:
            DataError: the corpus has no such split, or nothing in it.
        """
        queries = self._queries.get(split)
        if queries is None or not len(queries):
            raise DataError(f"{self._corpus.path}: no triples in {split!r}", hint=f"it has {', '.join(self._queries)}")
        ranks, _ = self._rank(model, queries, context)
        names, relations = self._corpus.names.relations, queries[:, 1] % self._n_relations
        backwards = queries[:, 1] >= self._n_relations
        trained = self.graph.edges
        entity_seen = np.isin(np.arange(self.graph.n_entities), trained[:, 0])
        properties = {
            "unseen_entities": ~(entity_seen[queries[:, 0]] & entity_seen[queries[:, 2]]),
            "unseen_relations": ~np.isin(queries[:, 1], trained[:, 1]),
            "known_from_training": np.isin(self._keys(queries), self._keys(trained)),
        }
        return {
            **_ranking(ranks),
            "by_direction": [
                {"asked": "tail", **_ranking(ranks[~backwards])},
                {"asked": "head", **_ranking(ranks[backwards])},
            ],
            "by_relation": [
                {"relation": names[number], **_ranking(ranks[relations == number])} for number in np.unique(relations)
            ],
            **{name: _ranking(ranks[holds]) for name, holds in properties.items()},
        }

    def _keys(self, queries: np.ndarray) -> np.ndarray:
        return (queries[:, 0] * 2 * self._n_relations + queries[:, 1]) * self.graph.n_entities + queries[:, 2]

    def config(self) -> dict[str, Any]:
        """The model's shape, what its relations are called, and how many entities the graph has, with the SHA-256 of
        their names as JSON."""
        names = self._corpus.names
        digest = hashlib.sha256(json.dumps(names.entities).encode()).hexdigest()
        return {
            "kind": self.kind,
            "model": self._shape.to_dict(),
            "relations": list(names.relations),
            "entities": {"count": len(names.entities), "sha256": digest},
        }

    def facts(self) -> dict[str, Any]:
        """Triples of the splits, and the size of the graph."""
        return {
            "train": f"{len(self._triples['train']):,} triples, asked in both directions",
            "validation": f"{len(self._triples.get('val', ())):,} triples",
            "graph": f"{self.graph.n_entities:,} entities, {self._n_relations:,} relations",
        }


def _tensors(arrays: Mapping[str, np.ndarray], relation: int) -> Batch:
    named = {**arrays, "relation": np.array([relation])}
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in named.items()}


def _on(device: torch.device, batch: Batch) -> Batch:
    return {name: part.to(device) for name, part in batch.items()}


def _reached_arrays(frontier: Frontier) -> dict[str, np.ndarray]:
    """What the pairs of a frontier are scored from."""
    arrays = {f"owners_{level}": owners for level, owners in enumerate(frontier.owners)}
    for layer, (arriving, arrival_offsets) in enumerate(frontier.arrivals()):
        arrays[f"links_{layer}"] = frontier.links[layer]
        arrays[f"destinations_{layer}"] = frontier.destinations[layer].astype(np.int32)
        arrays[f"link_ends_{layer}"] = frontier.link_ends[layer].astype(np.int32)
        arrays[f"arriving_{layer}"] = arriving
        arrays[f"arrival_offsets_{layer}"] = arrival_offsets
    return arrays


def _all_listed(scores_BN: Tensor, batch: Batch) -> EntityScores:
    n_queries, n_entities = scores_BN.shape
    queries_B = torch.arange(n_queries, device=scores_BN.device)
    return EntityScores(
        scores_BN.flatten(),
        queries_B.repeat_interleave(n_entities, output_size=n_queries * n_entities),
        batch["rivals"].flatten(),
        scores_BN.new_zeros(()),
        scores_BN.new_zeros(n_queries),
        batch["targets"],
    )


def _triples(corpus: GraphCorpus, split: str) -> np.ndarray:
    """int64 [T, 3]: the triples that a split asks about."""
    arrays = corpus.split(split).arrays
    columns = [arrays[name] for name in ("branch_starts", "steps", "answers")]
    if corpus.info.origin != "triples" or len({len(column) for column in columns}) > 1:
        raise DataError(f"{corpus.path}: {split} does not hold triples of one graph", hint="prepare the corpus again")
    return np.stack(columns, axis=1).astype(np.int64)


def _ranking(ranks: np.ndarray) -> dict[str, Any]:
    """How many ranks there are, and their figures."""
    if not len(ranks):
        return {"queries": 0}
    return {
        "queries": len(ranks),
        "mrr": mean_reciprocal_rank(ranks),
        **{f"hits_at_{k}": hits_at(ranks, k) for k in (1, 3, 10)},
    }
