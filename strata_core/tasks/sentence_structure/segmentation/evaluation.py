"""Texts of a treebank cut by a model and scored, shared out among ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from strata_core.evaluation.segmentation_scores import ScoredWord, SegmentationCounts, count_segmentation
from strata_core.tasks.sentence_structure.segmentation.character_features import code_points, white_space
from strata_core.tasks.sentence_structure.segmentation.treebank_texts import SegmentedText
from strata_core.tasks.sentence_structure.token_spans import Segmenter, TokenSpan
from strata_core.training.task import EvaluationContext

_CHARACTERS_IN_A_BATCH = 1 << 16


def count_texts(segmenter: Segmenter, texts: Sequence[SegmentedText], context: EvaluationContext) -> list[int]:
    """The counts of `SegmentationCounts` over texts, the same for any number of ranks.

    Raises:
        EvaluationStopped: a stop was requested meanwhile.
    """
    batches = _batches([len(text.text) for text in texts])
    counts = context.zeros(len(batches), len(SegmentationCounts().to_list()))
    for index in context.my_share(len(batches)):
        batch = texts[batches[index]]
        predicted = segmenter([text.text for text in batch])
        for text, sentences in zip(batch, predicted, strict=True):
            shown = np.append(0, np.cumsum(~white_space(code_points(text.text))))
            found = count_segmentation(scored_words(text.sentences, shown), scored_words(sentences, shown))
            counts[index] += torch.tensor(found.to_list()).to(counts)
    return [round(count) for count in context.ranks.sum(counts).sum(dim=0).tolist()]


def scored_words(sentences: Sequence[Sequence[TokenSpan]], shown: np.ndarray) -> list[list[ScoredWord]]:
    """The words of sentences, placed by characters that are no white space.

    Args:
        sentences: of one text.
        shown: how many such characters stand before each character and in all, int64 [characters + 1].
    """
    return [
        [
            ScoredWord(int(shown[token.start]), int(shown[token.end]), word, len(token.words) > 1)
            for token in sentence
            for word in token.words
        ]
        for sentence in sentences
    ]


def _batches(lengths: Sequence[int]) -> list[slice]:
    """Consecutive texts of some length together, in characters."""
    batches: list[slice] = []
    start = characters = 0
    for number, length in enumerate(lengths):
        characters += length
        if characters >= _CHARACTERS_IN_A_BATCH or number == len(lengths) - 1:
            batches.append(slice(start, number + 1))
            start, characters = number + 1, 0
    return batches
