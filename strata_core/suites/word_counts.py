"""How often the words of a corpus occur in it, so that a suite can be kept to words that a model has met."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from strata_core.corpus.reading import open_corpus
from strata_core.corpus.text.tokenizer import read_tokenizer
from strata_core.errors import UsageError

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def words_of(text: str) -> list[str]:
    """Runs of letters and digits, apostrophes inside included, in lower case."""
    return _WORD.findall(text.lower())


def count_words(corpus: Path, split: str = "train") -> Counter[str]:
    """The words of a split of a corpus of text.

    Raises:
        UsageError: there is no such corpus, or it has no such split.
        DataError: it cannot be read.
    """
    opened = open_corpus(corpus)
    if split not in opened.info.splits or opened.tokenizer_path is None:
        raise UsageError(f"--count-corpus {corpus} has no text in a split {split!r}")
    tokenizer = read_tokenizer(opened.tokenizer_path).tokenizer
    counts: Counter[str] = Counter()
    tokens_of = opened.split(split)
    for index in range(opened.info.splits[split].documents):
        counts.update(words_of(tokenizer.decode(tokens_of.document(index).tolist())))
    return counts
