"""Results on standard output."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def write_json(value: Mapping[str, Any]) -> None:
    """Writes one JSON object: ASCII only, NaN and infinities as null."""
    print(json.dumps(_finite(value), indent=2, allow_nan=False), flush=True)


def write_text(text: str) -> None:
    """Writes text as it is, ending in one line break."""
    print(text.rstrip("\n"), flush=True)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
