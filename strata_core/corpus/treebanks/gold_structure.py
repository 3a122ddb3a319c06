"""What the annotation of a sentence says, where it is not read off the arrays as they are.

Shapes: W words, P predicates.
"""

from __future__ import annotations

import numpy as np

from strata_core.corpus.treebanks.chart_items import CHART_SCHEMES
from strata_core.corpus.treebanks.labels import NO_LABEL
from strata_core.corpus.treebanks.structure_reading import SentenceArrays


def has_whole_tree(sentence: SentenceArrays) -> bool:
    """Whether every word has a head."""
    return bool((sentence.heads >= 0).all())


def gold_predicates(sentence: SentenceArrays) -> np.ndarray:
    """The words that are predicates, numbered from 1, int64 [P]."""
    return np.flatnonzero(sentence.rolesets >= 0) + 1


def gold_chart_items(sentence: SentenceArrays, chart_scheme: str) -> np.ndarray:
    """int64 [W]; NO_LABEL in a sentence without a whole tree.

    Args:
        sentence: as it is on disk.
        chart_scheme: a name of CHART_SCHEMES.
    """
    if not has_whole_tree(sentence):
        return np.full(len(sentence.heads), NO_LABEL, dtype=np.int64)
    return np.array(CHART_SCHEMES[chart_scheme][1](sentence.heads.tolist()), dtype=np.int64)
