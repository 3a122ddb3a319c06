"""Tensors as a checkpoint describes them: type, shape, strides, and the storage that holds their elements."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from strata_core.audit.dtypes import ElementType
from strata_core.audit.findings import Malformed
from strata_core.audit.opening import FileBytes

MAX_DIMENSIONS = 64
_PIECE_BYTES = 1 << 20


class StoredBytes:
    """Where the bytes of a storage lie: a part of a file, as it is or deflated."""

    __slots__ = ("deflated", "part", "size_bytes")

    def __init__(self, part: FileBytes, size_bytes: int, *, deflated: bool = False) -> None:
        self.part = part
        self.size_bytes = size_bytes
        self.deflated = deflated

    def chunks(self, start: int, size: int) -> Iterator[bytes]:
        """Bytes from `start` on, in pieces of about 1 MiB; deflated ones are inflated from their beginning.

        Raises:
            Malformed: the data does not inflate to the announced size, or the file ended early.
        """
        if not self.deflated:
            yield from self.part.chunks(start, size)
            return
        position = 0
        for piece in inflated(self.part, self.size_bytes):
            first, last = max(start - position, 0), min(start + size - position, len(piece))
            if first < last:
                yield piece[first:last]
            position += len(piece)

    def part_of(self, start: int, size: int) -> StoredBytes:
        """A stretch of it, for storages that are not deflated."""
        return StoredBytes(self.part.part(start, size, self.part.name), size)


def inflated(part: FileBytes, size_bytes: int) -> Iterator[bytes]:
    """The inflated bytes of a raw deflate stream, in pieces of at most 1 MiB.

    Raises:
        Malformed: it is no deflate stream, or does not inflate to exactly `size_bytes`.
    """
    import zlib

    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    done = 0
    for raw in part.chunks(0, part.length):
        waiting = raw
        full = True
        while waiting or full:
            try:
                piece = inflater.decompress(waiting, _PIECE_BYTES)
            except zlib.error as error:
                raise Malformed(f"{part.name}: its compressed data is damaged ({error})") from error
            waiting = inflater.unconsumed_tail
            full = len(piece) == _PIECE_BYTES
            done += len(piece)
            if done > size_bytes:
                raise Malformed(f"{part.name}: inflates to more than the announced {size_bytes:,} bytes")
            yield piece
    if done != size_bytes or not inflater.eof:
        raise Malformed(f"{part.name}: inflates to {done:,} bytes where {size_bytes:,} are announced")


@dataclass(eq=False, slots=True)
class Storage:
    """A run of bytes that tensors are views of. `stored` is None for a storage without data (a meta tensor's).

    `crc32` is what the container recorded, if anything.
    """

    name: str
    size_bytes: int
    stored: StoredBytes | None
    crc32: int | None = None
    little_endian: bool = True


@dataclass(eq=False, slots=True)
class Tensor:
    """One name in a checkpoint and the elements it stands for.

    `stride` and `offset` are in elements. `container` is the part of the name that belongs to the dict which holds
    it. `parts` has the pieces of a tensor that is written in several, each with its offsets, and `components` the
    tensors that a sparse, nested or wrapping one consists of (indices and values, ...); neither has a storage of
    its own.
    """

    name: str
    element_type: ElementType
    shape: tuple[int, ...]
    stride: tuple[int, ...] = ()
    offset: int = 0
    storage: Storage | None = None
    layout: str = "strided"
    file: str | None = None
    container: str = ""
    parts: list[tuple[tuple[int, ...], Tensor]] = field(default_factory=list)
    components: list[Tensor] = field(default_factory=list)

    @property
    def elements(self) -> int:
        """How many elements the shape has."""
        return math.prod(self.shape)

    @property
    def reach(self) -> int:
        """One past the furthest element of the storage that the tensor touches."""
        if self.elements == 0:
            return self.offset
        return self.offset + 1 + sum((size - 1) * step for size, step in zip(self.shape, self.stride, strict=True))

    @property
    def distinct_elements(self) -> int:
        """How many different elements of the storage it can touch: expanded dimensions count once."""
        if self.components:
            return self.components[-1].distinct_elements
        if self.storage is None:
            return self.elements
        spread = math.prod(size for size, step in zip(self.shape, self.stride, strict=True) if step or not size)
        return min(spread, self.reach - self.offset)

    @property
    def size_bytes(self) -> int:
        """Bytes its elements take, and no more than its storage has."""
        if self.components:
            return sum(component.size_bytes for component in self.components)
        size = self.element_type.bytes_for(self.elements)
        return size if self.storage is None else min(size, self.storage.size_bytes)

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements lie one after another in row-major order."""
        return self.elements == 0 or all(
            size == 1 or step == due
            for size, step, due in zip(self.shape, self.stride, row_major(self.shape), strict=True)
        )

    @property
    def overlaps_itself(self) -> bool:
        """Whether two of its positions are the same element (an expanded tensor)."""
        return self.storage is not None and self.distinct_elements < self.elements

    def stored_pieces(self) -> list[Tensor]:
        """The tensors with storages that hold its elements: itself, its parts, or its components."""
        inner = [part for _, part in self.parts] or self.components
        return [piece for one in inner for piece in one.stored_pieces()] if inner else [self] if self.storage else []


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of a contiguous tensor."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def distinct_elements(tensors: list[Tensor]) -> int:
    """Elements counted once however many tensors share them (tied weights, views, slices)."""
    total = 0
    by_storage: dict[tuple[int, str], list[Tensor]] = {}
    for tensor in tensors:
        if tensor.storage is None:
            total += tensor.distinct_elements
        else:
            by_storage.setdefault((id(tensor.storage), tensor.element_type.name), []).append(tensor)
    return total + sum(_distinct_in_storage(views) for views in by_storage.values())


def _distinct_in_storage(views: list[Tensor]) -> int:
    if len(views) == 1:
        return views[0].distinct_elements
    different = {(view.offset, view.shape, view.stride): view.distinct_elements for view in views}
    spans = sorted((view.offset, view.reach) for view in views)
    covered = end = 0
    for start, reach in spans:
        covered += max(reach - max(start, end), 0)
        end = max(end, reach)
    return min(covered, sum(different.values()))
