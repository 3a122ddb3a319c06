"""Where the sentences, tokens and words of a text are: what cuts texts hands to what annotates them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """A token of a text: characters `start` to `end`, and the words it spells.

    There is one word, or several where it is a multiword token. The one word of a token is the text of the span, inner
    white space as it is to stand in FORM.
    """

    start: int
    end: int
    words: tuple[str, ...]


class Segmenter(Protocol):
    """Cuts texts into sentences, and these into tokens."""

    def __call__(self, texts: Sequence[str]) -> list[list[list[TokenSpan]]]:
        """For each text its sentences, for each sentence its tokens.

        Together they hold every character that is no white space, in order; a text of white space has no sentence.
        """
        ...
