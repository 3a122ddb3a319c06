"""Three ways from text to the same token ids: the `tokenizers` library as it is, with a memory of words, and gigatoken.

The first is the reference. The others are faster, and whoever uses them compares samples of the input with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import chain
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from strata_core.corpus.text.tokenizer import TextTokenizer

Encoded = tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]
"""Ids of all texts one after another, [tokens], and the number of tokens of each, [texts]."""


class Encoder(Protocol):
    """Turns texts into token ids; no end-of-text token is added."""

    def encode(self, texts: Sequence[str]) -> Encoded:
        """The ids of some texts."""


class ReferenceEncoder:
    """The `tokenizers` library."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._tokenizer = tokenizer.tokenizer

    def encode(self, texts: Sequence[str]) -> Encoded:
        """The ids of some texts."""
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        ids = [encoding.ids for encoding in encodings]
        lengths = np.fromiter(map(len, ids), dtype=np.int64, count=len(ids))
        return np.fromiter(chain.from_iterable(ids), dtype=np.uint32, count=int(lengths.sum())), lengths


class WordMemoryEncoder:
    """The `tokenizers` library, asked once for each word.

    A word is a run of white space and what follows it up to the next. GPT-2's pre-tokens never reach across the start
    of white space, so with a byte-level tokenizer the tokens of a text are those of its words. U+001C to U+001F are
    white space to Python, and not to the tokenizer.
    """

    _WORD = re.compile(r"[^\S\x1c-\x1f]*[\S\x1c-\x1f]+|[^\S\x1c-\x1f]+")
    _MOST_BYTES = 48 << 20
    _WORD_OVERHEAD_BYTES = 200

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._reference = ReferenceEncoder(tokenizer)
        self._memory: dict[str, bytes] = {}
        self._held_bytes = 0

    def encode(self, texts: Sequence[str]) -> Encoded:
        """The ids of some texts."""
        words_by_text = [self._WORD.findall(text) for text in texts]
        if self._held_bytes > self._MOST_BYTES:
            self._memory.clear()
            self._held_bytes = 0
        self._learn(set(chain.from_iterable(words_by_text)).difference(self._memory))
        known = self._memory.__getitem__
        tokens = [b"".join(map(known, words)) for words in words_by_text]
        lengths = np.fromiter(map(len, tokens), dtype=np.int64, count=len(tokens)) // 4
        return np.frombuffer(b"".join(tokens), dtype=np.uint32), lengths

    def _learn(self, words: set[str]) -> None:
        ordered = list(words)
        ids, lengths = self._reference.encode(ordered)
        data, end = ids.tobytes(), 0
        for word, length in zip(ordered, lengths.tolist(), strict=True):
            start, end = end, end + 4 * length
            self._memory[word] = data[start:end]
            self._held_bytes += len(word) + 4 * length + self._WORD_OVERHEAD_BYTES


class FastEncoder:
    """The gigatoken library (extra `fast`), whose special tokens are taken away so that it sees text alone."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        from gigatoken import Tokenizer

        content = json.loads(tokenizer.data)
        content["added_tokens"] = [token for token in content.get("added_tokens") or () if not token.get("special")]
        self._backend: Any = Tokenizer.from_json(json.dumps(content)).backend

    def encode(self, texts: Sequence[str]) -> Encoded:
        """The ids of some texts."""
        layout = self._backend.encode_batch(list(texts), parallel=False).layout
        offsets = np.asarray(layout.offsets.data).astype(np.int64)
        return np.asarray(layout.content.data)[offsets[0] : offsets[-1]], np.diff(offsets)
