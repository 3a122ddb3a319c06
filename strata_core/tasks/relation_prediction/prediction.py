"""Labels between two nodes that a path composition tells for new graphs.

Shapes: B examples, P paths, V bracketings, K labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
import torch

from strata_core.corpus.graphs.example import GraphExample, Mode
from strata_core.corpus.graphs.names import GraphNames
from strata_core.errors import DataError
from strata_core.evaluation.voting import vote
from strata_core.models.graphs.path_composition import CompositionConfig, PathComposition
from strata_core.tasks.kind import Question
from strata_core.tasks.query_files import answered, mode_faults, read_queries, refuse_sentences
from strata_core.tasks.relation_prediction.batches import fixed_priorities, lay_out_paths
from strata_core.tasks.relation_prediction.simple_paths import simple_paths
from strata_core.training.trained import Trained

RANKED_LABELS = 10
"""Labels that a ranking has at most."""

_EXAMPLES_IN_A_BATCH = 64


def answered_file(trained: Trained, question: Question) -> bytes:
    """Answers to the queries of a file, each with its graph, as JSON Lines; see `TaskKind.predict`."""
    refuse_sentences(question)
    predictor = LabelPredictor(trained, question.device, question.autocast)
    return answered(predictor, partial(read_queries, check=predictor.problems), question)


class LabelPredictor:
    """Tells the label between two nodes, as an evaluation does: bracketings and paths vote.

    Args:
        trained: a checkpoint of a path composition.
        device: where to compute.
        autocast: the context that forward passes run in.

    Raises:
        DataError: the checkpoint lacks something, or cannot be used.
    """

    def __init__(
        self, trained: Trained, device: torch.device, autocast: Callable[[], AbstractContextManager[Any]]
    ) -> None:
        match trained.config:
            case {
                "relations": list(relations),
                "targets": list(targets),
                "model": dict(),
                "longest_path": int(longest_path),
                "max_paths": int(max_paths),
                "bracketings": int(bracketings),
            }:
                self.names = GraphNames(tuple(relations), targets=tuple(targets))
                self._longest_path, self._max_paths, self._bracketings = longest_path, max_paths, bracketings
            case _:
                raise DataError(
                    f"{trained.checkpoint.path / 'config.json'}: lacks one of relations, targets, model, longest_path, "
                    "max_paths and bracketings"
                )
        self._model = PathComposition(CompositionConfig.from_dict(trained.config.get("model", {})))
        trained.load_into(self._model.to(device))
        self._device = device
        self._autocast = autocast

    def problems(self, example: GraphExample) -> list[str]:
        """What an example asks for that the model cannot tell, in words."""
        return mode_faults(example, (Mode.RELATION,))

    def answer(self, examples: list[GraphExample], progress: Callable[[int, int], None]) -> Iterator[dict[str, Any]]:
        """A record for each example, in order: JSON values.

        Args:
            examples: of which the model can tell what they ask for (`problems`).
            progress: told how many of how many examples are done.

        Yields:
            "id", "label" (the likeliest), "ranking" (labels with their probabilities) and "paths" (relations along
            those that were read; none where no path leads to the second node).
        """
        for start in range(0, len(examples), _EXAMPLES_IN_A_BATCH):
            batch = examples[start : start + _EXAMPLES_IN_A_BATCH]
            yield from self._batch(batch)
            progress(start + len(batch), len(examples))

    def _batch(self, examples: list[GraphExample]) -> Iterator[dict[str, Any]]:
        paths = [self._paths(example) for example in examples]
        for example, of_example, chances in zip(examples, paths, self._chances(paths), strict=True):
            ranked = np.argsort(-chances, kind="stable")[:RANKED_LABELS].tolist()
            yield {
                "id": example.id,
                "label": self.names.targets[ranked[0]],
                "ranking": [
                    {"label": self.names.targets[number], "probability": round(float(chances[number]), 6)}
                    for number in ranked
                ],
                "paths": [[self.names.relations[relation] for relation in path] for path in of_example],
            }

    def _paths(self, example: GraphExample) -> list[tuple[int, ...]]:
        assert example.query.end is not None
        start, end = example.query.branches[0].start, example.query.end
        return simple_paths(example.edges, start, end, max_edges=self._longest_path, max_paths=self._max_paths)

    def _chances(self, paths_B: list[list[tuple[int, ...]]]) -> np.ndarray:
        """float32 [B, K]."""
        fixed = fixed_priorities(self._bracketings, self._longest_path - 1)
        priorities = np.broadcast_to(fixed, (len(paths_B), self._max_paths, *fixed.shape))
        nothing = np.zeros(len(paths_B), dtype=np.int64)
        arrays = lay_out_paths(paths_B, nothing, priorities, no_path=len(self.names.relations))
        batch = {name: tensor.to(self._device) for name, tensor in arrays.items()}
        with torch.inference_mode(), self._autocast():
            states_TD = self._model(batch["relations"], batch["pairs"], batch["roots"])
            states_PVD = states_TD.unflatten(0, (batch["path_examples"].shape[0], -1))
            scores_PVK = self._model.scores(states_PVD)
        votes_BK = vote(scores_PVK, batch["path_examples"], batch["path_weights"], len(paths_B))
        return np.asarray(votes_BK.cpu().numpy())
