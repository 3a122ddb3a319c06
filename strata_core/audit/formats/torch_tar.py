"""The oldest torch layout: a tar of `storages`, `tensors` and `pickle` (`legacy_load` in torch/serialization.py)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from strata_core.audit.dtypes import ElementType
from strata_core.audit.findings import CORRUPT, Malformed, printable
from strata_core.audit.formats.torch_pickle import class_type
from strata_core.audit.opening import FileBytes
from strata_core.audit.pickles.symbols import Dictionary, Persistent
from strata_core.audit.reading import Budget, Contents, PickleReader
from strata_core.audit.tensor_values import key_text
from strata_core.audit.tensors import MAX_DIMENSIONS, Storage, StoredBytes, Tensor

_BLOCK_BYTES = 512
_MEMBERS = ("sys_info", "storages", "tensors", "pickle")
_MOST_MEMBERS = 1000
_LONGEST_PADDING_BYTES = 1 << 20
_MOST_ENTRIES = 200_000


def is_tar(file: FileBytes) -> bool:
    """Whether the first block is a tar header (its checksum says so)."""
    return file.length >= _BLOCK_BYTES and _checksum_fits(file.read(0, _BLOCK_BYTES))


def read_torch_tar(file: FileBytes, budget: Budget) -> Contents:
    """Reads a tar: every member as a pickle, and the tensors if it has torch's four members."""
    contents = Contents("torch tar")
    members: dict[str, FileBytes] = {}
    try:
        _list_members(file, members, contents)
    except Malformed as error:
        contents.corrupt(error.message)
    for name, part in members.items():
        if name not in ("storages", "tensors", "pickle"):
            _scan(part, contents, budget)
    missing = [name for name in _MEMBERS[1:] if name not in members]
    if missing:
        contents.corrupt(f"{file.name}: a tar without {', '.join(missing)}, no checkpoint of torch")
        for name in set(members) & set(_MEMBERS[1:]):
            _scan(members[name], contents, budget)
        return contents
    try:
        storages = _read_storages(PickleReader(members["storages"], contents, budget))
        tensors = _read_tensors(PickleReader(members["tensors"], contents, budget), storages)
    except Malformed as error:
        contents.corrupt(f"{file.name}: {error.message}")
        tensors = {}
    run = PickleReader(members["pickle"], contents, budget).run()
    contents.storages = list(
        {id(tensor.storage): tensor.storage for tensor in tensors.values() if tensor.storage}.values()
    )
    if run.broken is None:
        contents.value = run.value
        _name_tensors(run.value, tensors, contents)
    return contents


def _scan(part: FileBytes, contents: Contents, budget: Budget) -> None:
    before = len(contents.findings)
    PickleReader(part, contents, budget).run()
    contents.findings[before:] = [one for one in contents.findings[before:] if one.kind != CORRUPT]


def _checksum_fits(header: bytes) -> bool:
    """POSIX ustar: the sum of all bytes of the header, its own field taken as spaces."""
    field = header[148:156].strip(b" \0")
    if not field or not all(character in b"01234567" for character in field):
        return False
    return int(field, 8) == sum(header[:148]) + 8 * 32 + sum(header[156:])


