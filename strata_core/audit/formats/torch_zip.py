"""Checkpoints as `torch.save` writes them: a zip with data.pkl and one record a storage (torch/serialization.py)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from strata_core.audit.findings import CORRUPT, Malformed, printable
from strata_core.audit.formats.numpy_file import is_numpy_file, read_numpy
from strata_core.audit.formats.numpy_zip import is_numpy_zip, read_numpy_zip
from strata_core.audit.formats.torch_pickle import read_values
from strata_core.audit.formats.zip_archive import LOCAL_SIGNATURE, Archive, Record, crc_fault, read_archive
from strata_core.audit.opening import FileBytes
from strata_core.audit.pickles.known_globals import Standing
from strata_core.audit.reading import Budget, Contents, PendingCheck, PickleReader
from strata_core.audit.tensors import Storage

_SMALL_RECORDS = frozenset(
    {"version", ".data/version", "byteorder", ".format_version", ".storage_alignment", ".data/serialization_id"}
)
_LARGEST_SMALL_RECORD_BYTES = 256
_NEWEST_VERSION = 10
"""kMaxSupportedFileFormatVersion in caffe2/serialize/versions.h."""
_SCRIPT_FOLDERS = ("code/", "ts_code/", "constants/")
_CODE_ENDINGS = (".py", ".pyc", ".so", ".dll", ".dylib")
_PACKAGE_RECORD = ".data/extern_modules"
"""Which torch.package writes."""
_SCANNED_DEFLATED_BYTES = 16 << 20
_OPERATIONS_PER_RECORD = 100


def read_torch_zip(file: FileBytes, budget: Budget) -> Contents:
    """Reads an archive: its structure, every pickle in it by content, and the tensors of data.pkl."""
    contents = Contents("torch zip")
    try:
        archive = read_archive(file)
    except Malformed as error:
        contents.corrupt(f"{file.name}: {error.message}" if file.name not in error.message else error.message)
        return contents
    for fault in archive.faults:
        contents.corrupt(f"{file.name}: {fault}")
    if not archive.records:
        contents.corrupt(f"{file.name}: a zip archive without records")
        return contents
    if is_numpy_zip(file, archive):
        return read_numpy_zip(file, archive, budget)
    budget.operations += _OPERATIONS_PER_RECORD * len(archive.records)
    _Reader(file, archive, contents, budget).read()
    return contents


class _Reader:
    def __init__(self, file: FileBytes, archive: Archive, contents: Contents, budget: Budget) -> None:
        self.file = file
        self.archive = archive
        self.contents = contents
        self.budget = budget
        self.root = archive.records[0].name.partition("/")[0]
        self.records = {record.name: record for record in archive.records}
        self.storages: dict[str, Storage] = {}
        self.little_endian = True

    def read(self) -> None:
        roots = sorted({record.name.partition("/")[0] for record in self.archive.records})
        if len(roots) > 1:
            shown = ", ".join(printable(root, limit=40) for root in roots[:4])
            self.contents.corrupt(
                f"{self.file.name}: records under {len(roots)} top folders ({shown}) where one is due"
            )
        self._read_small_records()
        self._refuse_code()
        main = self.records.get(f"{self.root}/data.pkl")
        if main is None:
            self.contents.corrupt(f"{self.file.name}: a zip archive without data.pkl, no checkpoint of torch")
        elif main.data_start >= 0:
            self._guarded(main, self._read_main)
        for record in self.archive.records:
            if record is not main and record.data_start >= 0:
                self._guarded(record, self._scan_by_content)
        self._check_checksums()

    def _guarded(self, record: Record, read: Callable[[Record], None]) -> None:
        try:
            read(record)
        except Malformed as error:
            self.contents.corrupt(f"{self.file.name}: {error.message}")

    def _source(self, record: Record) -> FileBytes:
        """The plain bytes of a record, to run as a pickle.

        Raises:
            Malformed: it lies outside the file, does not inflate, or inflates to too much.
        """
        stored = record.stored(self.file)
        name = f"{self.file.name}:{printable(record.name)}"
        if not stored.deflated:
            return self.file.part(record.data_start, record.packed_bytes, name)
        self.budget.spend_inflated(record.size_bytes, name)
        return FileBytes.of_memory(b"".join(stored.chunks(0, stored.size_bytes)), name)

    def _read_small_record(self, record: Record) -> None:
        if record.size_bytes > _LARGEST_SMALL_RECORD_BYTES:
            raise Malformed(f"{printable(record.name)}: {record.size_bytes:,} bytes where a short text is due")
        data = b"".join(record.stored(self.file).chunks(0, record.size_bytes))
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Malformed(f"{printable(record.name)}: no text where a short text is due") from error
        self.contents.details[record.name.rpartition("/")[2].lstrip(".")] = text

    def _refuse_code(self) -> None:
        for record in self.archive.records:
            inner = record.name.partition("/")[2]
            shown = f"{self.file.name}: {printable(record.name)}"
            if inner == "constants.pkl" or inner.startswith(_SCRIPT_FOLDERS):
                self.contents.format = "torchscript"
                self.contents.unsafe(f"{shown}: a TorchScript archive; its code runs when it is used")
                return
            if inner.endswith(_CODE_ENDINGS) or inner == _PACKAGE_RECORD:
                self.contents.unsafe(f"{shown}: the archive brings code of its own, which its loader runs")
                return

    def _scan_by_content(self, record: Record) -> None:
        """Looks for pickles and archives under any other name: torch.load can be told to read any record."""
        inner = record.name.partition("/")[2]
        if inner in _SMALL_RECORDS or record.size_bytes == 0 or inner.startswith("code/"):
            return
        holds_elements = record.name in self.storages
        if holds_elements and record.method == 0:
            head = self.file.part(record.data_start, record.packed_bytes, record.name).head(2)
            if not (head[:1] == b"\x80" and head[1:] <= b"\x05"):
                return
        elif holds_elements and record.size_bytes > _SCANNED_DEFLATED_BYTES:
            return
        source = self._source(record)
        found = Contents("extra record")
        if source.head(4) == LOCAL_SIGNATURE and not holds_elements:
            found = self.budget.nested(source)
            is_pickle = True
        elif is_numpy_file(source):
            found = read_numpy(source, self.budget)
            is_pickle = True
        else:
            run = PickleReader(source, found, self.budget).run()
            is_pickle = run.broken is None
        names_something = any(use.standing is Standing.DANGEROUS for use in found.globals)
        if is_pickle or names_something:
            self.contents.findings += [one for one in found.findings if one.kind != CORRUPT]
            self.contents.globals += found.globals
        if not inner.startswith(("data/", ".data/")):
            self.contents.notes.append(f"{printable(record.name)} is no part of a torch checkpoint")

    def _read_main(self, record: Record) -> None:
        source = self._source(record)
        reader = PickleReader(source, self.contents, self.budget)
        run = reader.run()
        if run.broken is None and run.end < source.length:
            self.contents.corrupt(f"{source.name}: {source.length - run.end:,} bytes after the end of the pickle")
            reader.run(run.end)
        if run.broken is None:
            read_values(run, reader, self._find_stored, self.contents)
        self.contents.storages = list(self.storages.values())
        element_records = {name for name in self.records if name.startswith(f"{self.root}/data/")}
        unused = element_records - set(self.storages)
        if unused and run.broken is None:
            self.contents.notes.append(f"{len(unused)} stored records belong to no tensor")

    def _find_stored(self, key: str, size_bytes: int) -> Storage:
        name = f"{self.root}/data/{key}"
        if name not in self.storages:
            record = self.records.get(name)
            if record is None:
                raise Malformed(f"its storage {printable(name)} is not in the archive")
            stored = record.stored(self.file)
            crc32 = record.crc32 if self.archive.has_checksums else None
            self.storages[name] = Storage(name, record.size_bytes, stored, crc32, self.little_endian)
        storage = self.storages[name]
        if storage.size_bytes != size_bytes:
            raise Malformed(
                f"its storage {printable(name)} has {storage.size_bytes:,} bytes where {size_bytes:,} are due"
            )
        return storage

    def _check_checksums(self) -> None:
        if not self.archive.has_checksums:
            self.contents.notes.append("the archive was written without checksums")
            return
        at_once = self.budget.may_check(sum(record.size_bytes for record in self.archive.records))
        for record in self.archive.records:
            if record.data_start < 0:
                continue
            if at_once or (record.name not in self.storages and record.size_bytes <= _SCANNED_DEFLATED_BYTES):
                self._guarded(record, self._check_checksum)
            else:
                check = partial(self._checksum_fault, record)
                self.contents.pending.append(PendingCheck(f"{self.file.name}:{record.name}", record.size_bytes, check))
        self.contents.details["checksums_verified"] = at_once

    def _checksum_fault(self, record: Record) -> str | None:
        try:
            self._check_checksum(record)
        except Malformed as error:
            return f"{self.file.name}: {error.message}"
        return None

    def _check_checksum(self, record: Record) -> None:
        fault = crc_fault(record, record.stored(self.file))
        if fault is not None:
            raise Malformed(fault + self._tensors_in(record))

    def _tensors_in(self, record: Record) -> str:
        storage = self.storages.get(record.name)
        names = [
            tensor.name
            for tensor in self.contents.tensors
            if storage in [piece.storage for piece in tensor.stored_pieces()]
        ]
        return f" (tensor {', '.join(printable(name, limit=60) for name in names[:3])})" if storage and names else ""

    def _read_small_records(self) -> None:
        """The records that torch parses on opening an archive; what it could not parse is a fault."""
        for name in _SMALL_RECORDS:
            record = self.records.get(f"{self.root}/{name}")
            if record is not None and record.data_start >= 0:
                self._guarded(record, self._read_small_record)
        version = (
            f"{self.root}/.data/version" if f"{self.root}/.data/version" in self.records else f"{self.root}/version"
        )
        if version not in self.records:
            self.contents.corrupt(f"{self.file.name}: an archive without its version record")
        for name in ("version", "storage_alignment"):
            text = self.contents.details.get(name, "1").strip(" \t\r\n")
            if not (text.isascii() and text.isdigit() and (name != "version" or 1 <= int(text) <= _NEWEST_VERSION)):
                self.contents.corrupt(f"{self.file.name}: its {name} record holds {printable(text, limit=40)!r}")
        order = self.contents.details.get("byteorder", "little")
        self.little_endian = order != "big"
        if order not in ("little", "big"):
            self.contents.corrupt(f"{self.file.name}: byte order {printable(order, limit=40)!r}")
