"""A trained segmenter at work: texts of any length in, their sentences and tokens out.

Shapes: B windows, N characters, F features, C marks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from strata_core.errors import DataError
from strata_core.models.segmenter import CharacterSegmenter, SegmenterConfig
from strata_core.tasks.sentence_structure.segmentation.character_features import (
    N_FEATURES,
    character_features,
    code_points,
    white_space,
)
from strata_core.tasks.sentence_structure.segmentation.multiword_tokens import MultiwordSplitter
from strata_core.tasks.sentence_structure.segmentation.token_boundaries import (
    inside_addresses,
    inside_clusters,
    paragraph_ends,
)
from strata_core.tasks.sentence_structure.segmentation.treebank_texts import (
    ENDS_MULTIWORD,
    ENDS_SENTENCE,
    ENDS_SENTENCE_MULTIWORD,
)
from strata_core.tasks.sentence_structure.token_spans import TokenSpan
from strata_core.training.checkpoint import copy_tensors, model_tensors
from strata_core.training.trained import Trained

SEGMENTER_PREFIX = "segmenter."
"""What the names of the segmenter's parameters begin with, and no others do."""

WINDOW_CHARACTERS = 512
"""Characters that a window gives marks to."""

_WINDOWS_AT_ONCE = 32
_BLOCK_CHARACTERS = 1 << 17
_BLOCK_CONTEXT = 1024


class CharacterMarks(NamedTuple):
    """What a model says of each character, bool [characters] each.

    Attributes:
        token_ends: a token ends with it.
        sentence_ends: were it a token's end, a sentence would end too.
        multiword: were it a token's end, this would be a multiword token.
    """

    token_ends: np.ndarray
    sentence_ends: np.ndarray
    multiword: np.ndarray


class TextSegmenter:
    """Cuts texts into sentences and tokens; a `token_spans.Segmenter`.

    Args:
        model: the network, in evaluation mode.
        splitter: splits multiword tokens.
        spaces_in_words: whether a word may hold white space.
    """

    def __init__(self, model: CharacterSegmenter, splitter: MultiwordSplitter, *, spaces_in_words: bool) -> None:
        self._model = model
        self._splitter = splitter
        self._spaces_in_words = spaces_in_words

    def __call__(self, texts: Sequence[str]) -> list[list[list[TokenSpan]]]:
        """See `token_spans.Segmenter`."""
        points = [code_points(text) for text in texts]
        marks = mark_characters(self._model, points)
        return [self._cut(*item) for item in zip(texts, points, marks, strict=True)]

    def _cut(self, text: str, points: np.ndarray, marks: CharacterMarks) -> list[list[TokenSpan]]:
        bounds = token_bounds(text, points, marks, spaces_in_words=self._spaces_in_words)
        sentences: list[list[TokenSpan]] = [[]]
        for start, end, multiword, last in bounds:
            form = text[start:end]
            pieces = form.split()
            words = self._splitter(form, multiword) if len(pieces) == 1 else (" ".join(pieces),)
            sentences[-1].append(TokenSpan(start, end, words))
            if last:
                sentences.append([])
        return sentences[:-1]


def token_bounds(
    text: str, points: np.ndarray, marks: CharacterMarks, *, spaces_in_words: bool
) -> Iterator[tuple[int, int, bool, bool]]:
    """Start and end of each token, whether it is marked as a multiword token, and whether its sentence ends with it.

    Every character but white space is in one token. A grapheme cluster and an address are not cut; a blank line and
    the end of the text end a sentence.

    Args:
        text: the text.
        points: its code points.
        marks: what a model says of it.
        spaces_in_words: whether a token goes on over white space where no end is marked.
    """
    space = white_space(points)
    if space.all():
        return iter(())
    inside = inside_clusters(points)
    ends = marks.token_ends & ~space & ~inside_addresses(text)
    if not spaces_in_words:
        ends[:-1] |= ~space[:-1] & space[1:]
    sentence_ends = ends & marks.sentence_ends
    paragraphs = paragraph_ends(text, space)
    ends[paragraphs] = sentence_ends[paragraphs] = True
    at = np.flatnonzero(ends)
    if inside.any():
        allowed = np.flatnonzero(~inside)
        moved = allowed[np.searchsorted(allowed, at)]
        last_of = sentence_ends[at]
        at, first = np.unique(moved, return_index=True)
        last = np.logical_or.reduceat(last_of, first)
    else:
        last = sentence_ends[at]
    shown = np.flatnonzero(~space)
    starts = shown[np.searchsorted(shown, np.concatenate(([0], at[:-1] + 1)))]
    return zip(starts.tolist(), (at + 1).tolist(), marks.multiword[at].tolist(), last.tolist(), strict=True)


