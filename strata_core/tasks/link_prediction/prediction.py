"""Missing links of a knowledge graph: the entities that a model ranks as answers to new queries.

Shapes: B queries, N entities, R relations without inverses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch

from strata_core.corpus.graphs.corpus import GraphCorpus
from strata_core.errors import DataError, UsageError
from strata_core.observer import Observer
from strata_core.recipes.graph import GraphRecipe
from strata_core.tasks.data import check_same_corpus, open_data
from strata_core.tasks.kind import Question
from strata_core.tasks.link_prediction.batches import batches_of_relations
from strata_core.tasks.link_prediction.query_file import LinkQuery, read_link_queries
from strata_core.tasks.link_prediction.task import LinkPredictionTask
from strata_core.tasks.query_files import answered, refuse_sentences
from strata_core.training.distributed import ALONE
from strata_core.training.task import EvaluationContext
from strata_core.training.trained import Trained

RANKED_ENTITIES = 10
"""Entities that a ranking has at most."""


def answered_file(trained: Trained, question: Question) -> bytes:
    """Answers to the link queries of a file, as JSON Lines; see `TaskKind.predict`."""
    refuse_sentences(question)
    predictor = LinkPredictor(trained, question.device, question.autocast, question.observer)
    return answered(predictor, read_link_queries, question)


class LinkPredictor:
    """Ranks entities as an evaluation does, over the graph of training, for queries about it.

    Args:
        trained: a checkpoint of a knowledge graph reasoner, in its run.
        device: where to compute.
        autocast: the context that forward passes run in.
        observer: told of a corpus that has to be prepared first.

    Raises:
        UsageError: there is no run, or its corpus is not there or has changed: the graph is in the corpus.
        DataError: the checkpoint or the corpus lacks something, or cannot be used.
    """

    def __init__(
        self,
        trained: Trained,
        device: torch.device,
        autocast: Callable[[], AbstractContextManager[Any]],
        observer: Observer,
    ) -> None:
        recipe = trained.recipe()
        if recipe is None:
            raise UsageError(
                f"{trained.path} is not in its run, so nothing tells which graph it is asked about",
                hint="name the run itself, or the step's folder in the checkpoints of the run",
            )
        data = open_data(recipe, observer)
        check_same_corpus(trained, data, hint="answers come from the graph of training: put that corpus back")
        assert isinstance(recipe, GraphRecipe) and isinstance(data, GraphCorpus)
        task = LinkPredictionTask(recipe, data)
        model = task.build_model()
        trained.load_into(model)
        self.names = data.names
        self._source = trained.checkpoint.path
        self._task = task
        self._model = model.to(device)
        self._batch_size = recipe.batch.micro_batch_size
        self._context = EvaluationContext(device, ALONE, autocast, lambda: False, lambda done, total: None)

    def answer(self, examples: list[LinkQuery], progress: Callable[[int, int], None]) -> Iterator[dict[str, Any]]:
        """A record for each query, in order: JSON values.

        Yields:
            "id", "head" or "tail" and "relation" as they were asked, "known" (the answers that the training triples
            have) and "ranking" (other entities with their scores, the best first; of equals the first in names.json).

        Raises:
            DataError: the model's scores are not finite.
        """
        n_relations = len(self.names.relations)
        asked = [(query.entity, query.relation + (0 if query.asks_for_tail else n_relations)) for query in examples]
        queries = np.array(asked, dtype=np.int64).reshape(-1, 2)
        records: dict[int, dict[str, Any]] = {}
        for rows in batches_of_relations(queries, self._batch_size):
            heads, relation = queries[rows, 0], int(queries[rows[0], 1])
            for row, scores in zip(rows.tolist(), self._scores(heads, relation), strict=True):
                known = self._task.trained_answers(int(queries[row, 0]), relation)
                records[row] = self._record(examples[row], known, scores)
            progress(len(records), len(examples))
        for row in range(len(examples)):
            yield records[row]

    def _scores(self, heads: np.ndarray, relation: int) -> np.ndarray:
        """float32 [B, N]."""
        with torch.inference_mode():
            scores_BN = self._task.score_entities(self._model, heads, relation, self._context).cpu().numpy()
        if not np.isfinite(scores_BN).all():
            raise DataError(
                f"{self._source}: the scores of the model are not finite", hint="take an earlier checkpoint with --from"
            )
        return np.asarray(scores_BN)

    def _record(self, query: LinkQuery, known: np.ndarray, scores: np.ndarray) -> dict[str, Any]:
        """What is said to one query, of whose known answers, int64 [A], and scores, float32 [N]."""
        entities = self.names.entities
        is_new = np.ones(len(scores), dtype=bool)
        is_new[known] = False
        ranked = np.argsort(-scores, kind="stable")
        return {
            "id": query.id,
            "head" if query.asks_for_tail else "tail": entities[query.entity],
            "relation": self.names.relations[query.relation],
            "known": [entities[number] for number in known.tolist()],
            "ranking": [
                {"entity": entities[number], "score": round(float(scores[number]), 6)}
                for number in ranked[is_new[ranked]][:RANKED_ENTITIES].tolist()
            ],
        }
