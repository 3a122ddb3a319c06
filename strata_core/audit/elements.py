"""Reads the elements of stored tensors as numpy arrays, in bounded memory.

Arrays are one-dimensional. A tensor that is not contiguous is read in storage order, each element of its storage once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from strata_core.audit.dtypes import ElementType
from strata_core.audit.findings import Malformed
from strata_core.audit.tensors import Tensor, row_major

_LOADED_BYTES = 32 << 20

_INTEGER_TYPES = {"quint8": "uint8", "qint8": "int8", "qint32": "int32", "bool": "uint8"}


@dataclass(frozen=True)
class ReadingOrder:
    """A tensor's dimensions from the largest stride to the smallest, those of size 1 and the expanded ones left out."""

    dimensions: tuple[int, ...]
    shape: tuple[int, ...]
    stride: tuple[int, ...]

    def index(self, position: int, dimension_count: int) -> tuple[int, ...]:
        """The tensor index of the element read at a position."""
        index = [0] * dimension_count
        for dimension, step, size in zip(self.dimensions, row_major(self.shape), self.shape, strict=True):
            index[dimension] = position // step % size
        return tuple(index)


def reading_order(tensor: Tensor) -> ReadingOrder:
    """The order in which `stored_chunks` gives the elements of a tensor."""
    kept = [
        (step, dimension)
        for dimension, (size, step) in enumerate(zip(tensor.shape, tensor.stride, strict=True))
        if size > 1 and step
    ]
    kept.sort(key=lambda pair: (-pair[0], pair[1]))
    return ReadingOrder(
        tuple(dimension for _, dimension in kept),
        tuple(tensor.shape[dimension] for _, dimension in kept),
        tuple(step for step, _ in kept),
    )


def stored_chunks(tensor: Tensor) -> Iterator[np.ndarray[Any, Any]]:
    """The bytes of a tensor's elements in reading order, as arrays of uint8 that end between elements.

    Raises:
        Malformed: the file ended early, or the storage does not inflate.
    """
    order = reading_order(tensor)
    if tensor.elements == 0 or tensor.storage is None:
        return
    if math.prod(order.shape) > tensor.reach - tensor.offset:
        raise Malformed(f"tensor {tensor.name}: its elements overlap, so they are not scanned")
    yield from _walk(tensor, order.shape, order.stride, tensor.offset)


def _walk(
    tensor: Tensor, shape: tuple[int, ...], stride: tuple[int, ...], offset: int
) -> Iterator[np.ndarray[Any, Any]]:
    item = tensor.element_type.bits // 8
    extent = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
    if stride == row_major(shape):
        yield from _aligned(tensor, offset, math.prod(shape))
    elif extent * item <= _LOADED_BYTES:
        data = b"".join(bytes(piece) for piece in _aligned(tensor, offset, extent))
        flat = np.frombuffer(data, np.dtype((np.void, item)))
        view = np.lib.stride_tricks.as_strided(flat, shape, tuple(step * item for step in stride), writeable=False)
        yield np.ascontiguousarray(view).reshape(-1).view(np.uint8)
    else:
        for position in range(shape[0]):
            yield from _walk(tensor, shape[1:], stride[1:], offset + position * stride[0])


