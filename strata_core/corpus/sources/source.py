"""A source: something that is read piece by piece, and can say afterwards what it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from strata_core.corpus.format import SourceInfo
from strata_core.corpus.sources.files import InputFile
from strata_core.corpus.sources.jsonl import JsonLines, read_lines
from strata_core.corpus.sources.samples import sample_info, sample_lines
from strata_core.corpus.sources.streams import open_stream
from strata_core.corpus.sources.text import TextDocument, TextPart, read_text
from strata_core.corpus.sources.treebank import DocumentText

Piece = JsonLines | TextDocument | TextPart | DocumentText


class Source(Protocol):
    """What a corpus is made from. It can be read more than once.

    Attributes:
        shown: what to call it in messages.
        name: what `corpus.json` calls it.
        split: the one that all its documents belong to; None: each document's own.
        size_bytes: how much there is to read.
        position_bytes: how much of it has been read.
    """

    shown: str
    name: str
    split: str | None
    size_bytes: int
    position_bytes: int

    def pieces(self, *, in_parts: bool) -> Iterator[Piece]:
        """Its content in order; a document larger than can be handled at once comes in parts where that is allowed.

        Raises:
            DataError: it cannot be read.
        """

    def info(self) -> SourceInfo:
        """What was read; to be asked for after the last piece."""


class FileSource:
    """A file of text or JSON Lines."""

    def __init__(self, file: InputFile) -> None:
        self.shown = file.shown
        self.name = file.name
        self.split: str | None = None
        self.size_bytes = file.size_bytes
        self.position_bytes = 0
        self._file = file
        self._info: SourceInfo | None = None

    def pieces(self, *, in_parts: bool) -> Iterator[Piece]:
        """Its content, as `Source.pieces`."""
        with open_stream(self._file) as stream:
            read = read_lines(stream) if self._file.format == "jsonl" else read_text(stream, in_parts=in_parts)
            for piece in read:
                self.position_bytes = stream.position_bytes
                yield piece
            self.position_bytes = stream.position_bytes
            self._info = stream.finish()

    def info(self) -> SourceInfo:
        """What was read, as `Source.info`."""
        assert self._info is not None
        return self._info


class SampleSource:
    """A built-in sample."""

    def __init__(self, name: str) -> None:
        self.shown = self.name = name
        self.split: str | None = None
        self.size_bytes = sum(lines.size_bytes for lines in sample_lines(name))
        self.position_bytes = 0

    def pieces(self, *, in_parts: bool) -> Iterator[Piece]:
        """Its content, as `Source.pieces`."""
        self.position_bytes = 0
        for lines in sample_lines(self.name):
            self.position_bytes += lines.size_bytes
            yield lines

    def info(self) -> SourceInfo:
        """What was read, as `Source.info`."""
        return sample_info(self.name)
