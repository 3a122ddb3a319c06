"""Folders that torch.distributed.checkpoint writes: a pickled `.metadata` and shard files full of nested archives.

Layout: torch/distributed/checkpoint/metadata.py and filesystem.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from strata_core.audit.dtypes import ElementType
from strata_core.audit.findings import Malformed, printable
from strata_core.audit.opening import FileBytes, Folder
from strata_core.audit.pickles.symbols import Dictionary, Global, Made
from strata_core.audit.reading import Budget, Contents, PickleReader
from strata_core.audit.tensor_values import dtype_of, sizes_of
from strata_core.audit.tensors import Tensor

METADATA_NAME = ".metadata"
_PATHS = frozenset(
    Global(module, name)
    for module in ("pathlib", "pathlib._local")
    for name in ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath")
)
"""The metadata records the folder it was written to."""
_METADATA_MODULE = "torch.distributed.checkpoint.metadata"


@dataclass(frozen=True)
class _Item:
    """A stretch of a shard: the bytes of one chunk of a tensor, or of one object."""

    name: str
    offsets: tuple[int, ...] | None
    file: str
    start: int
    size: int

    @property
    def shown(self) -> str:
        where = "" if self.offsets is None else f" at {list(self.offsets)}"
        return f"{printable(self.name)}{where}"


def read_distributed(folder: Folder, budget: Budget) -> Contents:
    """Reads the metadata, then every nested archive that it points to, and compares the two."""
    contents = Contents("torch distributed checkpoint")
    try:
        source = folder.file(METADATA_NAME)
        run = PickleReader(source, contents, budget, _PATHS).run()
        if run.broken is not None:
            return contents
        if run.end < source.length:
            contents.corrupt(f"{METADATA_NAME}: {source.length - run.end:,} bytes after the end of the pickle")
        _read_metadata(run.value, folder, contents, budget)
    except Malformed as error:
        contents.corrupt(error.message)
    return contents


def _read_metadata(value: Any, folder: Folder, contents: Contents, budget: Budget) -> None:
    if not isinstance(value, Made) or not value.is_made_by(_METADATA_MODULE, "Metadata"):
        raise Malformed(f"{METADATA_NAME}: holds no metadata of a distributed checkpoint")
    described = value.attribute("state_dict_metadata")
    stored = value.attribute("storage_data")
    if not isinstance(described, Dictionary) or not isinstance(stored, Dictionary):
        raise Malformed(f"{METADATA_NAME}: without state_dict_metadata or storage_data")
    version = value.attribute("version")
    if isinstance(version, str):
        contents.details["version"] = version
    items = _read_items(stored)
    reader = _ItemReader(folder, contents, budget)
    read = {(item.name, item.offsets): reader.read(item) for item in items}
    containers = _containers(value.attribute("planner_data"))
    for name, entry in described.pairs():
        if not isinstance(name, str) or not isinstance(entry, Made):
            raise Malformed(f"{METADATA_NAME}: an entry without name or description")
        if entry.is_made_by(_METADATA_MODULE, "TensorStorageMetadata"):
            try:
                contents.tensors.append(_tensor(name, entry, read, containers.get(name, "")))
            except Malformed as error:
                contents.corrupt(f"tensor {printable(name)}: {error.message}")
        elif (name, None) not in read:
            contents.corrupt(f"object {printable(name)}: no shard holds it")
        else:
            _note_object(name, read[name, None], contents)
    reader.note_unused()


def _note_object(name: str, found: Contents | None, contents: Contents) -> None:
    if found is not None and isinstance(found.value, int | float | str | bool):
        contents.details.setdefault("objects", {})[name] = found.value


def _read_items(stored: Dictionary) -> list[_Item]:
    items = []
    for index, info in stored.pairs():
        if not isinstance(index, Made) or not isinstance(info, Made):
            raise Malformed(f"{METADATA_NAME}: storage_data of another kind than a file system's")
        name, offset = index.attribute("fqn"), index.attribute("offset")
        file, start, size = (info.attribute(key) for key in ("relative_path", "offset", "length"))
        if not isinstance(name, str) or not isinstance(file, str) or not _is_count(start) or not _is_count(size):
            raise Malformed(f"{METADATA_NAME}: an item without name, file, offset or length")
        items.append(_Item(name, None if offset is None else sizes_of(offset), file, start, size))
    return items


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


class _ItemReader:
    """Reads nested archives out of shard files, each file opened once."""

    def __init__(self, folder: Folder, contents: Contents, budget: Budget) -> None:
        self.folder = folder
        self.contents = contents
        self.budget = budget
        self.files: dict[str, FileBytes | None] = {}

    def read(self, item: _Item) -> Contents | None:
        if item.file not in self.files:
            try:
                self.files[item.file] = self.folder.file(item.file)
            except Malformed as error:
                self.files[item.file] = None
                self.contents.corrupt(f"{error.message} ({item.shown} lies in it)")
        file = self.files[item.file]
        if file is None:
            return None
        try:
            part = file.part(item.start, item.size, f"{file.name}[{item.shown}]")
        except Malformed as error:
            self.contents.corrupt(error.message)
            return None
        found = self.budget.nested(part)
        self.contents.findings += found.findings
        self.contents.globals += found.globals
        self.contents.storages += found.storages
        self.contents.pending += found.pending
        return found

    def note_unused(self) -> None:
        unused = [name for name in self.folder.names() if name.endswith(".distcp") and name not in self.files]
        if unused:
            self.contents.notes.append(f"{len(unused)} shard files that the metadata does not mention")


def _tensor(
    name: str, entry: Made, read: dict[tuple[str, tuple[int, ...] | None], Contents | None], container: str
) -> Tensor:
    element_type = _properties_type(entry.attribute("properties"))
    shape = sizes_of(entry.attribute("size"))
    chunks = entry.attribute("chunks")
    tensor = Tensor(name, element_type, shape, container=container)
    covered = 0
    for chunk in chunks if isinstance(chunks, list) else []:
        if not isinstance(chunk, Made):
            raise Malformed("a chunk without offsets and sizes")
        offsets, sizes = sizes_of(chunk.attribute("offsets")), sizes_of(chunk.attribute("sizes"))
        if not (len(offsets) == len(sizes) == len(shape)) or any(
            start + size > whole for start, size, whole in zip(offsets, sizes, shape, strict=True)
        ):
            raise Malformed(f"a chunk of {list(sizes)} at {list(offsets)} in a shape of {list(shape)}")
        covered += Tensor("", element_type, sizes).elements
        if (name, offsets) not in read:
            raise Malformed(f"no shard holds its chunk at {list(offsets)}")
        piece = _chunk(read[name, offsets], sizes, element_type, offsets)
        if piece is not None:
            tensor.parts.append((offsets, piece))
    if covered != tensor.elements:
        raise Malformed(f"its chunks have {covered:,} elements where {tensor.elements:,} are due")
    return tensor


def _chunk(
    found: Contents | None, sizes: tuple[int, ...], element_type: ElementType, offsets: tuple[int, ...]
) -> Tensor | None:
    if found is None or not found.tensors:
        if found is not None and not found.findings:
            raise Malformed(f"the archive of its chunk at {list(offsets)} holds no tensor")
        return None
    piece = found.tensors[0]
    if piece.shape != sizes or piece.element_type != element_type:
        raise Malformed(
            f"its chunk at {list(offsets)} is stored as {piece.element_type.name} {list(piece.shape)} "
            f"and described as {element_type.name} {list(sizes)}"
        )
    return piece


def _properties_type(properties: Any) -> ElementType:
    state = properties.states[-1] if isinstance(properties, Made) and properties.states else None
    if isinstance(state, tuple) and state:
        return dtype_of(state[0])
    if isinstance(properties, Made) and isinstance(properties.attribute("dtype"), Global):
        return dtype_of(properties.attribute("dtype"))
    raise Malformed("described without its properties")


def _containers(planner_data: Any) -> dict[str, str]:
    """For each flattened name the name of the dict that held it, from the path that the planner recorded."""
    containers: dict[str, str] = {}
    for name, path in planner_data.pairs() if isinstance(planner_data, Dictionary) else []:
        if isinstance(name, str) and isinstance(path, tuple) and path:
            containers[name] = ".".join(str(key) for key in path[:-1] if isinstance(key, str | int))
    return containers