def _aligned(tensor: Tensor, offset: int, elements: int) -> Iterator[np.ndarray[Any, Any]]:
    assert tensor.storage is not None
    bits = tensor.element_type.bits
    stored = tensor.storage.stored
    if stored is None:
        return
    item = max(bits // 8, 1)
    start, size = offset * bits // 8, tensor.element_type.bytes_for(elements)
    carried = b""
    for chunk in stored.chunks(start, size):
        data = carried + chunk if carried else chunk
        whole = len(data) // item * item
        carried = data[whole:]
        if whole:
            yield np.frombuffer(data, np.uint8, whole)


def decode(raw: np.ndarray[Any, Any], element_type: ElementType, *, little_endian: bool = True) -> np.ndarray[Any, Any]:
    """Elements as numbers: float32 for floating types up to 32 bits (exactly), float64, or numpy's own integer type.

    Complex numbers and packed pairs of 4-bit floats become two numbers each (see `values_in_element`).

    Raises:
        Malformed: a type whose elements this reader does not decode (6-bit floats).
    """
    name = element_type.name
    order = "<" if little_endian else ">"
    if name in _FLOAT_LAYOUTS:
        return raw.view(order + _FLOAT_LAYOUTS[name]).astype(_FLOAT_LAYOUTS[name], copy=False)
    if name in ("float16", "complex32"):
        codes = raw.view(order + "u2").astype("u2", copy=False)
        if int((codes & np.uint16(0x7FFF)).max(initial=0)) >= 0x7C00:
            return codes.view("f2").astype("f4")
        return _widened(codes.view("i2"), 5, 10, 15)
    if name == "bfloat16":
        wide = raw.view(order + "u2").astype("u4")
        wide <<= np.uint32(16)
        return wide.view("f4")
    if name.startswith("float4"):
        low_first = np.stack((raw & 0xF, raw >> 4), axis=1).reshape(-1)
        return small_float_table(name)[low_first]
    if element_type.kind == "float" and element_type.bits == 8:
        return _eight_bit_floats(raw, name)
    if element_type.kind in ("integer", "boolean") and element_type.bits >= 8:
        spelt = _INTEGER_TYPES.get(name, name)
        layout = spelt if hasattr(np, spelt) else f"uint{element_type.bits}"
        return raw.view(np.dtype(layout).newbyteorder("<" if little_endian else ">"))
    raise Malformed(f"elements of type {name} are not decoded")


def values_in_element(element_type: ElementType) -> int:
    """How many numbers `decode` makes of one element."""
    return 2 if element_type.kind == "complex" or element_type.name.endswith("_x2") else 1


_FLOAT_LAYOUTS = {"float32": "f4", "float64": "f8", "complex64": "f4", "complex128": "f8"}


def _widened(codes: np.ndarray[Any, Any], exponent_bits: int, mantissa_bits: int, bias: int) -> np.ndarray[Any, Any]:
    """Narrow floats, none of them special, as float32: exact, and several times as fast as a table or numpy's halves.

    The signed integer type of `codes` brings the sign to the top bit; the exponent and mantissa are moved to their
    places in a float32, and one multiplication makes up for the other bias (also for subnormal numbers).
    """
    wide = codes.astype(np.int32)
    wide <<= np.int32(23 - mantissa_bits)
    wide &= np.int32(((1 << (23 + exponent_bits)) - 1) - (1 << 31))
    values = wide.view(np.float32)
    values *= np.float32(math.ldexp(1.0, 127 - bias))
    return values


def _eight_bit_floats(raw: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    layout = _SMALL_FLOATS.get(name)
    if layout is None:
        return small_float_table(name)[raw]
    exponent_bits, mantissa_bits, bias, specials = layout
    if specials == "nan at minus zero":
        has_specials = bool((raw == 0x80).any())
    else:
        has_specials = int((raw & np.uint8(0x7F)).max(initial=0)) >= (0x7F if specials == "nan at all ones" else 0x7C)
    if has_specials:
        return small_float_table(name)[raw]
    return _widened(raw.view(np.int8), exponent_bits, mantissa_bits, bias)


_SMALL_FLOATS = {
    "float8_e4m3fn": (4, 3, 7, "nan at all ones"),
    "float8_e5m2": (5, 2, 15, "ieee"),
    "float8_e4m3fnuz": (4, 3, 8, "nan at minus zero"),
    "float8_e5m2fnuz": (5, 2, 16, "nan at minus zero"),
    "float4_e2m1fn": (2, 1, 1, "finite"),
    "float4_e2m1fn_x2": (2, 1, 1, "finite"),
}
_tables: dict[str, np.ndarray[Any, Any]] = {}


def small_float_table(name: str) -> np.ndarray[Any, Any]:
    """The value of every bit pattern of an 8-bit or 4-bit float, as float32 (OCP FP8 and Microscaling Formats 1.0)."""
    if name not in _tables:
        if name == "float8_e8m0fnu":
            values = [math.ldexp(1.0, code - 127) for code in range(255)] + [math.nan]
        else:
            exponent_bits, mantissa_bits, bias, specials = _SMALL_FLOATS[name]
            codes = range(1 << (1 + exponent_bits + mantissa_bits))
            values = [_small_float(code, exponent_bits, mantissa_bits, bias, specials) for code in codes]
        _tables[name] = np.array(values, np.float32)
    return _tables[name]


def _small_float(code: int, exponent_bits: int, mantissa_bits: int, bias: int, specials: str) -> float:
    mantissa = code & ((1 << mantissa_bits) - 1)
    exponent = (code >> mantissa_bits) & ((1 << exponent_bits) - 1)
    sign = -1.0 if code >> (exponent_bits + mantissa_bits) else 1.0
    highest = exponent == (1 << exponent_bits) - 1
    if specials == "ieee" and highest:
        return math.nan if mantissa else sign * math.inf
    if specials == "nan at all ones" and highest and mantissa == (1 << mantissa_bits) - 1:
        return math.nan
    if specials == "nan at minus zero" and sign < 0 and not exponent and not mantissa:
        return math.nan
    if exponent == 0:
        return sign * math.ldexp(mantissa, 1 - bias - mantissa_bits)
    return sign * math.ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits)
