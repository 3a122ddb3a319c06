"""JSON Lines: each line that is not blank is a JSON object with the document's text under one key.

Lines end in LF or CRLF and nowhere else (https://jsonlines.org, RFC 8259).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from strata_core.corpus.sources.records import BYTE_ORDER_MARK, EMPTY, Document, Skip, not_utf8
from strata_core.corpus.sources.streams import Stream
from strata_core.errors import DataError

CHUNK_BYTES = 1 << 20
LARGEST_LINE_BYTES = 1 << 28
_MOST_KEYS_SHOWN = 10
_KINDS = {bool: "a boolean", int: "a number", float: "a number", list: "an array", tuple: "an object", str: "a string"}


@dataclass(frozen=True)
class JsonLines:
    """Consecutive lines of one file.

    Attributes:
        source: what to call the file.
        first_line: number of the first of the lines, counted from 1.
        lines: as they lie in the file, line ends included.
    """

    source: str
    first_line: int
    lines: list[bytes]

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.lines))

    def documents(self, text_key: str) -> Iterator[Document | Skip]:
        """The text of each record, or why it has none. Blank lines are no records."""
        for number, line in enumerate(self.lines, self.first_line):
            if not line.strip(b" \t\r\n"):
                continue
            found = _text_of(line, text_key)
            yield found if isinstance(found, Document) else Skip(*found, self.source, number)


def read_lines(stream: Stream) -> Iterator[JsonLines]:
    """The lines of a file, about `CHUNK_BYTES` at a time.

    Raises:
        DataError: a line of more than `LARGEST_LINE_BYTES`, UTF-16, or what reading the stream raises.
    """
    shown, number = stream.file.shown, 1
    while lines := _some_lines(stream, number):
        if number == 1:
            lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
        yield JsonLines(shown, number, lines)
        number += len(lines)


def _some_lines(stream: Stream, number: int) -> list[bytes]:
    lines: list[bytes] = []
    held_bytes = 0
    while held_bytes < CHUNK_BYTES:
        line = stream.content.readline(LARGEST_LINE_BYTES)
        if not line:
            break
        if len(line) == LARGEST_LINE_BYTES and not line.endswith(b"\n"):
            raise DataError(
                f"{stream.file.shown}:{number + len(lines)}: a line of more than {LARGEST_LINE_BYTES:,} bytes",
                hint="JSON Lines have one record a line; a JSON array has to be split into lines first",
            )
        lines.append(line)
        held_bytes += len(line)
    return lines


# Objects become tuples of pairs: an array (a list) stays apart from an object, and a repeated key is seen.
_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_int=float)


def _text_of(line: bytes, text_key: str) -> Document | tuple[str, str]:
    """The document of one line, or reason and detail."""
    try:
        decoded = line.decode()
    except UnicodeDecodeError as error:
        return not_utf8(error, of=" of the line")
    try:
        value: Any = _DECODER.decode(decoded)
    except json.JSONDecodeError as error:
        return "bad JSON", f"not JSON: {error.msg} at column {error.colno}"
    except RecursionError:
        return "bad JSON", "not JSON that can be read: nested too deeply"
    if not isinstance(value, tuple):
        return "not an object", f"the line is {_kind(value)}, not an object"
    texts = [item for key, item in value if key == text_key]
    if not texts:
        seen = [key for key, _ in value]
        shown = ", ".join(seen[:_MOST_KEYS_SHOWN]) + (", ..." if len(seen) > _MOST_KEYS_SHOWN else "")
        return "missing key", f"key {text_key!r} absent (keys seen: {shown or 'none'})"
    if len(texts) > 1:
        return "repeated key", f"key {text_key!r} stands {len(texts)} times in one object"
    text = texts[0]
    if text is None:
        return "null", f"the value of {text_key!r} is null"
    if not isinstance(text, str):
        return "not a string", f"the value of {text_key!r} is {_kind(text)}, not a string"
    if not text:
        return EMPTY, f"the value of {text_key!r} is empty"
    try:
        return Document(text, text.encode())
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        return "lone surrogate", f"the value of {text_key!r} has half of a surrogate pair, {half}"


def _kind(value: Any) -> str:
    return "null" if value is None else _KINDS[type(value)]
