"""Plain lists of checksums that other tools write: SHA256SUMS, and a JSON object with nothing but files."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from strata_core.errors import DataError
from strata_core.manifest.canonical import parse_json
from strata_core.manifest.document import entry_faults, parse_entries, usable_entries
from strata_core.manifest.faults import Fault
from strata_core.manifest.hashing import FileEntry
from strata_core.manifest.tree import Found

_CHECKSUM_LINE = re.compile(rb"(\\?)([0-9a-fA-F]{64}) [ *](.+)", re.DOTALL)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Listing:
    """A plain list of checksums.

    Attributes:
        entries: what it lists.
        faults: what is wrong with entries that are left out.
        complete: whether it claims to list everything in its folder. SHA256SUMS does not.
    """

    entries: tuple[FileEntry, ...]
    faults: tuple[Fault, ...]
    complete: bool


def parse_listing(data: bytes, found: dict[str, Found], *, source: Path) -> Listing | None:
    """Reads a plain list of checksums; None when the bytes are JSON that has to be a manifest.

    Args:
        data: the whole list.
        found: what lies in its folder, from where sizes are taken when the list has none.
        source: the path of the list, for errors.

    Raises:
        DataError: neither JSON nor SHA256SUMS, or JSON that cannot be read.
    """
    if not data.removeprefix(_BYTE_ORDER_MARK).lstrip().startswith(b"{"):
        return _parse_checksum_lines(data, found, source)
    content = parse_json(data, source=str(source))
    if "format_version" in content or not isinstance(content.get("files"), list):
        return None
    items = [
        {**item, "size": item["bytes"]} if isinstance(item, dict) and "bytes" in item else item
        for item in content["files"]
    ]
    entries, faults = parse_entries(items, source=str(source))
    return Listing(tuple(entries), tuple(faults), complete=True)


def _parse_checksum_lines(data: bytes, found: dict[str, Found], source: Path) -> Listing:
    """The format of GNU sha256sum, in text or binary mode, with LF or CRLF, names escaped or not."""
    lines = data.removeprefix(_BYTE_ORDER_MARK).split(b"\n")
    if all(line.endswith(b"\r") for line in lines if line):
        lines = [line.removesuffix(b"\r") for line in lines]
    entries = []
    faults = []
    for number, line in enumerate(lines, start=1):
        match = _CHECKSUM_LINE.fullmatch(line)
        if match is not None:
            path = os.fsdecode(_file_name(match[3], escaped=bool(match[1])))
            size = found[path].size if path in found else 0
            entries.append(FileEntry(path, size, match[2].decode().lower()))
        elif line.strip() and not line.startswith(b"#"):
            faults.append(Fault("other", f"{source.name}:{number}", "not a line of SHA256SUMS"))
    if not entries:
        raise DataError(
            f"{source}: neither a manifest nor a list of SHA-256 checksums",
            hint="give the folder of a corpus, run or checkpoint, a manifest.json, or a SHA256SUMS file",
        )
    return Listing(tuple(usable_entries(entries)), (*faults, *entry_faults(entries)), complete=False)


def _file_name(text: bytes, *, escaped: bool) -> bytes:
    if escaped:
        replaced = {b"\\\\": b"\\", b"\\n": b"\n", b"\\r": b"\r"}
        text = re.sub(rb"\\[\\nr]", lambda match: replaced[match[0]], text)
    return text.removeprefix(b"./")
