"""Where a token may end whatever a model says, and where it must: white space, grapheme clusters, addresses.

A grapheme cluster is a character with the marks, joiners and modifiers that follow it, and a flag's pair of regional
indicators (after Unicode Standard Annex 29).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import numpy as np

_ZERO_WIDTH_JOINER = 0x200D
_URL = r"(?:https?://|ftp://|www\.)[!-;=?-~]+"
_MAILBOX = r"[A-Za-z0-9._%+-]"
# Tried once for each run of characters of a mailbox, so that a long run costs its length.
_E_MAIL = rf"(?<!{_MAILBOX}){_MAILBOX}+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"
_ADDRESS = re.compile(f"{_URL}|{_E_MAIL}", re.IGNORECASE)
_BEFORE_ADDRESS = "._%+-"
_AFTER_ADDRESS = ".,;:!?'\")]}*_"
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n|\r[^\S\r\n]*\r|\u2029")


def inside_clusters(points: np.ndarray) -> np.ndarray:
    """bool [characters]: whether the next character belongs to the same grapheme cluster.

    Args:
        points: code points, uint32 [characters].
    """
    inside = np.zeros(len(points), dtype=bool)
    if len(points) < 2 or points.max() < 0x300:
        return inside
    found, places = np.unique(points, return_inverse=True)
    extends, flag, space = (
        np.array([of(point) for point in found.tolist()], dtype=bool)[places]
        for of in (_extends, _is_flag_half, _is_space)
    )
    inside[:-1] = ~space[:-1] & ~space[1:] & (extends[1:] | (points[:-1] == _ZERO_WIDTH_JOINER))
    places = np.arange(len(points))
    before_run = np.maximum.accumulate(np.where(flag, -1, places))
    inside[:-1] |= flag[:-1] & flag[1:] & ((places - before_run)[:-1] % 2 == 1)
    return inside


def inside_addresses(text: str) -> np.ndarray:
    """bool [characters]: whether the character and the next one are of one URL or e-mail address."""
    inside = np.zeros(len(text), dtype=bool)
    for match in _ADDRESS.finditer(text):
        start = match.end() - len(match[0].lstrip(_BEFORE_ADDRESS))
        end = match.start() + len(match[0].rstrip(_AFTER_ADDRESS))
        inside[start : max(end - 1, start)] = True
    return inside


def paragraph_ends(text: str, space: np.ndarray) -> np.ndarray:
    """Characters that are the last before a blank line, or of the text, int64; those of white space are passed over.

    Args:
        text: the text.
        space: bool [characters], where there is white space.
    """
    breaks = [match.start() for match in _BLANK_LINE.finditer(text)] + [len(text)]
    shown = np.flatnonzero(~space)
    before = np.searchsorted(shown, breaks) - 1
    return np.unique(shown[before[before >= 0]])


@lru_cache(maxsize=2**16)
def _extends(point: int) -> bool:
    if point < 0x300:
        return False
    joins = 0x200C <= point <= 0x200D or 0x1F3FB <= point <= 0x1F3FF or 0xE0020 <= point <= 0xE007F
    hangul_vowel_or_final = 0x1160 <= point <= 0x11FF
    return joins or hangul_vowel_or_final or unicodedata.category(chr(point)).startswith("M")


def _is_flag_half(point: int) -> bool:
    return 0x1F1E6 <= point <= 0x1F1FF


def _is_space(point: int) -> bool:
    return chr(point).isspace()
