"""Answers, paths, statuses and confidences that a graph reasoner gives to new queries.

Shapes as for models.reasoning_batch.ReasoningBatch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
import torch

from strata_core.corpus.graphs.example import NUMBER_MODES, GraphExample, Mode, Status
from strata_core.corpus.graphs.jsonl import BACKWARDS
from strata_core.corpus.graphs.names import GraphNames
from strata_core.errors import DataError
from strata_core.models.graphs.graph_reasoner import GraphReasoner, ReasonerConfig
from strata_core.tasks.graph_queries.answers import Reasoned, SelectedPath, reason
from strata_core.tasks.kind import Question
from strata_core.tasks.query_files import answered, as_reader, mode_faults, read_queries, refuse_sentences
from strata_core.training.trained import Trained

RANKED_NODES = 10
"""Nodes that a ranking has at most."""

_EXAMPLES_IN_A_BATCH = 32
_ANSWERED = (Mode.ENTITY, *NUMBER_MODES)


def answered_file(trained: Trained, question: Question) -> bytes:
    """Answers to the queries of a file, each with its graph, as JSON Lines; see `TaskKind.predict`."""
    refuse_sentences(question)
    predictor = GraphPredictor(trained, question.device, question.autocast)
    return answered(predictor, partial(read_queries, check=predictor.problems), question)


class GraphPredictor:
    """Answers queries over graphs of their own.

    Paths are those that the model's own search finds and its threshold selects; probabilities of statuses and the
    confidence are those under the temperatures fitted on validation data.

    Args:
        trained: a checkpoint of a graph reasoner.
        device: where to compute.
        autocast: the context that forward passes run in.

    Raises:
        DataError: the checkpoint lacks something, or cannot be used.
    """

    def __init__(
        self, trained: Trained, device: torch.device, autocast: Callable[[], AbstractContextManager[Any]]
    ) -> None:
        self.names = _names_in(trained)
        self._model = GraphReasoner(ReasonerConfig.from_dict(trained.config.get("model", {})))
        trained.load_into(self._model.to(device))
        self._autocast = autocast

    def answer(self, examples: list[GraphExample], progress: Callable[[int, int], None]) -> Iterator[dict[str, Any]]:
        """A record for each example, in order: JSON values.

        Args:
            examples: of which the model can tell what they ask for (`problems`).
            progress: told how many of how many examples are done.

        Yields:
            "id", "status", "status_probabilities", "confidence", "paths" (selected ones, the best first: "branch",
            "edges" as [source, relation, destination], "probability"), and by what is asked for "answers" and
            "ranking" (nodes with their probabilities) or "number".
        """
        with as_reader(examples, self.names) as reader:
            for start in range(0, len(examples), _EXAMPLES_IN_A_BATCH):
                numbers = np.arange(start, min(start + _EXAMPLES_IN_A_BATCH, len(examples)))
                with self._autocast():
                    reasoned = reason(self._model, reader.batch(numbers))
                for number, told in zip(numbers, reasoned, strict=True):
                    yield self._record(examples[number], told)
                progress(int(numbers[-1]) + 1, len(examples))

    def problems(self, example: GraphExample) -> list[str]:
        """What an example asks for that the model cannot tell, in words."""
        faults = mode_faults(example, _ANSWERED)
        n_relations = len(self.names.relations)
        backwards = any(step >= n_relations for branch in example.query.branches for step in branch.steps)
        if backwards and not self._model.config.inverse_edges:
            faults.append(f"walks a relation backwards ({BACKWARDS}), which no training query did")
        return faults

    def _record(self, example: GraphExample, reasoned: Reasoned) -> dict[str, Any]:
        record: dict[str, Any] = {
            "id": example.id,
            "status": _status_name(reasoned.status),
            "status_probabilities": {
                _status_name(number): round(chance, 6) for number, chance in enumerate(reasoned.status_probabilities)
            },
            "confidence": round(reasoned.confidence, 6),
        }
        if example.query.mode in NUMBER_MODES:
            record["number"] = reasoned.number
        else:
            chances = reasoned.node_probabilities
            ranked = np.argsort(-chances, kind="stable")[:RANKED_NODES].tolist()
            record["answers"] = [node for node, _ in reasoned.answers]
            record["ranking"] = [{"node": node, "probability": round(float(chances[node]), 6)} for node in ranked]
        return record | {"paths": [self._path(path) for path in reasoned.paths]}

    def _path(self, path: SelectedPath) -> dict[str, Any]:
        return {
            "branch": path.branch,
            "edges": [[source, self.names.relations[relation], end] for source, relation, end in path.edges],
            "probability": round(float(1 / (1 + np.exp(-path.score))), 6),
        }


def _names_in(trained: Trained) -> GraphNames:
    config: Mapping[str, Any] = trained.config
    match config:
        case {"relations": list(relations), "node_types": list(node_types), "model": dict()}:
            return GraphNames(tuple(relations), tuple(node_types))
    raise DataError(f"{trained.checkpoint.path / 'config.json'}: has no relations, node_types and model")


def _status_name(number: int) -> str:
    return Status(number).name.lower()
