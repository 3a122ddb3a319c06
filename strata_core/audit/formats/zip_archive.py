"""The directory of a zip archive, read by the rules of the ZIP application note (APPNOTE.TXT 6.3) without tolerance.

Zip readers differ in what they forgive, and a file that two of them read differently hides something. So whatever
leaves a choice is a fault here: bytes before, between or after the records, headers that disagree, names used twice.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field

from strata_core.audit.findings import Malformed, printable
from strata_core.audit.opening import FileBytes
from strata_core.audit.tensors import StoredBytes

LOCAL_SIGNATURE = b"PK\x03\x04"
_CENTRAL_SIGNATURE = b"PK\x01\x02"
_END_SIGNATURE = b"PK\x05\x06"
_END64_SIGNATURE = b"PK\x06\x06"
_LOCATOR64_SIGNATURE = b"PK\x06\x07"
_DESCRIPTOR_SIGNATURE = b"PK\x07\x08"
_END_BYTES = 22
_END64_BYTES = 56
_LOCATOR64_BYTES = 20
_LONGEST_COMMENT = 0xFFFF
_MAX_DIRECTORY_BYTES = 64 << 20
_MAX_RECORDS = 200_000
_STORED, _DEFLATED = 0, 8
_DESCRIPTOR_FLAG = 0x8
_ACCEPTED_FLAGS = 0x0806 | _DESCRIPTOR_FLAG
_FOLDER_ATTRIBUTE = 0x10
_FLAG_NAMES = {0x1: "encrypted", 0x20: "patched data", 0x40: "strongly encrypted", 0x2000: "masked headers"}


@dataclass(eq=False, slots=True)
class Record:
    """One member of an archive. `data_start` is -1 while its local header could not be used."""

    name: str
    flags: int
    method: int
    crc32: int
    packed_bytes: int
    size_bytes: int
    header_start: int
    data_start: int = -1
    end: int = -1

    def stored(self, file: FileBytes) -> StoredBytes:
        """Its content.

        Raises:
            Malformed: it lies outside the file, or is packed in a way that torch does not read.
        """
        if self.method not in (_STORED, _DEFLATED):
            raise Malformed(f"{printable(self.name)}: compression method {self.method}, which torch does not read")
        if self.method == _STORED and self.packed_bytes != self.size_bytes:
            raise Malformed(
                f"{printable(self.name)}: stored in {self.packed_bytes:,} bytes with {self.size_bytes:,} announced"
            )
        part = file.part(self.data_start, self.packed_bytes, printable(self.name))
        return StoredBytes(part, self.size_bytes, deflated=self.method == _DEFLATED)


@dataclass
class Archive:
    """The records of an archive and every fault of its structure, in words."""

    file: FileBytes
    records: list[Record] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    has_checksums: bool = True


@dataclass(frozen=True)
class _End:
    records: int
    directory_bytes: int
    directory_start: int
    start: int


def read_archive(file: FileBytes) -> Archive:
    """The directory of the archive that fills `file`, each record checked against its local header.

    Raises:
        Malformed: there is no directory to read.
    """
    archive = Archive(file)
    end = _find_end(archive)
    if end.directory_start + end.directory_bytes != end.start:
        archive.faults.append(
            f"the zip directory is announced at bytes {end.directory_start:,} to "
            f"{end.directory_start + end.directory_bytes:,}, but the archive's end record is at byte {end.start:,}"
        )
    if end.directory_bytes > _MAX_DIRECTORY_BYTES or end.records > _MAX_RECORDS:
        raise Malformed(f"a zip directory of {end.directory_bytes:,} bytes and {end.records:,} records is not read")
    directory = file.read(end.directory_start, end.directory_bytes)
    _read_directory(archive, directory, end.records)
    for record in archive.records:
        try:
            _read_local_header(archive, record)
        except Malformed as error:
            archive.faults.append(error.message)
    _check_layout(archive, end.directory_start)
    _check_names(archive)
    archive.has_checksums = any(record.crc32 for record in archive.records)
    return archive


def _find_end(archive: Archive) -> _End:
    file = archive.file
    tail_start = max(file.length - _END_BYTES - _LONGEST_COMMENT, 0)
    tail = file.read(tail_start, file.length - tail_start)
    found = tail.rfind(_END_SIGNATURE)
    if found < 0 or found + _END_BYTES > len(tail):
        raise Malformed(f"the zip directory at its end is missing: the file was cut short at {file.length:,} bytes")
    start = tail_start + found
    disk, directory_disk, here, total, size, offset, comment = struct.unpack("<HHHHIIH", tail[found + 4 : found + 22])
    after = len(tail) - found - _END_BYTES
    if after != comment:
        archive.faults.append(f"{after:,} bytes after the end of the zip archive where {comment:,} are announced")
    elif comment:
        archive.faults.append(f"a zip comment of {comment:,} bytes, which no torch writer makes")
    if disk or directory_disk or here != total:
        archive.faults.append("an archive of several disks")
    end = _End(total, size, offset, start)
    locator = file.read(start - _LOCATOR64_BYTES, _LOCATOR64_BYTES) if start >= _LOCATOR64_BYTES else b""
    if not locator.startswith(_LOCATOR64_SIGNATURE):
        return end
    disk, start64, disks = struct.unpack("<IQI", locator[4:])
    if disk or disks != 1:
        archive.faults.append("an archive of several disks")
    return _read_end64(archive, end, start64)


def _read_end64(archive: Archive, end: _End, start64: int) -> _End:
    data = archive.file.read(start64, _END64_BYTES)
    if not data.startswith(_END64_SIGNATURE):
        raise Malformed("the 64-bit end record is not where its locator says")
    size, _, _, disk, directory_disk, here, total, directory_bytes, directory_start = struct.unpack(
        "<QHHIIQQQQ", data[4:]
    )
    if start64 + 12 + size + _LOCATOR64_BYTES != end.start or disk or directory_disk or here != total:
        archive.faults.append("the 64-bit end record does not fit the archive")
    for narrow, wide, full in (
        (end.records, total, 0xFFFF),
        (end.directory_bytes, directory_bytes, 0xFFFFFFFF),
        (end.directory_start, directory_start, 0xFFFFFFFF),
    ):
        if narrow not in (wide, full):
            archive.faults.append(f"the two end records disagree: {narrow:,} and {wide:,}")
    return _End(total, directory_bytes, directory_start, start64)


def _read_directory(archive: Archive, directory: bytes, announced: int) -> None:
    position = 0
    for _ in range(announced):
        fixed = directory[position : position + 46]
        if len(fixed) < 46 or not fixed.startswith(_CENTRAL_SIGNATURE):
            archive.faults.append(
                f"the zip directory announces {announced:,} records and ends after {len(archive.records):,}"
            )
            return
        flags, method, crc32, packed, size = struct.unpack("<HH4xIII", fixed[8:28])
        name_bytes, extra_bytes, comment_bytes, disk, _, attributes, header_start = struct.unpack(
            "<HHHHHII", fixed[28:46]
        )
        end = position + 46 + name_bytes + extra_bytes + comment_bytes
        if end > len(directory):
            archive.faults.append("the zip directory ends within a record")
            return
        name = _name(archive, directory[position + 46 : position + 46 + name_bytes])
        extra = directory[position + 46 + name_bytes : end - comment_bytes]
        wide = _extra64(extra)
        size, wide = _widened(size, wide)
        packed, wide = _widened(packed, wide)
        header_start, wide = _widened(header_start, wide)
        if disk:
            archive.faults.append(f"{printable(name)}: lies on another disk")
        if attributes & _FOLDER_ATTRIBUTE and size:
            archive.faults.append(f"{printable(name)}: marked as a folder; torch would leave its bytes unread")
        archive.records.append(Record(name, flags, method, crc32, packed, size, header_start))
        position = end
    if position != len(directory):
        archive.faults.append(f"{len(directory) - position:,} bytes of the zip directory belong to no record")


def _name(archive: Archive, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        name = data.decode("utf-8", "surrogateescape")
        archive.faults.append(f"{printable(name)}: a record name that is not UTF-8")
        return name


def _extra64(extra: bytes) -> list[int]:
    """The numbers of the 64-bit extra field (APPNOTE 4.5.3), in its order."""
    position = 0
    while position + 4 <= len(extra):
        kind, size = struct.unpack("<HH", extra[position : position + 4])
        body = extra[position + 4 : position + 4 + size]
        if kind == 1:
            return list(struct.unpack(f"<{len(body) // 8}Q", body[: len(body) // 8 * 8]))
        position += 4 + size
    return []


def _widened(value: int, wide: list[int]) -> tuple[int, list[int]]:
    if value == 0xFFFFFFFF and wide:
        return wide[0], wide[1:]
    return value, wide


def _read_local_header(archive: Archive, record: Record) -> None:
    shown = printable(record.name)
    bad_flags = record.flags & ~_ACCEPTED_FLAGS
    fixed = archive.file.part(record.header_start, 30, f"{shown}: its local header").read(0, 30)
    if not fixed.startswith(LOCAL_SIGNATURE):
        raise Malformed(f"{shown}: there is no local header at byte {record.header_start:,}")
    flags, method, crc32, packed, size, name_bytes, extra_bytes = struct.unpack("<HH4xIIIHH", fixed[6:30])
    variable = archive.file.read(record.header_start + 30, name_bytes + extra_bytes)
    record.data_start = record.header_start + 30 + name_bytes + extra_bytes
    record.end = record.data_start + record.packed_bytes
    wide = _extra64(variable[name_bytes:])
    size, wide = _widened(size, wide)
    packed, wide = _widened(packed, wide)
    if variable[:name_bytes] != record.name.encode("utf-8", "surrogateescape"):
        local = variable[:name_bytes].decode("utf-8", "replace")
        archive.faults.append(f"{shown}: its local header calls it {printable(local)!r}")
    for flag in sorted(_FLAG_NAMES):
        if (bad_flags | flags) & flag:
            archive.faults.append(f"{shown}: marked as {_FLAG_NAMES[flag]} (flag {flag:#x})")
    other = (bad_flags | (flags & ~_ACCEPTED_FLAGS)) & ~sum(_FLAG_NAMES)
    if other:
        archive.faults.append(f"{shown}: unknown flags {other:#x}")
    if method != record.method:
        archive.faults.append(f"{shown}: compression methods {method} and {record.method} in its two headers")
    deferred = flags & _DESCRIPTOR_FLAG and (crc32, packed, size) == (0, 0, 0)
    if not deferred and (crc32, packed, size) != (record.crc32, record.packed_bytes, record.size_bytes):
        archive.faults.append(f"{shown}: its two headers disagree about size or checksum")
    if flags & _DESCRIPTOR_FLAG:
        record.end += _descriptor_bytes(archive.file, record)


def _descriptor_bytes(file: FileBytes, record: Record) -> int:
    """The size of the data descriptor after a record (APPNOTE 4.3.9): with signature or not, of 32 or 64 bits."""
    data = file.read(record.end, min(24, max(file.length - record.end, 0)))
    for signature in (_DESCRIPTOR_SIGNATURE, b""):
        for layout in ("<IQQ", "<III"):
            size = len(signature) + struct.calcsize(layout)
            if len(data) < size or not data.startswith(signature):
                continue
            fields = struct.unpack(layout, data[len(signature) : size])
            if fields[1:] == (record.packed_bytes, record.size_bytes) and fields[0] in (record.crc32, 0):
                return size
    return 0


def _check_layout(archive: Archive, directory_start: int) -> None:
    """Records follow one another from the first byte to the directory, without gaps and overlaps."""
    position = 0
    for record in sorted(archive.records, key=lambda record: record.header_start):
        if record.data_start < 0:
            continue
        shown = printable(record.name)
        if record.header_start > position:
            archive.faults.append(f"{record.header_start - position:,} bytes before {shown} belong to no record")
        elif record.header_start < position:
            archive.faults.append(f"{shown} overlaps the record before it")
        position = max(position, record.end)
    if position != directory_start:
        what = "overlap" if position > directory_start else "lie unused before"
        archive.faults.append(f"{abs(directory_start - position):,} bytes {what} the zip directory")


def _check_names(archive: Archive) -> None:
    seen: set[str] = set()
    for record in archive.records:
        shown = printable(record.name)
        folded = record.name.lower()
        if folded in seen:
            archive.faults.append(f"{shown}: two records have this name, and readers differ in which they take")
        seen.add(folded)
        parts = record.name.split("/")
        if "\0" in record.name or "\\" in record.name or ".." in parts or parts[0] == "":
            archive.faults.append(f"{shown}: a record name that leads out of the archive or ends early")


def crc_fault(record: Record, stored: StoredBytes) -> str | None:
    """Reads a record whole and says how its checksum differs from the recorded one, if it does.

    Raises:
        Malformed: the file ended, or the record does not inflate.
    """
    found = 0
    for chunk in stored.chunks(0, stored.size_bytes):
        found = zlib.crc32(chunk, found)
    if found == record.crc32:
        return None
    return (
        f"{printable(record.name)}: checksum {found:08x} where {record.crc32:08x} was recorded; its bytes were changed"
    )
