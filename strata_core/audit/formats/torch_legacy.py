"""Checkpoints of torch before 1.6: a row of pickles, then the storages (`_legacy_load` in torch/serialization.py)."""

from __future__ import annotations

import struct

from strata_core.audit.dtypes import ElementType
from strata_core.audit.findings import CORRUPT, UNSAFE, Malformed, printable
from strata_core.audit.formats.torch_pickle import class_type, read_values
from strata_core.audit.opening import FileBytes
from strata_core.audit.pickles.symbols import Dictionary, PickleRun
from strata_core.audit.reading import Budget, Contents, PickleReader
from strata_core.audit.tensors import Storage, StoredBytes

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
_MOST_PICKLES = 64


def read_torch_legacy(file: FileBytes, budget: Budget) -> Contents | None:
    """Reads a file that starts with a pickle: legacy torch when its first pickle is the magic number, else raw pickles.

    Returns None when the file does not start with a pickle that does anything.
    """
    contents = Contents("torch legacy")
    reader = PickleReader(file, contents, budget)
    first = reader.run()
    if first.broken is None and first.value == MAGIC_NUMBER and isinstance(first.value, int):
        try:
            _read_legacy(reader, first.end, contents)
        except Malformed as error:
            contents.corrupt(error.message if file.name in error.message else f"{file.name}: {error.message}")
        return contents
    contents.format = "pickle"
    if first.broken is not None:
        tells = contents.globals or any(finding.kind == UNSAFE for finding in contents.findings)
        return contents if tells or file.head(1) == b"\x80" else None
    _read_raw(reader, first, contents)
    return contents


def _read_legacy(reader: PickleReader, start: int, contents: Contents) -> None:
    protocol = _run(reader, start)
    if protocol.value != PROTOCOL_VERSION:
        raise Malformed(f"legacy protocol version {PROTOCOL_VERSION} is due after the magic number")
    system = _run(reader, protocol.end)
    if isinstance(system.value, Dictionary) and system.value.get("little_endian") is False:
        contents.notes.append("written on a big-endian machine")
    main = _run(reader, system.end)
    keys = _run(reader, main.end)
    if not isinstance(keys.value, list) or not all(isinstance(key, str) for key in keys.value):
        raise Malformed("the list of storage keys is due after the legacy pickle")
    if len(set(keys.value)) != len(keys.value):
        contents.corrupt(f"{reader.source.name}: a storage key is listed twice")
    storages = _LegacyStorages(reader.source, keys, _classes_of_storages(main))
    contents.storages = list(storages.found.values())
    read_values(main, reader, storages.find, contents)
    if storages.fault:
        raise Malformed(storages.fault)
    left = reader.source.length - storages.end
    if left:
        contents.corrupt(f"{reader.source.name}: {left:,} bytes after the last storage")


def _run(reader: PickleReader, start: int) -> PickleRun:
    run = reader.run(start)
    if run.broken is not None:
        raise Malformed("a legacy torch file that breaks off in its pickles")
    return run


def _classes_of_storages(main: PickleRun) -> dict[str, ElementType]:
    classes: dict[str, ElementType] = {}
    for identity in main.persistent_ids:
        if (
            isinstance(identity, tuple)
            and len(identity) >= 5
            and identity[0] == "storage"
            and isinstance(identity[2], str)
        ):
            classes.setdefault(identity[2], class_type(identity[1]))
    return classes


class _LegacyStorages:
    """The storages after the pickles: for each key its count of elements (64 bits) and the elements."""

    def __init__(self, source: FileBytes, keys: PickleRun, classes: dict[str, ElementType]) -> None:
        self.found: dict[str, Storage] = {}
        self.fault = ""
        self.end = keys.end
        for key in keys.value:
            shown = f"storage {printable(key, limit=60)}"
            if key not in classes:
                self.fault = f"{shown} is listed, but no tensor says what it holds"
                return
            if source.length - self.end < 8:
                self.fault = f"{shown} is due at byte {self.end:,}, where the file ends: it was cut short"
                return
            (elements,) = struct.unpack("<q", source.read(self.end, 8))
            size_bytes = classes[key].bytes_for(elements)
            start = self.end + 8
            if elements < 0 or start + size_bytes > source.length:
                self.fault = (
                    f"{shown}: {size_bytes:,} bytes are announced at byte {start:,} and "
                    f"{source.length - start:,} are left"
                )
                return
            self.found[key] = Storage(shown, size_bytes, StoredBytes(source.part(start, size_bytes, shown), size_bytes))
            self.end = start + size_bytes

    def find(self, key: str, size_bytes: int) -> Storage:
        storage = self.found.get(key)
        if storage is None:
            raise Malformed(self.fault or f"its storage {printable(key, limit=60)} is not in the file")
        if storage.size_bytes != size_bytes:
            raise Malformed(f"its {storage.name} has {storage.size_bytes:,} bytes where {size_bytes:,} are due")
        return storage


def _read_raw(reader: PickleReader, first: PickleRun, contents: Contents) -> None:
    """A pickle of whatever kind: its tensors, and any pickles that follow it."""
    source = reader.source
    if first.persistent_ids:
        contents.corrupt(f"{source.name}: refers to storages by persistent ids, which a plain pickle cannot hold")
    else:
        read_values(first, reader, _no_storages, contents)
    if first.value is None or isinstance(first.value, bool | int | float | str):
        contents.corrupt(f"{source.name}: a pickle of a single {type(first.value).__name__}, no checkpoint")
    end = first.end
    more = 0
    while end < source.length and more < _MOST_PICKLES:
        before = len(contents.findings)
        run = reader.run(end)
        if run.broken is not None:
            contents.findings[before:] = [one for one in contents.findings[before:] if one.kind != CORRUPT]
            break
        more += 1
        end = run.end
    if more:
        contents.notes.append(f"{more} more pickles follow the first")
    if end < source.length:
        contents.corrupt(f"{source.name}: {source.length - end:,} bytes after the end of the pickle")


def _no_storages(key: str, size_bytes: int) -> Storage:
    raise Malformed("its storage lies outside the pickle")
