"""Text that grows token by token: only whole characters come out, and nothing of a stop string."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

_UNFINISHED = "\ufffd"
"""What the bytes of half a character are decoded to."""


class Decoder(Protocol):
    """What turns tokens into text."""

    def decode(self, ids: Sequence[int], /) -> str:
        """The text of tokens, without special ones."""


class GrowingText:
    """The text of a continuation.

    Args:
        decoder: of the tokens.
        prompt: tokens before the continuation; a token's text may depend on the one before it.
        stops: strings that end the text; it ends before the first of them.
    """

    def __init__(self, decoder: Decoder, prompt: Sequence[int], stops: Sequence[str] = ()) -> None:
        self._decoder = decoder
        self._ids = list(prompt)
        self._stops = tuple(stops)
        # Tokens from _start on are decoded anew each time; the text of those before _read has been taken.
        self._start, self._read = 0, len(self._ids)
        self._text = ""
        self._given = 0
        self.stopped = False

    @property
    def text(self) -> str:
        """Whole characters so far, up to the stop string that ended it."""
        return self._text

    def add(self, token: int) -> str:
        """Takes a token, and returns the text that can be shown since the last call; sets `stopped`."""
        self._ids.append(token)
        new = self._new_text()
        if new.endswith(_UNFINISHED):
            return ""
        return self._take(new)

    def finish(self) -> str:
        """What is left to show once no more tokens come: half a character as U+FFFD, and what began like a stop."""
        if self.stopped:
            return ""
        shown = self._take(self._new_text())
        rest, self._given = self._text[self._given :], len(self._text)
        return shown + rest

    def _new_text(self) -> str:
        before = self._decoder.decode(self._ids[self._start : self._read])
        return self._decoder.decode(self._ids[self._start :])[len(before) :]

    def _take(self, new: str) -> str:
        self._start, self._read = self._read, len(self._ids)
        searched_from = max(0, len(self._text) - max(map(len, self._stops), default=0))
        self._text += new
        places = [place for stop in self._stops if (place := self._text.find(stop, searched_from)) >= 0]
        if places:
            self._text, self.stopped = self._text[: min(places)], True
        end = len(self._text) - (0 if self.stopped else self._held_back())
        shown = self._text[self._given : end]
        self._given = max(self._given, end)
        return shown

    def _held_back(self) -> int:
        """Characters at the end that may be the beginning of a stop string."""
        lengths = (
            length for stop in self._stops for length in range(1, len(stop)) if self._text.endswith(stop[:length])
        )
        return max(lengths, default=0)
