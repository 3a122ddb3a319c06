"""A split's annotated sentences predicted and scored, shared out among ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

from strata_core.corpus.treebanks.chart_items import CHART_SCHEMES
from strata_core.corpus.treebanks.gold_structure import gold_chart_items, gold_predicates
from strata_core.corpus.treebanks.structure_reading import SentenceArrays, StructureReader
from strata_core.evaluation.confusion import confusion_matrix, largest_confusions
from strata_core.evaluation.structure_scores import PredictedStructure, StructureCounts, count_structure
from strata_core.evaluation.word_labels import gold_word_labels
from strata_core.models.structure_heads import NONE_ROLE
from strata_core.tasks.sentence_structure.sentence_tensors import role_cells
from strata_core.training.task import EvaluationContext

Predict = Callable[[StructureReader, np.ndarray], tuple[PredictedStructure, list[SentenceArrays]]]
"""What the model says of the sentences of these numbers, and the sentences."""

_MOST_CONFUSIONS = 20


def count_split(
    predict: Predict,
    reader: StructureReader,
    batches: Sequence[np.ndarray],
    chart_scheme: str,
    context: EvaluationContext,
    observe: Callable[[PredictedStructure, list[SentenceArrays]], None] = lambda predicted, gold: None,
) -> StructureCounts:
    """Counts over all batches, the same for any number of ranks.

    Args:
        predict: the model.
        reader: the split.
        batches: numbers of sentences.
        chart_scheme: a name of CHART_SCHEMES.
        context: where and with whom.
        observe: shown each batch that this rank predicts.

    Raises:
        EvaluationStopped: a stop was requested meanwhile.
    """
    counts = context.zeros(len(batches), len(StructureCounts().to_list()))
    for index in context.my_share(len(batches)):
        predicted, gold = predict(reader, batches[index])
        forms = [reader.forms(number) for number in batches[index].tolist()]
        found = count_structure(predicted, gold, reader.labels, chart_scheme, forms)
        counts[index] = torch.tensor(found.to_list()).to(counts)
        observe(predicted, gold)
    total = context.ranks.sum(counts).sum(dim=0)
    return StructureCounts.from_list([round(count) for count in total.tolist()])


@dataclass
class Confusions:
    """Gold and predicted classes of words, collected batch by batch by kind of label."""

    reader: StructureReader
    chart_scheme: str
    _pairs: dict[str, list[tuple[np.ndarray, np.ndarray]]] = field(default_factory=dict)

    def add(self, predicted: PredictedStructure, gold: list[SentenceArrays]) -> None:
        """Takes a batch; roles are those to gold predicates."""
        for row, sentence in enumerate(gold):
            if predicted.trees:
                self._add("relation", sentence.relations, predicted.trees[row].relations)
            if predicted.node_types:
                self._add("upos", sentence.upos, predicted.node_types[row])
            for kind in predicted.word_labels.keys() - {"lemma_rule"}:
                labels = gold_word_labels(sentence.word_labels, kind, len(sentence.heads))
                self._add(kind, labels, predicted.word_labels[kind][row])
            if predicted.chart_items:
                items = gold_chart_items(sentence, self.chart_scheme)
                self._add("chart", items, predicted.chart_items[row])
            if predicted.roles and sentence.has_roles:
                self._add("role", role_cells(sentence).ravel(), predicted.roles[row].ravel())

    def _add(self, kind: str, gold: np.ndarray, predicted: np.ndarray) -> None:
        self._pairs.setdefault(kind, []).append((np.asarray(gold), predicted))

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """The most frequent mistakes of each kind, the most frequent first."""
        labels = self.reader.labels
        names = {
            "relation": labels.names("relation"),
            "upos": labels.names("upos"),
            "xpos": labels.names("xpos"),
            "feats": labels.names("feats"),
            "role": ("NONE", *labels.names("role")),
            "chart": tuple(str(item) for item in range(CHART_SCHEMES[self.chart_scheme][0])),
        }
        assert NONE_ROLE == 0
        tables = {}
        for kind, pairs in self._pairs.items():
            gold, predicted = (np.concatenate(side) for side in zip(*pairs, strict=True))
            gold, predicted, met = _renumbered(gold, predicted, names[kind])
            matrix = confusion_matrix(gold, predicted, n_classes=len(met))
            found = largest_confusions(matrix, met, most=_MOST_CONFUSIONS)
            tables[kind] = [confusion._asdict() for confusion in found]
        return tables


def _renumbered(
    gold: np.ndarray, predicted: np.ndarray, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Classes numbered among those that occur, and their names: a treebank can have thousands of features."""
    met = np.union1d(gold[gold >= 0], predicted)
    again = np.where(gold >= 0, np.searchsorted(met, gold), -1)
    return again, np.searchsorted(met, predicted), tuple(names[number] for number in met.tolist())


def majority_baselines(
    train: StructureReader, reader: StructureReader, learned: Collection[str], chart_scheme: str
) -> dict[str, float]:
    """Accuracies on a split of always saying what is most frequent in training; heads: the word before.

    Args:
        train: where classes are counted.
        reader: the split they are scored on.
        learned: names of losses.
        chart_scheme: a name of CHART_SCHEMES.
    """
    found: dict[str, float] = {}
    if "ud_arc" in learned:
        found["uas"] = _accuracy(reader, lambda sentence: sentence.heads, lambda words: np.arange(words))
    gold: Mapping[str, tuple[str, Callable[[SentenceArrays], np.ndarray]]] = {
        "node_type": ("upos", lambda sentence: sentence.upos),
        "chart_type": ("chart", lambda sentence: gold_chart_items(sentence, chart_scheme)),
        "ud_xpos": ("xpos", lambda sentence: gold_word_labels(sentence.word_labels, "xpos", len(sentence.heads))),
        "ud_feats": ("ufeats", lambda sentence: gold_word_labels(sentence.word_labels, "feats", len(sentence.heads))),
    }
    for loss, (name, classes) in gold.items():
        if loss in learned:
            counts: Counter[int] = Counter()
            for number in range(len(train)):
                counts.update(value for value in classes(train.arrays(number)).tolist() if value >= 0)
            most = counts.most_common(1)[0][0]
            found[name] = _accuracy(reader, classes, partial(np.full, fill_value=most))
    return found


def _accuracy(
    reader: StructureReader, gold: Callable[[SentenceArrays], np.ndarray], guess: Callable[[int], np.ndarray]
) -> float:
    right = total = 0
    for number in range(len(reader)):
        classes = np.asarray(gold(reader.arrays(number)))
        known = classes >= 0
        total += int(known.sum())
        right += int((known & (classes == guess(len(classes)))).sum())
    return right / total if total else float("nan")


def predicates_of(gold: Sequence[SentenceArrays]) -> list[np.ndarray]:
    """The gold predicates of each sentence, words numbered from 1."""
    return [gold_predicates(sentence) for sentence in gold]
