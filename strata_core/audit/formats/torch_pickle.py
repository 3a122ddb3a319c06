"""From a torch pickle and its storages to named tensors: shared by the zip, legacy and raw layouts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from strata_core.audit.dtypes import STORAGE_CLASS_TYPES, ElementType
from strata_core.audit.findings import Malformed, printable
from strata_core.audit.pickles.symbols import Global, Made, Persistent, PickleRun, Stretch
from strata_core.audit.reading import Contents, PickleReader
from strata_core.audit.tensor_values import TensorValues, named_tensors, storage_identity
from strata_core.audit.tensors import Storage, Tensor

FindStored = Callable[[str, int], Storage]
"""Takes a storage's key and the bytes it must have, and gives the storage or raises Malformed."""

_MOST_NAMES = 500_000
_DEVICE = re.compile(r"[a-z][a-z0-9_]*(:[0-9]+)?")


def read_values(run: PickleRun, reader: PickleReader, find_stored: FindStored, contents: Contents) -> None:
    """Fills in the value and the named tensors of a pickle that ran to its end, and checks every tensor it rebuilds."""
    values = TensorValues(lambda value: _find_storage(value, reader, find_stored))
    contents.value = run.value
    read: dict[int, Tensor | None] = {}

    def read_once(made: Made, name: str) -> Tensor | None:
        if id(made) not in read:
            try:
                read[id(made)] = values.read(made)
            except Malformed as error:
                read[id(made)] = None
                contents.corrupt(f"{reader.source.name}: {name}: {error.message}")
        return read[id(made)]

    for names, (name, container, made) in enumerate(named_tensors(run.value, values)):
        if names >= _MOST_NAMES:
            raise Malformed(f"{reader.source.name}: more than {_MOST_NAMES:,} names of tensors")
        tensor = read_once(made, f"tensor {printable(name) or '(unnamed)'}")
        if tensor is not None:
            contents.tensors.append(_named_copy(tensor, name, container))
    for identity in run.persistent_ids:
        is_class = isinstance(identity, tuple) and identity[:1] == ("module",)
        if not is_class and storage_identity(Persistent(identity)) is None:
            contents.corrupt(f"{reader.source.name}: asks its loader for something that is no storage")
            break
    for event in run.events:
        made = event.subject
        if event.kind == "call" and values.is_tensor(made) and id(made) not in values.seen:
            read_once(made, "a tensor that no name leads to")
    if storage_identity(run.value) is not None or _is_nested_storage(run.value):
        contents.bare_storage = _find_storage(run.value, reader, find_stored)


def _is_nested_storage(value: Any) -> bool:
    return isinstance(value, Made) and value.is_made_by("torch.storage", "_load_from_bytes")


def _named_copy(tensor: Tensor, name: str, container: str) -> Tensor:
    return Tensor(
        name or "(tensor)",
        tensor.element_type,
        tensor.shape,
        tensor.stride,
        tensor.offset,
        tensor.storage,
        tensor.layout,
        container=container,
        components=tensor.components,
    )


def _find_storage(value: Any, reader: PickleReader, find_stored: FindStored) -> tuple[Storage, ElementType]:
    if _is_nested_storage(value):
        held = value.arguments[0] if isinstance(value.arguments, tuple) and value.arguments else None
        nested = reader.nested(held) if isinstance(held, Stretch) else None
        if nested is None or nested.bare_storage is None:
            raise Malformed("its storage is loaded from bytes that hold none")
        return nested.bare_storage
    identity = storage_identity(value)
    if identity is None:
        raise Malformed("its storage is none")
    _, storage_class, key, location, elements, *view = identity
    element_type = class_type(storage_class)
    if isinstance(elements, bool) or not isinstance(elements, int) or not 0 <= elements < 1 << 63:
        raise Malformed("its storage has no count of elements")
    if not isinstance(key, str | int):
        raise Malformed("its storage has no key")
    if not isinstance(location, str) or not _DEVICE.fullmatch(location):
        shown = printable(location, limit=40) if isinstance(location, str) else f"a {type(location).__name__}"
        raise Malformed(f"its storage lies on no device: {shown}")
    if view and view[0] is not None:
        return _view_of(view[0], str(key), element_type, elements, find_stored), element_type
    size_bytes = element_type.bytes_for(elements)
    if location == "meta":
        return Storage(str(key), size_bytes, None), element_type
    return find_stored(str(key), size_bytes), element_type


def _view_of(view: Any, key: str, element_type: ElementType, elements: int, find_stored: FindStored) -> Storage:
    """A part of a storage, as legacy files write it: (key, offset, elements)."""
    if not isinstance(view, tuple) or len(view) != 3 or not all(isinstance(number, int) for number in view[1:]):
        raise Malformed("a view of a storage without its offset and size")
    whole = find_stored(key, element_type.bytes_for(elements))
    start, size = element_type.bytes_for(view[1]), element_type.bytes_for(view[2])
    if start < 0 or size < 0 or start + size > whole.size_bytes:
        raise Malformed(f"a view of bytes {start:,} to {start + size:,} of a storage of {whole.size_bytes:,} bytes")
    return Storage(f"{whole.name}[{start}:{start + size}]", size, whole.stored and whole.stored.part_of(start, size))


def class_type(storage_class: Any) -> ElementType:
    """The element type of a storage class that a pickle names.

    Raises:
        Malformed: it is no storage class of torch's.
    """
    if isinstance(storage_class, Global) and storage_class.name in STORAGE_CLASS_TYPES:
        return STORAGE_CLASS_TYPES[storage_class.name]
    shown = printable(str(storage_class), limit=60) if isinstance(storage_class, Global) else "no class at all"
    raise Malformed(f"its storage class is unknown: {shown}")
