"""Scores of predicted structure: trees, labels of words, predicates, roles and chart items of annotated sentences.

Shapes: B sentences, W words, D model width.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strata_core.corpus.treebanks.gold_structure import gold_chart_items, gold_predicates
from strata_core.corpus.treebanks.labels import Labels
from strata_core.corpus.treebanks.structure_reading import SentenceArrays
from strata_core.evaluation.attachment import AttachmentCounts, count_attachments
from strata_core.evaluation.roles import MatchCounts, RoleTriple, count_matches, triples_of_cells
from strata_core.evaluation.structure_decoding import (
    DecodedTree,
    decode_classes,
    decode_predicates,
    decode_roles,
    decode_trees,
)
from strata_core.evaluation.word_labels import LOSS_OF_KIND, METRIC_OF_KIND, gold_word_labels, right_lemmas
from strata_core.models.structure_heads import NONE_ROLE, StructureHeads


@dataclass(frozen=True)
class PredictedStructure:
    """What the heads say of a batch, a list entry a sentence; empty lists for what they were not asked for.

    Attributes:
        trees: heads and relations.
        node_types, chart_items: int64 [W].
        predicates: int64, words numbered from 1.
        roles: int64 [predicates, W], to the gold predicates.
        roles_of_predicted: to the predicted ones.
        word_labels: by kind (labels.WORD_LABEL_KINDS), int64 [W].
    """

    trees: Sequence[DecodedTree] = ()
    node_types: Sequence[np.ndarray] = ()
    predicates: Sequence[np.ndarray] = ()
    roles: Sequence[np.ndarray] = ()
    roles_of_predicted: Sequence[np.ndarray] = ()
    chart_items: Sequence[np.ndarray] = ()
    word_labels: Mapping[str, Sequence[np.ndarray]] = field(default_factory=dict)


@torch.no_grad()
def predict_structure(
    heads: StructureHeads,
    states_BWD: Tensor | None,
    chart_states_BWD: Tensor | None,
    real_BW: Tensor,
    *,
    learned: Collection[str],
    gold_predicates: Sequence[np.ndarray] = (),
    root_relation: int | None = None,
) -> PredictedStructure:
    """Decodes what was learned.

    Args:
        heads: the model's heads.
        states_BWD: float, of the words; None where only chart items were learned.
        chart_states_BWD: float, those that chart items are read off; None where they were not learned.
        real_BW: bool, True for the words of a sentence, which come before its padding.
        learned: names of losses ("ud_arc", ...); heads of others have nothing to say.
        gold_predicates: of each sentence, words numbered from 1; without any there are no roles to gold predicates.
        root_relation: see `decode_trees`.
    """
    found: dict[str, Any] = {}
    if chart_states_BWD is not None and "chart_type" in learned:
        found["chart_items"] = decode_classes(heads.chart_items(chart_states_BWD), real_BW)
    if states_BWD is None:
        return PredictedStructure(**found)
    if "ud_arc" in learned:
        found["trees"] = decode_trees(heads, states_BWD, real_BW, root_relation=root_relation)
    if "node_type" in learned:
        found["node_types"] = decode_classes(heads.node_types(states_BWD), real_BW)
    found["word_labels"] = {
        kind: decode_classes(head(states_BWD), real_BW)
        for kind, head in heads.word_labels.items()
        if LOSS_OF_KIND[kind] in learned
    }
    if "srl_predicate" in learned:
        found["predicates"] = decode_predicates(heads.predicates(states_BWD)[..., 0], real_BW)
    if "srl_role" in learned and gold_predicates:
        found["roles"] = decode_roles(heads, states_BWD, real_BW, gold_predicates)
    if {"srl_role", "srl_predicate"} <= set(learned):
        found["roles_of_predicted"] = decode_roles(heads, states_BWD, real_BW, found["predicates"])
    return PredictedStructure(**found)


@dataclass(frozen=True, slots=True)
class ClassCounts:
    """Words with a gold class, and how many of them are right."""

    words: int = 0
    right: int = 0

    def __add__(self, other: ClassCounts) -> ClassCounts:
        return ClassCounts(self.words + other.words, self.right + other.right)

    @property
    def accuracy(self) -> float:
        """Share that is right; NaN without words."""
        return self.right / self.words if self.words else float("nan")


@dataclass(frozen=True)
class StructureCounts:
    """What scores are made of; counts of several sentences add up with `+`."""

    attachments: AttachmentCounts = field(default_factory=AttachmentCounts)
    node_types: ClassCounts = field(default_factory=ClassCounts)
    predicates: MatchCounts = field(default_factory=MatchCounts)
    roles: MatchCounts = field(default_factory=MatchCounts)
    roles_of_predicted: MatchCounts = field(default_factory=MatchCounts)
    chart_items: ClassCounts = field(default_factory=ClassCounts)
    xpos: ClassCounts = field(default_factory=ClassCounts)
    feats: ClassCounts = field(default_factory=ClassCounts)
    lemma_rule: ClassCounts = field(default_factory=ClassCounts)
    all_tags: ClassCounts = field(default_factory=ClassCounts)

    def __add__(self, other: StructureCounts) -> StructureCounts:
        names = [part.name for part in dataclasses.fields(self)]
        return StructureCounts(**{name: getattr(self, name) + getattr(other, name) for name in names})

    def to_list(self) -> list[int]:
        """The counts in a fixed order, so that ranks can add them up."""
        return [count for part in dataclasses.astuple(self) for count in part]

    @classmethod
    def from_list(cls, counts: Sequence[int]) -> StructureCounts:
        """The inverse of `to_list`."""
        left = list(counts)
        parts: dict[str, Any] = {}
        for part in dataclasses.fields(cls):
            kind = part.default_factory
            assert isinstance(kind, type)
            width = len(dataclasses.fields(kind))
            parts[part.name], left = kind(*left[:width]), left[width:]
        return cls(**parts)

    def metrics(self, learned: Collection[str]) -> dict[str, float]:
        """Scores in [0, 1] of what was learned, and "structure", the mean of the main ones."""
        found: dict[str, float] = {}
        if "ud_arc" in learned:
            found["uas"] = self.attachments.uas
        if {"ud_arc", "ud_relation"} <= set(learned):
            found["las"] = self.attachments.las
            found["las_full_relations"] = self.attachments.las_full_relations
        if "node_type" in learned:
            found["upos"] = self.node_types.accuracy
        for kind, loss in LOSS_OF_KIND.items():
            if loss in learned:
                found[METRIC_OF_KIND[kind]] = getattr(self, kind).accuracy
        if {"node_type", "ud_feats"} <= set(learned):
            found["alltags"] = self.all_tags.accuracy
        if "srl_predicate" in learned:
            found["predicate_f1"] = self.predicates.f1
        if "srl_role" in learned:
            found["role_f1"] = self.roles.f1
        if {"srl_predicate", "srl_role"} <= set(learned):
            found["role_f1_predicted"] = self.roles_of_predicted.f1
        if "chart_type" in learned:
            found["chart"] = self.chart_items.accuracy
        main = [found[name] for name in ("las", "upos", "predicate_f1", "role_f1", "chart") if name in found]
        return found | ({"structure": sum(main) / len(main)} if main else {})


def count_structure(
    predicted: PredictedStructure,
    gold: Sequence[SentenceArrays],
    labels: Labels,
    chart_scheme: str,
    forms: Sequence[Sequence[str]] = (),
) -> StructureCounts:
    """Counts a batch against its annotation.

    Args:
        predicted: of these sentences.
        gold: as they are on disk.
        labels: of the corpus.
        chart_scheme: a name of CHART_SCHEMES.
        forms: the words of each sentence, which lemmas are made of; needed where lemma rules are predicted.
    """
    total = StructureCounts()
    for row, sentence in enumerate(gold):
        total += StructureCounts(
            attachments=_attachments(predicted.trees[row], sentence, labels) if predicted.trees else AttachmentCounts(),
            node_types=_classes(predicted.node_types, row, sentence.upos),
            chart_items=_classes(predicted.chart_items, row, gold_chart_items(sentence, chart_scheme)),
        )
        if predicted.word_labels:
            total += _word_label_counts(predicted, row, sentence, labels, forms)
        if sentence.has_roles:
            total += _role_counts(predicted, row, sentence)
    return total


def _attachments(tree: DecodedTree, sentence: SentenceArrays, labels: Labels) -> AttachmentCounts:
    gold_heads = [None if head < 0 else head for head in sentence.heads.tolist()]
    gold_relations = [labels.name("relation", number) for number in sentence.relations.tolist()]
    relations = [labels.name("relation", number) or "" for number in tree.relations.tolist()]
    return count_attachments(gold_heads, gold_relations, tree.heads.tolist(), relations)


def _classes(predicted: Sequence[np.ndarray], row: int, gold: np.ndarray) -> ClassCounts:
    if not predicted:
        return ClassCounts()
    known = gold >= 0
    return ClassCounts(int(known.sum()), int((known & (predicted[row] == gold)).sum()))


def _word_label_counts(
    predicted: PredictedStructure,
    row: int,
    sentence: SentenceArrays,
    labels: Labels,
    forms: Sequence[Sequence[str]],
) -> StructureCounts:
    found: dict[str, Any] = {}
    tags = [(sentence.upos, predicted.node_types[row])] if predicted.node_types else []
    for kind, of_sentences in predicted.word_labels.items():
        gold, guess = gold_word_labels(sentence.word_labels, kind, len(sentence.heads)), of_sentences[row]
        if kind == "lemma_rule":
            right = right_lemmas(gold, guess, forms[row], labels)
            found[kind] = ClassCounts(int((gold >= 0).sum()), int(right.sum()))
        else:
            found[kind] = _classes(of_sentences, row, gold)
            tags.append((gold, guess))
    known = np.logical_and.reduce([gold >= 0 for gold, _ in tags] or [np.zeros(0, dtype=bool)])
    right = np.logical_and.reduce([gold == guess for gold, guess in tags] or [known])
    return StructureCounts(**found, all_tags=ClassCounts(int(known.sum()), int((known & right).sum())))


def _role_counts(predicted: PredictedStructure, row: int, sentence: SentenceArrays) -> StructureCounts:
    words = gold_predicates(sentence)
    triples = {RoleTriple(predicate, role + 1, head) for predicate, head, role in sentence.arguments.tolist()}
    found: dict[str, Any] = {}
    if predicted.predicates:
        found["predicates"] = count_matches(words.tolist(), predicted.predicates[row].tolist())
    if predicted.roles:
        cells = triples_of_cells(words, predicted.roles[row], none_role=NONE_ROLE)
        found["roles"] = count_matches(triples, cells)
    if predicted.roles_of_predicted:
        cells = triples_of_cells(predicted.predicates[row], predicted.roles_of_predicted[row], none_role=NONE_ROLE)
        found["roles_of_predicted"] = count_matches(triples, cells)
    return StructureCounts(**found)
