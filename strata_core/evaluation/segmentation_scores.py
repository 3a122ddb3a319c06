"""How well a text was cut: tokens, sentences and words as the CoNLL 2018 shared task counts them.

Zeman et al. 2018, "CoNLL 2018 Shared Task: Multilingual Parsing from Raw Text to Universal Dependencies", section 5:
tokens and sentences are right where both their ends are; words too, but for those of multiword tokens, which are
aligned by their forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import NamedTuple, Self


class ScoredWord(NamedTuple):
    """A word, the characters (start, end) of its token, and whether this is a multiword token."""

    start: int
    end: int
    form: str
    multiword: bool


@dataclass(frozen=True)
class SegmentationCounts:
    """Units that are right, that there are, and that were predicted."""

    right_tokens: int = 0
    gold_tokens: int = 0
    predicted_tokens: int = 0
    right_sentences: int = 0
    gold_sentences: int = 0
    predicted_sentences: int = 0
    right_words: int = 0
    gold_words: int = 0
    predicted_words: int = 0

    def to_list(self) -> list[int]:
        """The counts in the order of the fields."""
        return list(astuple(self))

    @classmethod
    def from_list(cls, counts: Sequence[int]) -> Self:
        """The inverse of `to_list`."""
        return cls(*counts)

    def metrics(self) -> dict[str, float]:
        """tokens_f1, sentences_f1 and words_f1: harmonic means of precision and recall, in [0, 1]; nan of nothing."""
        return {
            f"{unit}_f1": _f1(
                getattr(self, f"right_{unit}"), getattr(self, f"gold_{unit}"), getattr(self, f"predicted_{unit}")
            )
            for unit in ("tokens", "sentences", "words")
        }


def count_segmentation(
    gold: Sequence[Sequence[ScoredWord]], predicted: Sequence[Sequence[ScoredWord]]
) -> SegmentationCounts:
    """Compares two ways to cut one text; sentences are lists of words, in order."""
    sides = gold, predicted
    tokens = [{word[:2] for sentence in side for word in sentence} for side in sides]
    sentences = [{(sentence[0].start, sentence[-1].end) for sentence in side} for side in sides]
    words = [[word for sentence in side for word in sentence] for side in sides]
    return SegmentationCounts(
        len(tokens[0] & tokens[1]),
        len(tokens[0]),
        len(tokens[1]),
        len(sentences[0] & sentences[1]),
        len(sentences[0]),
        len(sentences[1]),
        len(aligned_words(words[0], words[1])),
        len(words[0]),
        len(words[1]),
    )


def aligned_words(gold: Sequence[ScoredWord], predicted: Sequence[ScoredWord]) -> list[tuple[int, int]]:
    """The words that are the same in both, as pairs of numbers from 0.

    A stretch of multiword tokens that overlap, of either side, is aligned by the longest common subsequence of the
    lower-case forms in it.
    """
    pairs: list[tuple[int, int]] = []
    one = other = 0
    while one < len(gold) and other < len(predicted):
        left, right = gold[one], predicted[other]
        if left.multiword or right.multiword:
            if left.end <= right.start or (not left.multiword and left.start < right.start):
                one += 1
                continue
            if right.end <= left.start or (not right.multiword and right.start < left.start):
                other += 1
                continue
            one_end, other_end = _stretch(gold, predicted, one, other)
            pairs += [
                (one + i, other + j)
                for i, j in _common_subsequence(
                    [word.form.lower() for word in gold[one:one_end]],
                    [word.form.lower() for word in predicted[other:other_end]],
                )
            ]
            one, other = one_end, other_end
        elif left[:2] == right[:2]:
            pairs.append((one, other))
            one, other = one + 1, other + 1
        elif left.start <= right.start:
            one += 1
        else:
            other += 1
    return pairs


def _stretch(gold: Sequence[ScoredWord], predicted: Sequence[ScoredWord], one: int, other: int) -> tuple[int, int]:
    """The words after a stretch of overlapping multiword tokens that begins with the given ones."""
    end = max(word.end for word in (gold[one], predicted[other]) if word.multiword)
    while True:
        left = gold[one] if one < len(gold) and gold[one].start < end else None
        right = predicted[other] if other < len(predicted) and predicted[other].start < end else None
        if left is None and right is None:
            return one, other
        if right is None or (left is not None and left.start <= right.start):
            word, one = gold[one], one + 1
        else:
            word, other = predicted[other], other + 1
        if word.multiword:
            end = max(end, word.end)


def _common_subsequence(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    """The places of a longest common subsequence in both."""
    longest = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i in reversed(range(len(one))):
        for j in reversed(range(len(other))):
            same = one[i] == other[j]
            longest[i][j] = 1 + longest[i + 1][j + 1] if same else max(longest[i + 1][j], longest[i][j + 1])
    pairs = []
    i = j = 0
    while i < len(one) and j < len(other):
        if one[i] == other[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def _f1(right: int, gold: int, predicted: int) -> float:
    return 2 * right / (gold + predicted) if gold + predicted else float("nan")
