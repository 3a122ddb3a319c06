"""Sizes of memory as people write and read them."""

from __future__ import annotations

import re

from strata_core.errors import UsageError

_FACTORS = {"B": 1}
_FACTORS |= {f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", start=1)}
_FACTORS |= {f"{letter}B": 1000**power for power, letter in enumerate("KMGT", start=1)}
_BY_LOWER_CASE = {unit.lower(): factor for unit, factor in _FACTORS.items()}
_SMALLEST_LIKELY_BYTES = 1024**3
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", re.ASCII)


def parse_bytes(text: str) -> int:
    """The number of bytes that "80GiB", "16 GB", "1.5TiB" or "4096B" stands for.

    KB, MB, GB and TB are powers of 1000, KiB, MiB, GiB and TiB powers of 1024; letter case does not matter.

    Raises:
        UsageError: the text is no size, has no unit, or is no memory at all.
    """
    match = _SIZE.fullmatch(text)
    if match and not match[2] and float(match[1]) > 0:
        raise UsageError(f"{text!r} has no unit", hint=f"did you mean {match[1]}{_likely_unit(float(match[1]))}?")
    factor = _BY_LOWER_CASE.get(match[2].lower()) if match else None
    size_bytes = int(float(match[1]) * factor) if match and factor else 0
    if size_bytes < 1:
        raise UsageError(
            f"{text!r} is not a size of memory", hint="write a number and a unit, as in 80GiB, 16GB or 512MiB"
        )
    return size_bytes


def _likely_unit(number: float) -> str:
    """The smallest unit in which a number is a memory that a device may have."""
    units = ("B", "KiB", "MiB", "GiB")
    return next((unit for unit in units if number * _FACTORS[unit] >= _SMALLEST_LIKELY_BYTES), units[-1])


def format_bytes(size_bytes: float) -> str:
    """A size in binary units: "512 B", "1.5 MiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size_bytes) < 1024:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} TiB"
