"""Plain text: a file is one document, kept byte for byte except for a byte order mark at its start.

A file too large to hold is read in parts, where the tokenizer allows it: they are cut in front of white space, where
its tokens begin anew.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from strata_core.corpus.sources.records import BYTE_ORDER_MARK, EMPTY, Document, Skip, not_utf8
from strata_core.corpus.sources.streams import Stream

PART_BYTES = 1 << 20
_CUT = re.compile(r"(?s:.)*[\S\x1c-\x1f](?=[ \n])")
_TAIL_CHARACTERS = 1 << 12


@dataclass(frozen=True)
class TextDocument:
    """A whole document as the bytes of its file."""

    source: str
    data: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.data)

    def documents(self, text_key: str) -> Iterator[Document | Skip]:
        """The document, or why there is none."""
        try:
            text = self.data.decode().removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            yield Skip(*not_utf8(error), self.source)
            return
        utf8 = self.data.removeprefix(BYTE_ORDER_MARK)
        yield Document(text, utf8) if utf8 else Skip(EMPTY, "the file is empty", self.source)


@dataclass(frozen=True)
class TextPart:
    """A part of a document that is too large to be handled at once.

    Attributes:
        source: what to call the file.
        text: the part; the document is the parts of one source joined.
        last: whether the document ends with it.
        fault: why the document has to be dropped, in its last part.
    """

    source: str
    text: str
    last: bool
    fault: Skip | None = None


def read_text(stream: Stream, *, in_parts: bool) -> Iterator[TextDocument | TextPart]:
    """The one document of a file.

    Args:
        stream: the file.
        in_parts: whether a file of more than `PART_BYTES` may be given in parts.

    Raises:
        DataError: what reading the stream raises.
    """
    if not in_parts:
        yield TextDocument(stream.file.shown, stream.content.read())
        return
    start = stream.content.read(PART_BYTES)
    if len(start) < PART_BYTES:
        yield TextDocument(stream.file.shown, start)
    else:
        yield from _parts(stream, start)


def _parts(stream: Stream, data: bytes) -> Iterator[TextPart]:
    source = stream.file.shown
    decoder = codecs.getincrementaldecoder("utf-8")()
    held, offset = "", 0
    while True:
        undecoded = len(decoder.getstate()[0])
        try:
            held += decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            fault = Skip(*not_utf8(error, offset=offset - undecoded), source)
            yield TextPart(source, "", last=True, fault=fault)
            return
        if offset == 0:
            held = held.removeprefix("\ufeff")
        offset += len(data)
        if not data:
            yield TextPart(source, held, last=True)
            return
        cut = cut_position(held)
        if cut:
            yield TextPart(source, held[:cut], last=False)
            held = held[cut:]
        data = stream.content.read(PART_BYTES)


def cut_position(text: str) -> int:
    """The last position near the end of `text` with a space or line feed after anything but white space; 0 if none."""
    match = _CUT.match(text, max(0, len(text) - _TAIL_CHARACTERS)) or _CUT.match(text)
    return match.end() if match else 0
