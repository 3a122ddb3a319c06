"""What a source hands on: documents, and records that are none with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Document(NamedTuple):
    """The text of one document, the same as UTF-8, and its split; None: its text decides."""

    text: str
    utf8: bytes
    split: str | None = None


@dataclass(frozen=True)
class Skip:
    """A record that gives no document.

    Attributes:
        reason: the kind of fault, one of a few fixed words; what is counted.
        detail: the fault in full, with the value found.
        source: what to call the file.
        line: counted from 1, None where the whole file is the record.
        sent_id: of an annotated sentence that has one.
    """

    reason: str
    detail: str
    source: str
    line: int | None = None
    sent_id: str | None = None

    @property
    def place(self) -> str:
        """File and line, as editors understand them, and the sent_id."""
        place = self.source if self.line is None else f"{self.source}:{self.line}"
        return place if self.sent_id is None else f"{place} (sent_id {self.sent_id})"


EMPTY = "empty"
"""The reason of records that are left out without being a fault."""


def not_utf8(error: UnicodeDecodeError, *, offset: int = 0, of: str = "") -> tuple[str, str]:
    """Reason and detail for bytes that are not UTF-8; `offset` is where the decoded bytes begin."""
    if offset == 0 and bytes(error.object[:2]) in UTF16_MARKS:
        return "not UTF-8", f"looks like UTF-16 (it begins with {error.object[:2].hex(' ')}); strata reads UTF-8"
    position = offset + error.start
    return "not UTF-8", f"not UTF-8 at byte {position}{of} (0x{error.object[error.start]:02x})"