def mark_characters(model: CharacterSegmenter, points: Sequence[np.ndarray]) -> list[CharacterMarks]:
    """The marks of texts, each window of WINDOW_CHARACTERS with as much of its text around it as the model reaches.

    Args:
        model: the network, in evaluation mode.
        points: the texts' code points.
    """
    results = [np.zeros((3, len(text)), dtype=bool) for text in points]
    waiting: list[_Window] = []
    for window in _windows(points, model.config):
        waiting.append(window)
        if len(waiting) == 8 * _WINDOWS_AT_ONCE:
            _mark_windows(model, waiting, results)
            waiting = []
    _mark_windows(model, waiting, results)
    return [CharacterMarks(*result) for result in results]


class _Window(NamedTuple):
    """Features [characters with context, F], where its own characters begin and end there, and their place."""

    features: np.ndarray
    start: int
    end: int
    text: int
    place: int


def _windows(points: Sequence[np.ndarray], config: SegmenterConfig) -> Iterator[_Window]:
    for number, text in enumerate(points):
        for block in range(0, len(text), _BLOCK_CHARACTERS):
            begin = max(block - _BLOCK_CONTEXT, 0)
            end = min(block + _BLOCK_CHARACTERS, len(text))
            features = character_features(text[begin : end + _BLOCK_CONTEXT], config.buckets)
            for place in range(block, end, WINDOW_CHARACTERS):
                stop = min(place + WINDOW_CHARACTERS, end)
                first = max(place - config.reach, 0)
                read = features[first - begin : stop + config.reach - begin]
                yield _Window(read, place - first, stop - first, number, place)


def _mark_windows(model: CharacterSegmenter, windows: list[_Window], results: list[np.ndarray]) -> None:
    """Fills in the marks of some windows, those of like length together."""
    windows = sorted(windows, key=lambda window: len(window.features))
    device = model.marks.weight.device
    for first in range(0, len(windows), _WINDOWS_AT_ONCE):
        batch = windows[first : first + _WINDOWS_AT_ONCE]
        longest = len(batch[-1].features)
        features = np.zeros((len(batch), longest, N_FEATURES), dtype=np.int32)
        for row, window in enumerate(batch):
            features[row, : len(window.features)] = window.features
        lengths = torch.tensor([len(window.features) for window in batch])
        real = torch.arange(longest) < lengths[:, None]
        with torch.inference_mode():
            scores = model(torch.from_numpy(features).to(device), real.to(device))
            marks = _decide(scores.float().softmax(dim=-1)).cpu().numpy()
        for row, window in enumerate(batch):
            own = slice(window.place, window.place + window.end - window.start)
            results[window.text][:, own] = marks[:, row, window.start : window.end]


def _decide(probabilities_BNC: torch.Tensor) -> torch.Tensor:
    """bool [3, B, N]: whether a token ends, and if it does, whether a sentence does and whether it is multiword."""
    ends_BN = probabilities_BNC[..., 1:].sum(dim=-1)
    sentence_BN = probabilities_BNC[..., [ENDS_SENTENCE, ENDS_SENTENCE_MULTIWORD]].sum(dim=-1)
    multiword_BN = probabilities_BNC[..., [ENDS_MULTIWORD, ENDS_SENTENCE_MULTIWORD]].sum(dim=-1)
    return torch.stack((ends_BN > 0.5, sentence_BN > ends_BN / 2, multiword_BN > ends_BN / 2))


def load_segmenter(trained: Trained, device: torch.device) -> TextSegmenter | None:
    """The segmenter of a checkpoint; None where it has learned none.

    Raises:
        DataError: the checkpoint lacks something of it, or cannot be used.
    """
    shape = (trained.config.get("model") or {}).get("segmenter")
    if shape is None:
        return None
    source = str(trained.checkpoint.path / "config.json")
    model = CharacterSegmenter(SegmenterConfig.from_dict(shape)).to(device).eval()
    tensors = {
        name.removeprefix(SEGMENTER_PREFIX): tensor
        for name, tensor in trained.checkpoint.model.items()
        if name.startswith(SEGMENTER_PREFIX)
    }
    copy_tensors(tensors, model_tensors(model), source=str(trained.checkpoint.path))
    return segmenter_of(model, trained.config.get("segmentation"), source)


def segmenter_of(model: CharacterSegmenter, facts: object, source: str) -> TextSegmenter:
    """A network with what config.json says of the treebank that it learned from ("segmentation").

    Raises:
        DataError: that is not understood.
    """
    match facts:
        case {"multiword_tokens": known, "spaces_in_words": bool(spaces)}:
            return TextSegmenter(model, MultiwordSplitter.from_list(known, source), spaces_in_words=spaces)
    raise DataError(f"{source}: segmentation has no multiword_tokens and spaces_in_words")
