"""joblib puts an array's bytes into the pickle, right after the object that describes it (joblib/numpy_pickle.py)."""

from __future__ import annotations

import math
import re
from typing import Any

from strata_core.audit.findings import Malformed
from strata_core.audit.opening import FileBytes
from strata_core.audit.pickles.symbols import Dictionary, Global, Made

ARRAY_WRAPPER = Global("joblib.numpy_pickle", "NumpyArrayWrapper")
_SPELT = re.compile(r"[|<>=]?([a-zA-Z])([0-9]{1,9})")


def is_array_wrapper(target: Any, state: Any) -> bool:
    """Whether BUILD has just finished the description of an array."""
    if not isinstance(target, Made) or not isinstance(state, Dictionary):
        return False
    is_old = isinstance(target.maker, Global) and target.maker.name == "_reconstructor"
    made = target.arguments[0] if is_old and isinstance(target.arguments, tuple) and target.arguments else target.maker
    return bool(made == ARRAY_WRAPPER)


def array_bytes(state: Dictionary, source: FileBytes, position: int) -> tuple[int, int]:
    """Bytes of padding and of elements that follow a description; -1 elements for objects, which are a pickle.

    Raises:
        Malformed: it describes no array.
    """
    shape, kind = state.get("shape"), state.get("dtype")
    if not isinstance(shape, tuple) or not all(isinstance(size, int) and 0 <= size < 1 << 40 for size in shape):
        raise Malformed("an array of joblib without sound shape")
    padding = 0
    if state.get("numpy_array_alignment_bytes") is not None:
        padding = 1 + source.read(position, 1)[0]
    spelt = kind.arguments[0] if isinstance(kind, Made) and isinstance(kind.arguments, tuple) and kind.arguments else ""
    match = _SPELT.fullmatch(spelt) if isinstance(spelt, str) else None
    if match is None or not isinstance(kind, Made) or not kind.is_made_by("numpy", "dtype"):
        raise Malformed("an array of joblib without an element type that is read")
    if match[1] == "O":
        return 0, -1
    return padding, math.prod(shape) * int(match[2]) * (4 if match[1] == "U" else 1)
