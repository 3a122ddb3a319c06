"""Scores of XPOS, features and lemmas: what the heads of `StructureHeads.word_labels` say, word by word.

A lemma counts by what it is, whichever rule made it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from strata_core.corpus.treebanks.labels import NO_LABEL, Labels
from strata_core.corpus.treebanks.lemma_rules import lemma_by

LOSS_OF_KIND = {"xpos": "ud_xpos", "feats": "ud_feats", "lemma_rule": "ud_lemma"}
"""For each of labels.WORD_LABEL_KINDS the loss that teaches it."""

METRIC_OF_KIND = {"xpos": "xpos", "feats": "ufeats", "lemma_rule": "lemmas"}
"""For each of labels.WORD_LABEL_KINDS the accuracy over words."""


def gold_word_labels(word_labels: Mapping[str, np.ndarray], kind: str, n_words: int) -> np.ndarray:
    """The labels of a sentence's words, int [W]; NO_LABEL where its split has none of the kind."""
    return word_labels.get(kind, np.full(n_words, NO_LABEL))


def right_lemmas(gold: np.ndarray, predicted: np.ndarray, forms: Sequence[str], labels: Labels) -> np.ndarray:
    """Where the predicted rule makes the same lemma as the gold one, bool [W]; False where nothing is annotated.

    Args:
        gold, predicted: int [W], numbers of rules.
        forms: the words.
        labels: of the corpus.
    """
    right = gold == predicted
    for word in np.flatnonzero((gold >= 0) & ~right).tolist():
        rules = (labels.name("lemma_rule", int(numbers[word])) for numbers in (gold, predicted))
        one, other = (lemma_by(rule, forms[word]) for rule in rules)
        right[word] = one == other
    return right & (gold >= 0)
