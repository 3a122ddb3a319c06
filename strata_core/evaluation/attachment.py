"""Unlabelled and labelled attachment scores by the rules of the CoNLL 2018 shared task (Zeman et al. 2018).

All words count, punctuation too; LAS compares relations without their subtypes ("nmod:poss" is "nmod"). The words are
the gold ones, so that precision, recall and F1 are one accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AttachmentCounts:
    """Words with a gold head, and how many of them are right; counts of several sentences add up with `+`.

    Attributes:
        words: words that have a gold head.
        heads: of these, with the right head.
        relations: with the right head and the right relation but for its subtype.
        full_relations: with the right head and the very relation.
    """

    words: int = 0
    heads: int = 0
    relations: int = 0
    full_relations: int = 0

    def __add__(self, other: AttachmentCounts) -> AttachmentCounts:
        return AttachmentCounts(
            self.words + other.words,
            self.heads + other.heads,
            self.relations + other.relations,
            self.full_relations + other.full_relations,
        )

    @property
    def uas(self) -> float:
        """Unlabelled attachment score in [0, 1]; NaN without words."""
        return _share(self.heads, self.words)

    @property
    def las(self) -> float:
        """Labelled attachment score in [0, 1], subtypes left out; NaN without words."""
        return _share(self.relations, self.words)

    @property
    def las_full_relations(self) -> float:
        """Labelled attachment score in [0, 1] with subtypes; NaN without words."""
        return _share(self.full_relations, self.words)


def count_attachments(
    gold_heads: Sequence[int | None],
    gold_relations: Sequence[str | None],
    predicted_heads: Sequence[int],
    predicted_relations: Sequence[str],
) -> AttachmentCounts:
    """Counts one sentence. Words without a gold head are left out; one without a gold relation counts for UAS alone.

    Raises:
        ValueError: the four sequences differ in length.
    """
    words = heads = relations = full_relations = 0
    for gold_head, gold_relation, head, relation in zip(
        gold_heads, gold_relations, predicted_heads, predicted_relations, strict=True
    ):
        if gold_head is None:
            continue
        words += 1
        if head == gold_head:
            heads += 1
            if gold_relation is not None:
                relations += universal_relation(relation) == universal_relation(gold_relation)
                full_relations += relation == gold_relation
    return AttachmentCounts(words, heads, relations, full_relations)


def universal_relation(relation: str) -> str:
    """The relation without its subtype: "acl" for "acl:relcl"."""
    return relation.split(":", 1)[0]


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
