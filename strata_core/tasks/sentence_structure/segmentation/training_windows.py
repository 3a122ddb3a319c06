"""Windows of raw text that a segmenter learns from, each a pure function of the run's seed and its position.

Windows lie anywhere in the texts of the training split, which follow each other in a ring. Some are changed, so that
other line breaks, spacing, case and missing full stops than the treebank has are met too.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import numpy as np

from strata_core.randomness import derive_seed
from strata_core.tasks.sentence_structure.segmentation.character_features import (
    character_features,
    code_points,
    lower_case,
)
from strata_core.tasks.sentence_structure.segmentation.treebank_texts import (
    ENDS_MULTIWORD,
    ENDS_SENTENCE,
    ENDS_SENTENCE_MULTIWORD,
    ENDS_TOKEN,
    PARAGRAPH_BREAK,
    SegmentedText,
    marks_of,
)
from strata_core.training.order import SampleOrder

_SPACE, _NEW_LINE = ord(" "), ord("\n")
_BREAK = code_points(PARAGRAPH_BREAK)
_CONTEXT = 128
"""Characters before and after a window that its features may depend on."""

_LOWER_CASE, _WRAPPED, _WIDE_SPACED = 0.05, 0.1, 0.05
"""How often a window is put in lower case, has line breaks for spaces, has spaces doubled."""

_NEW_LINES, _DOUBLE_SPACES = 0.1, 0.3
"""Shares of a window's spaces that become line breaks and are doubled, where that is done."""

_LINE_ENDS, _BROKEN, _UNSTOPPED = 0.05, 0.1, 0.1
"""How often a sentence's end gets a line break, or a blank line, for the space after it; a blank line becomes one
line break; the full stop before a blank line is left out."""


class SegmentationStream:
    """The training split as one ring of characters with their marks.

    Args:
        texts: at least one.
        seed: the run's.
        length: of a window, in characters.
    """

    def __init__(self, texts: Iterable[SegmentedText], seed: int, length: int) -> None:
        points: list[np.ndarray] = []
        marks: list[np.ndarray] = []
        for text in texts:
            points += [code_points(text.text), _BREAK]
            marks += [marks_of(text), np.zeros(len(_BREAK), dtype=np.uint8)]
        self._points, self._marks = np.concatenate(points), np.concatenate(marks)
        self._seed = seed
        self._length = length
        self._order = SampleOrder(-(-len(self._points) // length), seed, "segmentation")

    def window(self, position: int, n_buckets: int) -> tuple[np.ndarray, np.ndarray]:
        """The window at a position in the run: features int32 [length, F], and marks uint8 [length]."""
        epoch = position // self._order.n_samples
        shift = derive_seed(self._seed, "segmentation shift", epoch) % self._length
        start = int(self._order.samples(position, 1)[0]) * self._length + shift
        # As many characters again as could be left out.
        places = np.arange(start - _CONTEXT, start + self._length + 2 * _CONTEXT)
        points, marks = (np.take(values, places, mode="wrap") for values in (self._points, self._marks))
        random = np.random.default_rng(derive_seed(self._seed, "segmentation window", position))
        points, marks = varied(points, marks, random)
        own = slice(_CONTEXT, _CONTEXT + self._length)
        return character_features(points[: own.stop + _CONTEXT], n_buckets)[own], marks[own]


def varied(points: np.ndarray, marks: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A text as somebody else might have typed it: code points and marks again, of another length.

    What is left out is at most one character for each blank line.
    """
    points, marks = points.copy(), marks.copy()
    if random.random() < _LOWER_CASE:
        points = lower_case(points)
    kept = np.ones(len(points), dtype=bool)
    _leave_out_full_stops(points, marks, kept, random)
    repeated = _vary_breaks(points, marks, kept, random)
    if random.random() < _WRAPPED:
        points[(points == _SPACE) & (random.random(len(points)) < _NEW_LINES)] = _NEW_LINE
    if random.random() < _WIDE_SPACED:
        repeated |= (points == _SPACE) & (random.random(len(points)) < _DOUBLE_SPACES)
    counts = kept * (1 + repeated)
    return np.repeat(points, counts), np.repeat(marks, counts)


def _vary_breaks(points: np.ndarray, marks: np.ndarray, kept: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Turns spaces after sentences into line breaks and blank lines into one line break; which to repeat, bool."""
    sentence_ends = (marks == ENDS_SENTENCE) | (marks == ENDS_SENTENCE_MULTIWORD)
    after = np.flatnonzero(sentence_ends[:-1] & (points[1:] == _SPACE)) + 1
    chosen = after[random.random(len(after)) < _LINE_ENDS]
    points[chosen] = _NEW_LINE
    repeated = np.zeros(len(points), dtype=bool)
    repeated[chosen[random.random(len(chosen)) < 0.5]] = True
    blank = np.flatnonzero((points[:-1] == _NEW_LINE) & (points[1:] == _NEW_LINE))
    kept[blank[random.random(len(blank)) < _BROKEN]] = False
    return repeated


def _leave_out_full_stops(points: np.ndarray, marks: np.ndarray, kept: np.ndarray, random: np.random.Generator) -> None:
    """Takes the last token of some paragraphs away where it is one punctuation mark right after another token."""
    blank = np.flatnonzero((points[:-1] == _NEW_LINE) & (points[1:] == _NEW_LINE))
    for place in blank[random.random(len(blank)) < _UNSTOPPED].tolist():
        stop, before = place - 1, place - 2
        if before < 0 or marks[stop] != ENDS_SENTENCE or marks[before] not in (ENDS_TOKEN, ENDS_MULTIWORD):
            continue
        if unicodedata.category(chr(points[stop])).startswith("P"):
            marks[before] += ENDS_SENTENCE - ENDS_TOKEN
            marks[stop] = 0
            kept[stop] = False
