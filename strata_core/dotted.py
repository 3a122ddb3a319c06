"""Nested tables as one table of dotted names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def dotted(tables: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}, "c": 2} as {"a.b": 1, "c": 2}; an empty table has no names and leaves nothing."""
    flat: dict[str, Any] = {}
    for name, value in tables.items():
        if isinstance(value, Mapping):
            flat |= dotted(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat
