"""Which subword tokens each word of a text takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def word_token_spans(
    word_spans: Sequence[tuple[int, int]], token_spans: Sequence[tuple[int, int]], text: str
) -> np.ndarray:
    """The tokens that have at least one character of each word.

    Spaces around a word belong to no word, so a token " word" is the word's alone. Words of a multiword token that
    cannot be told apart in the text share its tokens, and so do words that one token runs across.

    Args:
        word_spans: (start, end) characters of each word, ascending by start and end (sentence.detokenise).
        token_spans: (start, end) characters of each token, ascending, as `tokenizers` gives offsets; several tokens
            that spell one character all have its span.
        text: what both index.

    Returns:
        int32 [words, 2]: first token and the one after the last. Equal where no token shows the word.
    """
    trimmed = [_without_spaces(start, end, text) for start, end in token_spans]
    shown = [token for token, (start, end) in enumerate(trimmed) if start < end]
    starts = np.array([trimmed[token][0] for token in shown], dtype=np.int64)
    ends = np.array([trimmed[token][1] for token in shown], dtype=np.int64)
    index = np.array([*shown, len(token_spans)], dtype=np.int32)
    words = np.array(word_spans, dtype=np.int64).reshape(-1, 2)
    first = np.searchsorted(ends, words[:, 0], side="right")
    after = np.searchsorted(starts, words[:, 1], side="left")
    spans = np.stack([index[first], index[np.maximum(after - 1, 0)] + 1], axis=1).astype(np.int32)
    spans[after <= first] = index[first[after <= first], None]
    return spans


def _without_spaces(start: int, end: int, text: str) -> tuple[int, int]:
    while start < end and text[start] == " ":
        start += 1
    while start < end and text[end - 1] == " ":
        end -= 1
    return start, end
