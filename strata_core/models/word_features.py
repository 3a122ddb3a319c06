"""What can be read off a word's form without a vocabulary: hashed numbers of the word, its ends and its shape."""

from __future__ import annotations

import itertools
import zlib

AFFIX_LENGTH = 3
N_FEATURES = 4


def word_features(form: str, n_buckets: int) -> tuple[int, ...]:
    """The buckets of a word's four features, integers in [0, n_buckets): word, prefix, suffix and shape.

    Word, prefix and suffix ignore case; the shape keeps it. The features share the buckets (Weinberger et al. 2009,
    "Feature Hashing"), each under its own name, so that "the" as a word and as a prefix are two.
    """
    lower = form.lower()
    features = (f"word {lower}", f"prefix {lower[:AFFIX_LENGTH]}", f"suffix {lower[-AFFIX_LENGTH:]}", shape_of(form))
    return tuple(zlib.crc32(feature.encode()) % n_buckets for feature in features)


def shape_of(form: str) -> str:
    """The form with capitals as X, other letters as x, digits as d; runs longer than two are cut to two.

    "McDonald-1990" is "XxXxx-dd".
    """
    runs = itertools.groupby(map(_kind_of, form))
    return "".join("".join(itertools.islice(run, 2)) for _, run in runs)


def _kind_of(character: str) -> str:
    if character.isalpha():
        return "X" if character.isupper() else "x"
    return "d" if character.isdigit() else character
