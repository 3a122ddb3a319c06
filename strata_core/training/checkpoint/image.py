"""A safetensors file laid out in host memory: tensors are copied to where they will lie in the file.

The format (https://github.com/huggingface/safetensors): 8 bytes little-endian header length, a JSON header, then the
tensors' bytes, row-major and little-endian, without gaps.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from strata_core.training.checkpoint.copying import copy_all
from strata_core.training.checkpoint.writing import FileContents

_BLOCK_BYTES = 4096  # the largest logical block of usual devices, and a page
_DATA_ALIGNMENT_BYTES = 64

_FORMAT_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.complex64: "C64",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


@dataclass(frozen=True)
class Layout:
    """Where everything lies in a file: `header` first, then each named tensor at its offset from the file's start."""

    header: bytes
    offsets: Mapping[str, int]
    file_bytes: int


def lay_out(tensors: Mapping[str, Tensor]) -> Layout:
    """The layout of a safetensors file, a function of the names, dtypes and shapes alone.

    Wide elements come first, then names in code-point order, so that every tensor is aligned to its element size.

    Raises:
        TypeError: a dtype that the format has no name for.
    """
    entries: dict[str, dict[str, Any]] = {"__metadata__": {"format": "pt"}}
    starts = {}
    position = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0])):
        if tensor.dtype not in _FORMAT_NAMES:
            raise TypeError(f"{name}: safetensors cannot hold {tensor.dtype}")
        starts[name] = position
        position += tensor.nbytes
        entries[name] = {
            "dtype": _FORMAT_NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [starts[name], position],
        }
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _DATA_ALIGNMENT_BYTES)
    header = len(text).to_bytes(8, "little") + text
    offsets = {name: len(header) + start for name, start in starts.items()}
    return Layout(header, offsets, len(header) + position)


class HostImage:
    """A host buffer that takes the image of one file after another, grown when a file is larger than any before.

    The buffer is page-aligned, and page-locked where a tensor comes from a CUDA device, so that copies from there run
    aside of the device's work.
    """

    def __init__(self) -> None:
        self._buffer: mmap.mmap | None = None
        self._locked_address: int | None = None
        self._file_bytes = 0

    def fill(self, tensors: Mapping[str, Tensor]) -> Callable[[], None]:
        """Copies the tensors to their places; the caller may change them as soon as this returns.

        Non-contiguous tensors and views are stored as the elements they show, never with their whole storage.

        Returns:
            A function that waits until the image is complete (copies from a CUDA device are only queued here, in order
            with the device's later work).
        """
        layout = lay_out(tensors)
        devices = {tensor.device for tensor in tensors.values() if tensor.is_cuda}
        buffer = self._reserved(layout.file_bytes, page_locked=bool(devices))
        self._file_bytes = layout.file_bytes
        buffer[: len(layout.header)] = layout.header
        image = torch.frombuffer(buffer, dtype=torch.uint8)
        copy_all((_place(image, layout.offsets[name], tensor), tensor.detach()) for name, tensor in tensors.items())
        events = []
        for device in devices:
            event = torch.cuda.Event()
            event.record(torch.cuda.current_stream(device))
            events.append(event)

        def wait_until_complete() -> None:
            for event in events:
                event.synchronize()

        return wait_until_complete

    def contents(self) -> FileContents:
        """The file as filled last; a view of the buffer, not a copy."""
        assert self._buffer is not None, "nothing was filled in yet"
        data = memoryview(self._buffer)[: _rounded_up(self._file_bytes)]
        return FileContents(data, self._file_bytes, in_blocks=True)

    def _reserved(self, size_bytes: int, *, page_locked: bool) -> mmap.mmap:
        wanted_bytes = _rounded_up(size_bytes)
        if self._buffer is None or len(self._buffer) < wanted_bytes:
            self._release_lock()
            self._buffer = _page_aligned_buffer(wanted_bytes)
        if page_locked and self._locked_address is None:
            self._lock(self._buffer)
        return self._buffer

    def _lock(self, buffer: mmap.mmap) -> None:
        """Copies work without the lock too, only not aside, so a refusal by the driver is no error."""
        address = torch.frombuffer(buffer, dtype=torch.uint8).data_ptr()
        if int(torch.cuda.cudart().cudaHostRegister(address, len(buffer), 0)) == 0:
            self._locked_address = address

    def _release_lock(self) -> None:
        if self._locked_address is not None:
            torch.cuda.cudart().cudaHostUnregister(self._locked_address)
            self._locked_address = None


def _place(image: Tensor, start: int, tensor: Tensor) -> Tensor:
    """The part of an image's bytes that takes a tensor, with the tensor's dtype and shape."""
    return image[start : start + tensor.nbytes].view(tensor.dtype).view(tensor.shape)


def _page_aligned_buffer(size_bytes: int) -> mmap.mmap:
    """Anonymous memory. Processes forked later do not get it: copy-on-write would move its pages away from under a
    device or a disk that is reading them."""
    buffer = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for advice in ("MADV_HUGEPAGE", "MADV_DONTFORK"):
        if hasattr(mmap, advice):
            buffer.madvise(getattr(mmap, advice))
    return buffer


def _rounded_up(size_bytes: int) -> int:
    return max(_BLOCK_BYTES, -(-size_bytes // _BLOCK_BYTES) * _BLOCK_BYTES)
