"""Statistics of tensors' elements: NaN, Inf, range, norm, and second moments that cannot be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from strata_core.audit.elements import decode, reading_order, stored_chunks, values_in_element
from strata_core.audit.findings import Malformed, printable
from strata_core.audit.report import stats_key
from strata_core.audit.summary import is_bookkeeping, is_optimizer_state
from strata_core.audit.tensors import Tensor
from strata_core.observer import Observer

_SQUARED_MOMENTS = ("exp_avg_sq", "max_exp_avg_sq", "square_avg")
_ELEMENTS_AT_ONCE = 1 << 16
"""So many that their float32 form stays in the cache of a core."""
_SAFE_SQUARES = (1e-30, 1e36)


@dataclass
class _Running:
    """Accumulates over chunks of one stored piece; `position` counts floats (two for a complex element)."""

    nan: int = 0
    inf: int = 0
    negative_inf: int = 0
    smallest: float = math.inf
    largest: float = -math.inf
    squares: float = 0.0
    position: int = 0
    first_bad: int | None = None

    def add(self, values: np.ndarray[Any, Any]) -> None:
        low, high = float(values.min()), float(values.max())
        if not (math.isfinite(low) and math.isfinite(high)):
            finite = np.isfinite(values)
            if self.first_bad is None:
                self.first_bad = self.position + int(np.argmin(finite))
            nan = int(np.isnan(values).sum())
            self.nan += nan
            self.inf += values.size - int(finite.sum()) - nan
            self.negative_inf += int(np.isneginf(values).sum())
            self.position += values.size
            values = values[finite]
            if not values.size:
                return
            low, high = float(values.min()), float(values.max())
        else:
            self.position += values.size
        self.smallest = min(self.smallest, low)
        self.largest = max(self.largest, high)
        self.squares += _sum_of_squares(values)

    @property
    def is_mask(self) -> bool:
        """Zeros and minus infinities only, as attention masks are stored."""
        return self.nan == 0 and self.inf == self.negative_inf and self.smallest == self.largest == 0.0


def _sum_of_squares(values: np.ndarray[Any, Any]) -> float:
    with np.errstate(over="ignore", under="ignore"):
        total = float(np.dot(values, values))
    if _SAFE_SQUARES[0] < total < _SAFE_SQUARES[1] or values.dtype == np.float64:
        return total
    wide = values.astype(np.float64)
    return float(np.dot(wide, wide))


def gather_statistics(tensors: list[Tensor], observer: Observer) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Statistics by tensor (see report.stats_key), and every numeric fault in words.

    Only floating and complex tensors have them; a complex element counts as two numbers. Tensors that are the same
    view of one storage are read once.
    """
    floating = [tensor for tensor in tensors if tensor.element_type.kind in ("float", "complex") or tensor.components]
    observer.stage_started("scanning tensors", sum(tensor.size_bytes for tensor in floating), "bytes")
    found: dict[str, dict[str, Any]] = {}
    faults: list[str] = []
    known: dict[tuple[Any, ...], dict[str, Any]] = {}
    done = 0
    for tensor in floating:
        key = (id(tensor.storage), tensor.element_type.name, tensor.offset, tensor.shape, tensor.stride)
        reused = known.get(key) if tensor.storage is not None else None
        statistics = reused or _statistics(tensor)
        known[key] = statistics
        found[stats_key(tensor)] = statistics
        faults += _faults(tensor, statistics)
        done += tensor.size_bytes
        observer.stage_advanced(done, tensor.name)
    observer.stage_finished()
    return found, faults


def _statistics(tensor: Tensor) -> dict[str, Any]:
    total = _Running()
    first: list[int] | None = None
    skipped = ""
    for offsets, piece in _floating_pieces(tensor):
        running = _Running()
        try:
            assert piece.storage is not None
            slice_bytes = max(_ELEMENTS_AT_ONCE * piece.element_type.bits // 8, 1)
            for raw in stored_chunks(piece):
                for start in range(0, raw.size, slice_bytes):
                    codes = raw[start : start + slice_bytes]
                    running.add(decode(codes, piece.element_type, little_endian=piece.storage.little_endian))
        except Malformed as error:
            skipped = error.message
        if first is None and running.first_bad is not None:
            first = _logical_index(piece, running.first_bad, offsets)
        _merge(total, running)
    any_finite = total.largest >= total.smallest
    statistics: dict[str, Any] = {
        "nan": total.nan,
        "inf": total.inf,
        "min": total.smallest if any_finite else None,
        "max": total.largest if any_finite else None,
        "norm": math.sqrt(total.squares),
        "first_nonfinite": first,
    }
    if total.inf and total.is_mask:
        statistics["mask"] = True
    if skipped:
        statistics["skipped"] = skipped
    return statistics


def _floating_pieces(tensor: Tensor) -> list[tuple[tuple[int, ...], Tensor]]:
    pieces = tensor.parts or [((), piece) for piece in tensor.stored_pieces()]
    return [(at, piece) for at, piece in pieces if piece.storage and piece.element_type.kind in ("float", "complex")]


def _merge(total: _Running, running: _Running) -> None:
    total.nan += running.nan
    total.inf += running.inf
    total.negative_inf += running.negative_inf
    total.smallest = min(total.smallest, running.smallest)
    total.largest = max(total.largest, running.largest)
    total.squares += running.squares


def _logical_index(piece: Tensor, position: int, offsets: tuple[int, ...]) -> list[int]:
    position //= values_in_element(piece.element_type)
    index = reading_order(piece).index(position, len(piece.shape))
    return [at + start for at, start in zip(index, offsets, strict=True)] if offsets else list(index)


def _faults(tensor: Tensor, statistics: dict[str, Any]) -> list[str]:
    if is_bookkeeping(tensor):
        return []
    faults = []
    shown = printable(stats_key(tensor))
    at = f", first at {statistics['first_nonfinite']}"
    if statistics["nan"]:
        faults.append(f"tensor {shown}: {statistics['nan']:,} NaN{at}")
    if statistics["inf"] and not statistics.get("mask"):
        faults.append(f"tensor {shown}: {statistics['inf']:,} Inf{at}")
    kind = tensor.name.rpartition(".")[2]
    smallest = statistics["min"]
    if smallest is not None and smallest < 0 and is_optimizer_state(tensor) and kind in _SQUARED_MOMENTS:
        faults.append(f"tensor {shown}: a mean of squares of {smallest:g}; it cannot be negative")
    if smallest is not None and smallest < 0 and is_optimizer_state(tensor) and kind == "step":
        faults.append(f"tensor {shown}: a step count of {smallest:g}")
    return faults
