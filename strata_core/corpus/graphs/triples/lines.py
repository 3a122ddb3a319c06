"""The lines of a file of triples, compressed or not."""

from __future__ import annotations

from collections.abc import Iterator

from strata_core.corpus.sources.files import InputFile
from strata_core.corpus.sources.records import BYTE_ORDER_MARK, UTF16_MARKS
from strata_core.corpus.sources.streams import open_stream
from strata_core.errors import DataError


def text_lines(file: InputFile) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, counted from 1, without their ends (LF or CRLF) and without a byte order mark.

    Raises:
        DataError: the file cannot be read, or a line is not UTF-8.
    """
    with open_stream(file) as stream:
        for line, raw in enumerate(stream.content, 1):
            if line == 1:
                if raw.startswith(UTF16_MARKS):
                    raise DataError(f"{file.shown}: UTF-16, not UTF-8", hint="save the file as UTF-8")
                raw = raw.removeprefix(BYTE_ORDER_MARK)
            try:
                text = raw.removesuffix(b"\n").removesuffix(b"\r").decode()
            except UnicodeDecodeError as error:
                found = f"byte {error.object[error.start]:#04x} is not UTF-8"
                raise DataError(f"{file.shown}:{line}: {found}", hint="save the file as UTF-8") from None
            if text.strip():
                yield line, text
