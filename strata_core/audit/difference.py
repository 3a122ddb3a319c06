"""Compares the tensors of two checkpoints by name, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from strata_core.audit.elements import decode, reading_order, stored_chunks
from strata_core.audit.findings import Malformed
from strata_core.audit.inspection import open_contents
from strata_core.audit.opening import Opened, check_exists
from strata_core.audit.report import stats_key
from strata_core.audit.tensors import Tensor
from strata_core.observer import SILENT, Observer

_ASSEMBLED_BYTES = 64 << 20

Array = np.ndarray[Any, Any]


@dataclass
class Difference:
    """What `other` has that `path` has not (added), the reverse (removed), and what changed, all by tensor name.

    `changed` has for each tensor the count of elements whose bits differ, the largest absolute difference (None where
    there is none to tell, as with NaN) and the index of the first. `not_compared` says why some could not be.
    """

    other: str
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    reshaped: list[dict[str, Any]] = field(default_factory=list)
    retyped: list[dict[str, Any]] = field(default_factory=list)
    changed: list[dict[str, Any]] = field(default_factory=list)
    not_compared: list[dict[str, Any]] = field(default_factory=list)
    equal: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain values for json.dumps."""
        return asdict(self)


def compare_checkpoints(path: str | Path, other: str | Path, *, observer: Observer = SILENT) -> Difference:
    """How the tensors of `other` differ from those of `path`.

    Raises:
        UsageError: one of them is not there.
        DataError: one of them may not be read.
    """
    check_exists(Path(path))
    check_exists(Path(other))
    difference = Difference(str(other))
    with Opened() as opened:
        old = _by_name(open_contents(opened, Path(path)).tensors)
        new = _by_name(open_contents(opened, Path(other)).tensors)
        difference.added = [name for name in new if name not in old]
        difference.removed = [name for name in old if name not in new]
        common = [name for name in old if name in new]
        observer.stage_started("comparing tensors", sum(old[name].size_bytes for name in common), "bytes")
        done = 0
        for name in common:
            _compare(name, old[name], new[name], difference)
            done += old[name].size_bytes
            observer.stage_advanced(done, name)
        observer.stage_finished()
    return difference


def _by_name(tensors: list[Tensor]) -> dict[str, Tensor]:
    """Tensors by name (with the file in front where names repeat); sparse ones by their components."""
    found: dict[str, Tensor] = {}
    for tensor in tensors:
        for piece in tensor.components or [tensor]:
            inner = f".{piece.name}" if tensor.components else ""
            name = tensor.name + inner
            found[name if name not in found else stats_key(tensor) + inner] = piece
    return found


def _compare(name: str, old: Tensor, new: Tensor, difference: Difference) -> None:
    if old.element_type != new.element_type:
        difference.retyped.append({"name": name, "old": old.element_type.name, "new": new.element_type.name})
    if old.shape != new.shape:
        difference.reshaped.append({"name": name, "old": list(old.shape), "new": list(new.shape)})
    if old.shape != new.shape or old.element_type != new.element_type:
        return
    try:
        change = _changed_elements(old, new)
    except Malformed as error:
        difference.not_compared.append({"name": name, "reason": error.message})
        return
    if change is None:
        difference.equal += 1
    else:
        difference.changed.append({"name": name, **change})


def _changed_elements(old: Tensor, new: Tensor) -> dict[str, Any] | None:
    item = max(old.element_type.bits // 8, 1)
    count = position = 0
    first: int | None = None
    largest = -1.0
    for left, right in _in_step(row_major_chunks(old), row_major_chunks(new)):
        differs = (left.reshape(-1, item) != right.reshape(-1, item)).any(axis=1)
        found = int(np.count_nonzero(differs))
        if found:
            if first is None:
                first = position + int(np.argmax(differs))
            count += found
            apart = _largest_difference(left, right, differs, old, new)
            largest = max(largest, apart)
        position += differs.size
    if first is None:
        return None
    index = [int(part) for part in np.unravel_index(first, old.shape)] if old.shape else []
    return {"count": count, "largest_difference": largest if largest >= 0 else None, "first_index": index}


def _largest_difference(left: Array, right: Array, differs: Array, old: Tensor, new: Tensor) -> float:
    """Over the elements that differ and are numbers on both sides; -1 when there are none."""
    first = decode(left, old.element_type, little_endian=_little(old)).astype(np.float64)
    second = decode(right, new.element_type, little_endian=_little(new)).astype(np.float64)
    with np.errstate(invalid="ignore"):
        apart = np.abs(first - second)[np.repeat(differs, first.size // differs.size)]
    known = apart[~np.isnan(apart)]
    return float(known.max()) if known.size else -1.0


def _little(tensor: Tensor) -> bool:
    pieces = tensor.stored_pieces()
    return all(piece.storage.little_endian for piece in pieces if piece.storage)


def row_major_chunks(tensor: Tensor) -> Iterator[Array]:
    """The bytes of a tensor's elements in row-major order, as arrays of uint8.

    Raises:
        Malformed: its data is not there, or it is stored in another order and is larger than 64 MiB.
    """
    pieces = tensor.parts or [((0,) * len(tensor.shape), tensor)]
    if tensor.elements and not all(piece.storage and piece.storage.stored for _, piece in pieces):
        raise Malformed("its elements are not stored in a form that can be compared")
    pieces = sorted(pieces, key=lambda pair: pair[0])
    if all(piece.is_contiguous and piece.shape[1:] == tensor.shape[1:] for _, piece in pieces):
        for _, piece in pieces:
            yield from stored_chunks(piece)
    elif tensor.element_type.bytes_for(tensor.elements) > _ASSEMBLED_BYTES:
        raise Malformed("it is not stored row by row, and too large to rearrange")
    else:
        yield _assembled(tensor, pieces)


def _assembled(tensor: Tensor, pieces: list[tuple[tuple[int, ...], Tensor]]) -> Array:
    item = tensor.element_type.bits // 8
    whole = np.empty((*tensor.shape, item), np.uint8)
    for offsets, piece in pieces:
        order = reading_order(piece)
        data = np.concatenate(list(stored_chunks(piece))).reshape(*order.shape, item)
        ascending = sorted(range(len(order.dimensions)), key=lambda place: order.dimensions[place])
        data = data.transpose(*ascending, len(order.dimensions))
        kept = [size if dimension in order.dimensions else 1 for dimension, size in enumerate(piece.shape)]
        place = tuple(slice(start, start + size) for start, size in zip(offsets, piece.shape, strict=True))
        whole[place] = data.reshape(*kept, item)
    return whole.reshape(-1)


def _in_step(left: Iterator[Array], right: Iterator[Array]) -> Iterator[tuple[Array, Array]]:
    """Pairs of chunks of equal size from two streams that are cut differently."""
    first = second = np.empty(0, np.uint8)
    while True:
        first = next(left, first) if not first.size else first
        second = next(right, second) if not second.size else second
        size = min(first.size, second.size)
        if not size:
            return
        yield first[:size], second[:size]
        first, second = first[size:], second[size:]