def _list_members(file: FileBytes, members: dict[str, FileBytes], contents: Contents) -> None:
    position = 0
    for _ in range(_MOST_MEMBERS):
        if file.length - position < _BLOCK_BYTES:
            raise Malformed(f"{file.name}: the tar ends without its closing block: it was cut short")
        header = file.read(position, _BLOCK_BYTES)
        if not header.strip(b"\0"):
            _check_padding(file, position, contents)
            return
        if not _checksum_fits(header):
            raise Malformed(f"{file.name}: a damaged tar header at byte {position:,}")
        name = header[:100].split(b"\0")[0].decode("utf-8", "replace").removeprefix("./")
        shown = printable(name, limit=60)
        size = header[124:136].strip(b" \0")
        if not all(character in b"01234567" for character in size):
            raise Malformed(f"{file.name}: {shown}: a size that is no octal number")
        size_bytes = int(size or b"0", 8)
        kind = header[156:157]
        if kind not in (b"0", b"\0", b"5"):
            contents.unsafe(f"{file.name}: {shown}: a tar member of type {kind!r}; torch would extract it")
        elif name.startswith("/") or ".." in name.split("/"):
            contents.unsafe(f"{file.name}: {shown}: a tar member that leads out of the folder it is extracted to")
        if kind != b"5":
            if name in members:
                contents.corrupt(f"{file.name}: {shown}: two tar members have this name")
                name = f"{name}#{position}"
            members[name] = file.part(position + _BLOCK_BYTES, size_bytes, f"{file.name}:{shown}")
        position += _BLOCK_BYTES + -(-size_bytes // _BLOCK_BYTES) * _BLOCK_BYTES
    raise Malformed(f"{file.name}: more than {_MOST_MEMBERS} tar members")


def _check_padding(file: FileBytes, position: int, contents: Contents) -> None:
    """After the closing block come zeros alone: readers that start at a file's end would find another archive there."""
    left = file.length - position
    if left > _LONGEST_PADDING_BYTES or file.read(position, left).strip(b"\0"):
        contents.corrupt(f"{file.name}: {left - _BLOCK_BYTES:,} bytes after the end of the tar")


@dataclass
class _Cursor:
    """Takes pickles and packed numbers in turn from one member."""

    reader: PickleReader
    position: int = 0

    def pickle(self) -> Any:
        run = self.reader.run(self.position)
        if run.broken is not None:
            raise Malformed(f"{self.reader.source.name} breaks off")
        self.position = run.end
        return run.value

    def count(self) -> int:
        value = self.pickle()
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_ENTRIES:
            raise Malformed(f"{self.reader.source.name}: no sound count of entries")
        return value

    def numbers(self, layout: str) -> tuple[int, ...]:
        size = struct.calcsize(layout)
        data = self.reader.source.read(self.position, size)
        self.position += size
        return struct.unpack(layout, data)


def _read_storages(reader: PickleReader) -> dict[Any, tuple[Storage, ElementType]]:
    cursor = _Cursor(reader)
    storages: dict[Any, tuple[Storage, ElementType]] = {}
    for _ in range(cursor.count()):
        entry = cursor.pickle()
        if not isinstance(entry, tuple) or len(entry) != 3 or not isinstance(entry[0], int | str):
            raise Malformed("a storage without key, place and class")
        element_type = class_type(entry[2])
        (elements,) = cursor.numbers("<q")
        size_bytes = element_type.bytes_for(elements)
        name = f"storage {printable(str(entry[0]), limit=60)}"
        part = reader.source.part(cursor.position, size_bytes, name)
        storages[entry[0]] = Storage(name, size_bytes, StoredBytes(part, size_bytes)), element_type
        cursor.position += size_bytes
    for view in _views(cursor.pickle()):
        key, root, offset, elements = view
        if root not in storages:
            raise Malformed("a view of a storage that is not there")
        whole, element_type = storages[root]
        start, size_bytes = element_type.bytes_for(offset), element_type.bytes_for(elements)
        if whole.stored is None or start < 0 or size_bytes < 0 or start + size_bytes > whole.size_bytes:
            raise Malformed("a view that reaches past its storage")
        storages[key] = (
            Storage(f"{whole.name}[{start}:]", size_bytes, whole.stored.part_of(start, size_bytes)),
            element_type,
        )
    return storages


def _views(value: Any) -> list[tuple[Any, ...]]:
    views = value if isinstance(value, list) else []
    if not all(
        isinstance(view, tuple) and len(view) == 4 and all(isinstance(part, int) for part in view) for view in views
    ):
        raise Malformed("a list of views that are none")
    return views


def _read_tensors(reader: PickleReader, storages: dict[Any, tuple[Storage, ElementType]]) -> dict[Any, Tensor]:
    cursor = _Cursor(reader)
    tensors: dict[Any, Tensor] = {}
    for _ in range(cursor.count()):
        entry = cursor.pickle()
        if not isinstance(entry, tuple) or len(entry) != 3 or not isinstance(entry[0], int | str):
            raise Malformed("a tensor without key, storage and class")
        if not isinstance(entry[1], int | str) or entry[1] not in storages:
            raise Malformed(f"tensor {printable(str(entry[0]), limit=60)}: its storage is not in the file")
        storage, element_type = storages[entry[1]]
        dimensions, _ = cursor.numbers("<ii")
        if not 0 <= dimensions <= MAX_DIMENSIONS:
            raise Malformed(f"a tensor of {dimensions} dimensions")
        shape, stride = cursor.numbers(f"<{dimensions}q"), cursor.numbers(f"<{dimensions}q")
        (offset,) = cursor.numbers("<q")
        tensor = Tensor("", element_type, shape, stride, offset, storage)
        if min((0, offset, *shape, *stride)) < 0 or element_type.bytes_for(tensor.reach) > storage.size_bytes:
            raise Malformed(f"tensor {printable(str(entry[0]), limit=60)} reaches past its storage")
        tensors[entry[0]] = tensor
    return tensors


def _name_tensors(value: Any, tensors: dict[Any, Tensor], contents: Contents) -> None:
    """Names the tensors that the pickle refers to by persistent ids."""
    waiting: list[tuple[str, str, Any]] = [("", "", value)]
    seen: set[int] = set()
    while waiting:
        name, container, found = waiting.pop()
        if isinstance(found, Persistent):
            key = found.identity
            key = int(key) if isinstance(key, str) and key.isdigit() else key
            tensor = tensors.get(key) if isinstance(key, int | str) else None
            if tensor is None:
                contents.corrupt(f"tensor {printable(name)} is not in the file")
            else:
                contents.tensors.append(
                    Tensor(
                        name,
                        tensor.element_type,
                        tensor.shape,
                        tensor.stride,
                        tensor.offset,
                        tensor.storage,
                        container=container,
                    )
                )
        elif isinstance(found, Dictionary | list | tuple) and id(found) not in seen:
            seen.add(id(found))
            pairs = found.pairs() if isinstance(found, Dictionary) else list(enumerate(found))
            waiting += [
                (f"{name}.{key_text(key)}" if name else key_text(key), name, one) for key, one in reversed(pairs)
            ]
