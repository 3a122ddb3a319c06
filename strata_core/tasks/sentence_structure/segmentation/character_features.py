"""What the segmenter sees of each character: itself, its neighbours, the chunk between white space around it.

All features are hashed into one range of buckets (Weinberger et al. 2009, "Feature Hashing"). Hashes of pieces of any
length come from one running sum of a polynomial over the text, so that the cost does not depend on the pieces.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

import numpy as np

from strata_core.training.keyed_draws import mix

N_FEATURES = 11
"""Features of a character, see `character_features`."""

_BASE = np.uint64(0x9E3779B97F4A7C15)
_INVERSE = np.uint64(pow(0x9E3779B97F4A7C15, -1, 2**64))
_SALT = np.uint64(0xD6E8FEB86659FD93)


def code_points(text: str) -> np.ndarray:
    """uint32 [characters]; a lone surrogate has its own number."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def white_space(points: np.ndarray) -> np.ndarray:
    """bool [characters]: what str.isspace says of each."""
    return _properties(points)[1]


def lower_case(points: np.ndarray) -> np.ndarray:
    """Each character in lower case, its first where that takes several; uint32 [characters]."""
    return _properties(points)[0].astype(np.uint32)


def character_features(points: np.ndarray, n_buckets: int) -> np.ndarray:
    """The buckets of each character's features, int32 [characters, N_FEATURES].

    The features: the character; its general category and script, beside those of its neighbours; the character with
    the next one, and with both neighbours, ignoring case; the chunk it stands in; what of the chunk ends with it; what
    of the chunk follows it; the chunk with the next and with the previous one; the next and the previous chunk.
    White space has the chunk before it. A character of a script without spaces, as of Chinese, is a chunk by itself.

    Args:
        points: see `code_points`.
        n_buckets: how many buckets there are.
    """
    n_characters = len(points)
    if n_characters == 0:
        return np.zeros((0, N_FEATURES), dtype=np.int32)
    lower, space, kind, alone = _properties(points)
    letters = mix(lower.astype(np.uint64) + np.uint64(1))
    hashes = _PieceHashes(letters)
    starts, ends = _chunks(space, alone)
    chunk = np.maximum(np.searchsorted(starts, np.arange(n_characters), side="right") - 1, 0)
    whole = np.concatenate((hashes(starts, ends), np.zeros(1, dtype=np.uint64)))
    following = np.append(whole[1:], np.uint64(0))
    preceding = np.append(np.uint64(0), whole[:-1])
    position = np.arange(n_characters)
    chunk_starts = np.append(starts, n_characters)[chunk]
    chunk_ends = np.append(ends, n_characters)[chunk]
    after = np.minimum(position + 1, chunk_ends)
    until = hashes(np.minimum(chunk_starts, after), after)
    rest = hashes(after, chunk_ends)
    kinds = kind.astype(np.uint64)
    before_letter, next_letter = np.append(np.uint64(0), letters[:-1]), np.append(letters[1:], np.uint64(0))
    columns = (
        points.astype(np.uint64),
        (np.append(np.uint64(0), kinds[:-1]) << np.uint64(16))
        ^ (kinds << np.uint64(8))
        ^ np.append(kinds[1:], np.uint64(0)),
        letters * _BASE + next_letter,
        (before_letter * _BASE + letters) * _BASE + next_letter,
        whole[chunk],
        until,
        rest,
        whole[chunk] * _SALT + following[chunk],
        preceding[chunk] * _SALT + whole[chunk],
        following[chunk],
        preceding[chunk],
    )
    salts = np.arange(1, N_FEATURES + 1, dtype=np.uint64) * _SALT
    result = np.empty((n_characters, N_FEATURES), dtype=np.int32)
    for number, values in enumerate(columns):
        result[:, number] = mix(values ^ salts[number]) % np.uint64(n_buckets)
    return result


class _PieceHashes:
    """Hashes of any pieces of a sequence, uint64, the same for equal pieces wherever they stand."""

    def __init__(self, letters: np.ndarray) -> None:
        powers = np.full(len(letters) + 1, _BASE)
        powers[0] = 1
        inverses = np.full(len(letters) + 1, _INVERSE)
        inverses[0] = 1
        self._inverses = np.cumprod(inverses)
        self._sums = np.append(np.uint64(0), np.cumsum(letters * np.cumprod(powers)[:-1]))

    def __call__(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        return (self._sums[ends] - self._sums[starts]) * self._inverses[starts]


def _chunks(space: np.ndarray, alone: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the runs without white space start and end, int64 [chunks] each; some characters are a run of their own."""
    apart = np.concatenate(([True], space[1:] | space[:-1] | alone[1:] | alone[:-1], [True]))
    return np.flatnonzero(apart[:-1] & ~space), np.flatnonzero(apart[1:] & ~space) + 1


def _properties(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of each character: the code point in lower case, whether it is white space, a number of category and script, and
    whether it is of a script that has no spaces between words."""
    found, places = np.unique(points, return_inverse=True)
    rows = np.array([_properties_of(point) for point in found.tolist()], dtype=np.int64).reshape(-1, 4)
    return rows[places, 0], rows[places, 1].astype(bool), rows[places, 2], rows[places, 3].astype(bool)


@lru_cache(maxsize=2**16)
def _properties_of(point: int) -> tuple[int, bool, int, bool]:
    character = chr(point)
    lower = character.lower()
    category = _CATEGORIES.index(unicodedata.category(character))
    script = unicodedata.name(character, "").split(" ", 1)[0] if category < _N_LETTERS else ""
    alone = any(first <= point <= last for first, last in _SCRIPTS_WITHOUT_SPACES) and not character.isspace()
    return ord(lower[0]), character.isspace(), category + 32 * (sum(script.encode()) % 7), alone


_SCRIPTS_WITHOUT_SPACES = (
    (0x0E01, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x2E80, 0x2FFF),
    (0x3040, 0x312F),
    (0x31A0, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
"""Thai and Lao, Myanmar, Khmer, and Han with kana and Bopomofo, as first and last code points."""


_CATEGORIES = (
    "Lu",
    "Ll",
    "Lt",
    "Lm",
    "Lo",
    "Mn",
    "Mc",
    "Me",
    "Nd",
    "Nl",
    "No",
    "Pc",
    "Pd",
    "Ps",
    "Pe",
    "Pi",
    "Pf",
    "Po",
    "Sm",
    "Sc",
    "Sk",
    "So",
    "Zs",
    "Zl",
    "Zp",
    "Cc",
    "Cf",
    "Cs",
    "Co",
    "Cn",
)
_N_LETTERS = 5
