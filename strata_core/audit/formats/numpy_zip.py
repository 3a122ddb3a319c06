""".npz archives: a zip of .npy records (numpy.savez)."""

from __future__ import annotations

from strata_core.audit.findings import Malformed, printable
from strata_core.audit.formats.numpy_file import is_numpy_file, read_numpy
from strata_core.audit.formats.zip_archive import Archive, Record, crc_fault
from strata_core.audit.opening import FileBytes
from strata_core.audit.reading import Budget, Contents


def is_numpy_zip(file: FileBytes, archive: Archive) -> bool:
    """Whether every record of an archive is an array by its first bytes."""
    usable = [record for record in archive.records if record.data_start >= 0]
    return bool(usable) and len(usable) == len(archive.records) and all(_is_array(file, one) for one in usable)


def _is_array(file: FileBytes, record: Record) -> bool:
    try:
        return b"".join(_first(file, record)).startswith(b"\x93NUMPY")
    except Malformed:
        return False


def _first(file: FileBytes, record: Record) -> list[bytes]:
    stored = record.stored(file)
    return [next(iter(stored.chunks(0, min(6, stored.size_bytes))), b"")]


def read_numpy_zip(file: FileBytes, archive: Archive, budget: Budget) -> Contents:
    """Reads every array of an archive; checksums of what is held in memory are verified."""
    contents = Contents("numpy archive")
    for fault in archive.faults:
        contents.corrupt(f"{file.name}: {fault}")
    for record in archive.records:
        try:
            _read_record(file, record, budget, contents)
        except Malformed as error:
            contents.corrupt(f"{file.name}: {error.message}")
    return contents


def _read_record(file: FileBytes, record: Record, budget: Budget, contents: Contents) -> None:
    stored = record.stored(file)
    name = f"{file.name}:{printable(record.name)}"
    if stored.deflated:
        budget.spend_inflated(record.size_bytes, name)
        source = FileBytes.of_memory(b"".join(stored.chunks(0, stored.size_bytes)), name)
    else:
        source = file.part(record.data_start, record.packed_bytes, name)
    if not is_numpy_file(source):
        raise Malformed(f"{printable(record.name)} is no array")
    contents.take_over(read_numpy(source, budget, record.name.removesuffix(".npy")))
    if stored.deflated or budget.may_check(record.size_bytes):
        fault = crc_fault(record, stored)
        if fault is not None:
            raise Malformed(fault)
