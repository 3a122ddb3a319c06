"""Sentences longer than a model takes, cut into windows of words, and the windows' annotation as that of the sentence.

Windows follow one another; each but the last is as long as the model takes, and is annotated as a sentence of its own.
The root of the first is the sentence's, and the roots of the others hang below it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from strata_core.corpus.treebanks.sentence import Argument, Predicate, Sentence
from strata_core.corpus.treebanks.structure_reading import SentenceArrays

JOINING_RELATION = "parataxis"
"""The relation of a window's root to that of the first window: that between parts which stand side by side without a
mark of coordination or subordination (https://universaldependencies.org/u/dep/parataxis.html)."""

UNSPECIFIED_RELATION = "dep"
"""What stands in its place where a model does not know it (https://universaldependencies.org/u/dep/dep.html)."""


@dataclass(frozen=True, slots=True)
class Limit:
    """How much of a sentence a model takes: `longest` tokens, or words."""

    longest: int
    in_tokens: bool

    @property
    def unit(self) -> str:
        return "tokens" if self.in_tokens else "words"

    def holds(self, arrays: SentenceArrays) -> bool:
        """Whether the sentence needs no cutting."""
        return len(arrays.tokens if self.in_tokens else arrays.heads) <= self.longest


def cut(sentence: Sentence, arrays: SentenceArrays, limit: Limit) -> list[tuple[Sentence, SentenceArrays]]:
    """The windows of a sentence, without annotation; of one that the limit holds, itself."""
    if limit.holds(arrays):
        return [(sentence, arrays)]
    bounds = pairwise([*_window_starts(arrays, limit), len(sentence.forms)])
    return [
        (_window_sentence(sentence, first, after), _window_arrays(arrays, first, after, limit))
        for first, after in bounds
    ]


def joining_relation(relations: Collection[str]) -> str:
    """What joins the windows of a model that knows these relations."""
    return JOINING_RELATION if JOINING_RELATION in relations else UNSPECIFIED_RELATION


def joined(sentence: Sentence, windows: Sequence[Sentence], relation: str) -> Sentence:
    """The sentence with the annotation of its windows, whose trees become one.

    Args:
        sentence: all words.
        windows: annotated, in order, each a tree with a single root or without heads.
        relation: see `joining_relation`.
    """
    heads: list[int | None] = []
    relations: list[str | None] = []
    predicates: list[Predicate] = []
    top = next((word for word, head in enumerate(windows[0].heads, 1) if head == 0), None)
    for window in windows:
        before = len(heads)
        for head, name in zip(window.heads, window.relations, strict=True):
            joins = head == 0 and before > 0
            heads.append(top if joins else head and head + before)
            relations.append(relation if joins and name is not None else name)
        predicates.extend(_moved(predicate, before) for predicate in window.predicates or ())
    return replace(
        sentence,
        upos=tuple(upos for window in windows for upos in window.upos),
        heads=tuple(heads),
        relations=tuple(relations),
        predicates=None if windows[0].predicates is None else tuple(predicates),
        lemmas=_in_a_row([window.lemmas for window in windows]),
        xpos=_in_a_row([window.xpos for window in windows]),
        feats=_in_a_row([window.feats for window in windows]),
    )


def _in_a_row(parts: Sequence[tuple[str | None, ...] | None]) -> tuple[str | None, ...] | None:
    """What all windows say of their words; None where they say nothing."""
    return None if parts[0] is None else tuple(value for part in parts for value in part or ())


def _window_starts(arrays: SentenceArrays, limit: Limit) -> list[int]:
    """The first words of the windows, from 0; a word of more tokens than the limit has a window to itself."""
    n_words = len(arrays.heads)
    if not limit.in_tokens:
        return list(range(0, n_words, limit.longest))
    starts = [0]
    spans = arrays.token_spans.tolist()
    for word in range(1, n_words):
        if spans[word][1] - spans[starts[-1]][0] > limit.longest or word - starts[-1] >= limit.longest:
            starts.append(word)
    return starts


def _window_arrays(arrays: SentenceArrays, first: int, after: int, limit: Limit) -> SentenceArrays:
    """The numbers of the words from `first` to before `after`; of one word with too many tokens the first of these."""
    spans = arrays.token_spans[first:after]
    start = min(int(spans[0, 0]), len(arrays.tokens) - 1)
    end = max(int(spans[:, 1].max()), start + 1)
    if limit.in_tokens:
        end = min(end, start + limit.longest)
    return replace(
        arrays,
        tokens=arrays.tokens[start:end],
        token_spans=np.clip(spans - start, 0, end - start).astype(spans.dtype),
        upos=arrays.upos[first:after],
        heads=arrays.heads[first:after],
        relations=arrays.relations[first:after],
        rolesets=arrays.rolesets[first:after],
    )


def _window_sentence(sentence: Sentence, first: int, after: int) -> Sentence:
    """The words from `first` to before `after`, as a sentence without annotation."""
    nothing = (None,) * (after - first)
    return Sentence(
        forms=sentence.forms[first:after],
        upos=nothing,
        heads=nothing,
        relations=nothing,
        space_after=sentence.space_after[first:after],
    )


def _moved(predicate: Predicate, words: int) -> Predicate:
    arguments = tuple(Argument(argument.role, argument.head + words) for argument in predicate.arguments)
    return replace(predicate, word=predicate.word + words, arguments=arguments)
