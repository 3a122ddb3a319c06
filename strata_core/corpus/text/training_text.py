"""The text that a tokenizer is learned from: a bounded part of the input, spread over all of its sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from strata_core.corpus.sources.records import Skip
from strata_core.corpus.sources.source import Source
from strata_core.corpus.sources.text import TextPart
from strata_core.corpus.stage import Stage


class TrainingText:
    """Documents from the beginning of each source, as many as its share of `most_bytes` by size allows.

    What a small source leaves of its share, and what a document takes beyond it, counts for the sources after it, so
    that of many small sources every so many is taken.

    Attributes:
        taken_bytes: UTF-8 bytes given so far.
    """

    def __init__(self, sources: Sequence[Source], *, text_key: str, most_bytes: int, stage: Stage) -> None:
        self.taken_bytes = 0
        self._sources = sources
        self._text_key = text_key
        self._most_bytes = most_bytes
        self._stage = stage

    def __iter__(self) -> Iterator[str]:
        total_bytes = sum(source.size_bytes for source in self._sources)
        passed_bytes = 0
        for source in self._sources:
            passed_bytes += source.size_bytes
            allowed_bytes = self._most_bytes * passed_bytes // max(total_bytes, 1)
            yield from self._beginning(source, allowed_bytes)

    def _beginning(self, source: Source, allowed_bytes: int) -> Iterator[str]:
        if self.taken_bytes >= allowed_bytes:
            return
        for piece in source.pieces(in_parts=True):
            if isinstance(piece, TextPart):
                found = [(piece.text, len(piece.text.encode()))]
            else:
                documents = (one for one in piece.documents(self._text_key) if not isinstance(one, Skip))
                found = [(document.text, len(document.utf8)) for document in documents]
            for text, size_bytes in found:
                self.taken_bytes += size_bytes
                self._stage.reach(self.taken_bytes)
                yield text
                if self.taken_bytes >= allowed_bytes:
                    return
