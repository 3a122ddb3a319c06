"""Answers, paths, statuses and confidences that a graph reasoner gives to new queries.

Shapes as for models.reasoning_batch.ReasoningBatch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strata_core.corpus.graph_example import NUMBER_MODES, GraphExample, Mode, Status
from strata_core.corpus.graph_jsonl import BACKWARDS
from strata_core.corpus.graph_names import GraphNames
from strata_core.corpus.graph_reading import GraphReader
from strata_core.errors import DataError
from strata_core.models.graph_reasoner import N_STATUSES, GraphReasoner, ReasonerConfig, Selection
from strata_core.models.reasoning_batch import ReasoningBatch
from strata_core.models.segments import segment_logsumexp
from strata_core.prediction.graph_input import as_reader
from strata_core.training.reasoning_batches import reasoning_arrays
from strata_core.training.trained import Trained

RANKED_NODES = 10
"""Nodes that a ranking has at most."""

ANSWER_SHARE = 0.5
"""A node is an answer if it is at least so likely, compared with the likeliest: training makes all answers alike."""

_EXAMPLES_IN_A_BATCH = 32
_SHOWN_EXAMPLES = 20


@dataclass(frozen=True)
class _Told:
    """What the model tells of a batch, on the host."""

    log_probabilities_M: np.ndarray
    node_offsets: np.ndarray
    statuses_B3: np.ndarray
    confidence_B: np.ndarray
    numbers_B: np.ndarray


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
        self._model = GraphReasoner(ReasonerConfig.from_dict(trained.config["model"]))
        trained.load_into(self._model)
        self._model.to(device)
        self._device = device
        self._autocast = autocast

    def answer(self, examples: list[GraphExample], progress: Callable[[int, int], None]) -> Iterator[dict[str, Any]]:
        """A record for each example, in order: JSON values.

        Yields:
            "id", "status", "status_probabilities", "confidence", "paths" (selected ones, the best first: "branch",
            "edges" as [source, relation, destination], "probability"), and by what is asked for "answers" and
            "ranking" (nodes with their probabilities) or "number".

        Raises:
            DataError: examples ask for what the model cannot tell; they are listed.
        """
        self._check(examples)
        with as_reader(examples, self.names) as reader:
            for start in range(0, len(examples), _EXAMPLES_IN_A_BATCH):
                numbers = np.arange(start, min(start + _EXAMPLES_IN_A_BATCH, len(examples)))
                yield from self._batch(reader, numbers, [examples[number] for number in numbers])
                progress(int(numbers[-1]) + 1, len(examples))

    def _check(self, examples: list[GraphExample]) -> None:
        problems = [f"{example.id}: {problem}" for example in examples for problem in self._problems(example)]
        if problems:
            more = [f"and {len(problems) - _SHOWN_EXAMPLES:,} more"] if len(problems) > _SHOWN_EXAMPLES else []
            raise DataError(
                "examples ask for what this model cannot tell",
                problems=(*problems[:_SHOWN_EXAMPLES], *more),
                hint="leave them out, or train on such queries",
            )

    def _problems(self, example: GraphExample) -> Iterator[str]:
        mode, n_relations = example.query.mode, len(self.names.relations)
        if mode not in (Mode.ENTITY, *NUMBER_MODES):
            yield f"asks for {mode.name.lower()}"
        backwards = any(step >= n_relations for branch in example.query.branches for step in branch.steps)
        if backwards and not self._model.config.inverse_edges:
            yield f"walks a relation backwards ({BACKWARDS}), which no training query did"

    def _batch(
        self, reader: GraphReader, numbers: np.ndarray, examples: list[GraphExample]
    ) -> Iterator[dict[str, Any]]:
        arrays = reasoning_arrays(reader.batch(numbers))
        tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
        batch = ReasoningBatch(**{name: tensor.to(self._device) for name, tensor in tensors.items()})
        with torch.inference_mode(), self._autocast():
            told, selection = self._told(batch)
        paths = self._paths(selection, batch, told.node_offsets, len(examples))
        for row, example in enumerate(examples):
            yield {"id": example.id, **self._record(example, row, told), "paths": paths[row]}

    def _told(self, batch: ReasoningBatch) -> tuple[_Told, Selection]:
        model = self._model
        walk = model.walk(batch)
        selection = model.select(walk, batch, model.found(walk, batch))
        scores_M = model.answers(walk).float()
        totals_B = segment_logsumexp(scores_M, batch.node_examples_M, batch.n_examples)
        log_probabilities_M = scores_M - totals_B.index_select(0, batch.node_examples_M)
        confidence_B = torch.sigmoid(model.confidence(walk, selection).float() / model.confidence_temperature)
        statuses_B3 = torch.softmax(model.statuses(walk).float() / model.status_temperature, dim=-1)
        owners = batch.node_examples_M.cpu().numpy()
        told = _Told(
            log_probabilities_M=_host(log_probabilities_M),
            node_offsets=np.searchsorted(owners, np.arange(batch.n_examples + 1)),
            statuses_B3=_host(statuses_B3),
            confidence_B=_host(confidence_B),
            numbers_B=model.numbers(walk, batch).argmax(dim=-1).cpu().numpy(),
        )
        return told, selection

    def _record(self, example: GraphExample, row: int, told: _Told) -> dict[str, Any]:
        probabilities = told.statuses_B3[row]
        status = int(probabilities.argmax())
        record: dict[str, Any] = {
            "status": _status_name(status),
            "status_probabilities": {
                _status_name(number): round(float(probabilities[number]), 6) for number in range(N_STATUSES)
            },
            "confidence": round(float(told.confidence_B[row]), 6),
        }
        supported = status == Status.SUPPORTED
        if example.query.mode in NUMBER_MODES:
            return record | {"number": int(told.numbers_B[row]) if supported else None}
        start, stop = told.node_offsets[row : row + 2]
        likelihood = np.exp(told.log_probabilities_M[start:stop])
        ranked = np.argsort(-likelihood, kind="stable")
        answers = [int(node) for node in ranked if likelihood[node] >= ANSWER_SHARE * likelihood[ranked[0]]]
        ranking = [
            {"node": int(node), "probability": round(float(likelihood[node]), 6)} for node in ranked[:RANKED_NODES]
        ]
        return record | {"answers": answers if supported else [], "ranking": ranking}

    def _paths(
        self, selection: Selection, batch: ReasoningBatch, node_offsets: np.ndarray, n_examples: int
    ) -> list[list[dict[str, Any]]]:
        """The selected paths of each example, the best first."""
        candidates = selection.candidates
        scores, real = _host(selection.scores_P), candidates.real_P.cpu().numpy()
        edges, lengths = candidates.edges_PT.cpu().numpy(), candidates.lengths_P.cpu().numpy()
        branches, owners = candidates.branches_P.cpu().numpy(), selection.examples_P.cpu().numpy()
        triples, branch_owners = batch.edges_F3.cpu().numpy(), batch.branch_examples_S.cpu().numpy()
        paths: list[list[dict[str, Any]]] = [[] for _ in range(n_examples)]
        for path in np.argsort(-scores, kind="stable").tolist():
            if not real[path] or scores[path] <= 0:
                continue
            owner = int(owners[path])
            walked = triples[edges[path, : lengths[path]]]
            first = int(node_offsets[owner])
            paths[owner].append(
                {
                    "branch": int(branches[path] - np.searchsorted(branch_owners, owner)),
                    "edges": [[s - first, self.names.relations[r], d - first] for s, r, d in walked.tolist()],
                    "probability": round(float(1 / (1 + np.exp(-scores[path]))), 6),
                }
            )
        return paths


def _names_in(trained: Trained) -> GraphNames:
    config: Mapping[str, Any] = trained.config
    match config:
        case {"relations": list(relations), "node_types": list(node_types), "model": dict()}:
            return GraphNames(tuple(relations), tuple(node_types))
    raise DataError(f"{trained.checkpoint.path / 'config.json'}: has no relations, node_types and model")


def _status_name(number: int) -> str:
    return Status(number).name.lower()


def _host(values: Tensor) -> np.ndarray:
    return np.asarray(values.float().cpu().numpy(), dtype=np.float64)
