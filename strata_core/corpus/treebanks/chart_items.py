"""Parsing as tagging: what a chart or shift-reduce parser does at each word, as a class of the word.

Two schemes, both functions of the heads of a whole tree (numbers of words from 1, 0 for the root).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from strata_core.corpus.treebanks.dependency_tree import crossing_words, subtree_ends

MOST_REDUCTIONS = 4


def eisner_items(heads: Sequence[int]) -> list[int]:
    """What half-constituents meet at each word in Eisner's chart (Eisner 1996), as one of twelve classes a word.

    A class is 4 d + 2 l + r: d is 0 where the head stands to the left, 1 to the right, 2 for the root's dependent; l
    and r say whether the word has dependents to its left and to its right.
    """
    has_left = [0] * (len(heads) + 1)
    has_right = [0] * (len(heads) + 1)
    for word, head in enumerate(heads, 1):
        (has_left if word < head else has_right)[head] = 1
    return [
        4 * (2 if head == 0 else int(head > word)) + 2 * has_left[word] + has_right[word]
        for word, head in enumerate(heads, 1)
    ]


def reduce_counts(heads: Sequence[int]) -> list[int]:
    """How many arc-standard reductions (Nivre 2004) follow the shift of each word, MOST_REDUCTIONS standing for more.

    The parser reduces as soon as it can: a word is attached once its head and all that is below it have been shifted.
    The attachment to the root counts. A non-projective tree is made projective first.
    """
    projective = projectivised(heads)
    _, last_below = subtree_ends(projective)
    counts = [0] * (len(heads) + 1)
    for word, head in enumerate(projective, 1):
        counts[max(head, last_below[word])] += 1
    return [min(count, MOST_REDUCTIONS) for count in counts[1:]]


def projectivised(heads: Sequence[int]) -> list[int]:
    """The nearest projective tree: the shortest crossing arc is lifted to the head's head until none crosses.

    Nivre and Nilsson 2005, "Pseudo-projective dependency parsing"; of arcs of equal length the leftmost word's goes
    first.
    """
    lifted = list(heads)
    while crossing := crossing_words(lifted):
        word = min(crossing, key=lambda candidate: abs(candidate - lifted[candidate - 1]))
        lifted[word - 1] = lifted[lifted[word - 1] - 1]
    return lifted


CHART_SCHEMES: dict[str, tuple[int, Callable[[Sequence[int]], list[int]]]] = {
    "eisner": (12, eisner_items),
    "reduce-count": (MOST_REDUCTIONS + 1, reduce_counts),
}
"""By name: the number of classes, and the function that gives each word's."""
