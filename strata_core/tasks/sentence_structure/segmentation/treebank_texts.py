"""The raw texts of a treebank, spelled again from its sentences, with the tokens and sentences that are in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from strata_core.corpus.treebanks.sentence import Sentence, surface_tokens
from strata_core.corpus.treebanks.structure_reading import StructureReader
from strata_core.tasks.sentence_structure.token_spans import TokenSpan

PARAGRAPH_BREAK = "\n\n"

ENDS_TOKEN, ENDS_SENTENCE, ENDS_MULTIWORD, ENDS_SENTENCE_MULTIWORD = 1, 2, 3, 4
"""The marks of characters beside 0, as `models.segmenter` numbers them."""


class SegmentedText(NamedTuple):
    """A text and its sentences as lists of tokens."""

    text: str
    sentences: list[list[TokenSpan]]


def treebank_texts(sentences: Iterable[Sentence]) -> Iterator[SegmentedText]:
    """One text a document; a blank line stands between paragraphs, and a space where no SpaceAfter=No forbids it."""
    text = _Spelling()
    for sentence in sentences:
        if sentence.starts_document and text.sentences:
            yield text.finish()
            text = _Spelling()
        text.add(sentence)
    if text.sentences:
        yield text.finish()


def split_texts(reader: StructureReader) -> Iterator[SegmentedText]:
    """The texts of a split's sentences that have words."""
    sentences = (reader.sentence(number) for number in range(len(reader)))
    return treebank_texts(sentence for sentence in sentences if sentence.forms)


def marks_of(text: SegmentedText) -> np.ndarray:
    """What ends with each character, uint8 [characters]; see ENDS_TOKEN."""
    marks = np.zeros(len(text.text), dtype=np.uint8)
    for sentence in text.sentences:
        for token in sentence:
            marks[token.end - 1] = ENDS_MULTIWORD if len(token.words) > 1 else ENDS_TOKEN
        marks[sentence[-1].end - 1] += ENDS_SENTENCE - ENDS_TOKEN
    return marks


class _Spelling:
    """A text as it grows."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._space = ""
        self.sentences: list[list[TokenSpan]] = []

    def add(self, sentence: Sentence) -> None:
        if sentence.starts_paragraph and self.sentences:
            self._space = PARAGRAPH_BREAK
        tokens = []
        for token in surface_tokens(sentence):
            start = self._length + len(self._space)
            self._pieces += [self._space, token.form]
            self._length = start + len(token.form)
            self._space = " " if token.space_after else ""
            tokens.append(TokenSpan(start, self._length, sentence.forms[token.first - 1 : token.last]))
        self.sentences.append(tokens)

    def finish(self) -> SegmentedText:
        return SegmentedText("".join(self._pieces), self.sentences)
