"""JSON of unknown origin, read in bounded memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from strata_core.audit.findings import Malformed, printable
from strata_core.audit.opening import FileBytes

MAX_JSON_BYTES = 32 << 20
_MAX_VALUES = 1_500_000


def parse_json_object(data: bytes, name: str, *, parse_int: Callable[[str], int] = int) -> dict[str, Any]:
    """One JSON object, keys unique at every level; `parse_int` reads its whole numbers.

    Raises:
        Malformed: it is none, or larger than any honest one (32 MiB, or 1.5 million values).
    """
    if sum(data.count(sign) for sign in (b",", b"[", b"{")) > _MAX_VALUES:
        raise Malformed(f"{name}: more than {_MAX_VALUES:,} values; no checkpoint needs that many")
    try:
        value = json.loads(
            data.decode("utf-8"), object_pairs_hook=lambda pairs: _unique(pairs, name), parse_int=parse_int
        )
    except UnicodeDecodeError as error:
        raise Malformed(f"{name}: not UTF-8 at byte {error.start:,}") from error
    except RecursionError as error:
        raise Malformed(f"{name}: nested too deeply") from error
    except ValueError as error:
        raise Malformed(f"{name}: not valid JSON ({error})") from error
    if not isinstance(value, dict):
        raise Malformed(f"{name}: a JSON {type(value).__name__} where an object is due")
    return value


def read_json_object(file: FileBytes) -> dict[str, Any]:
    """The JSON object that a file holds.

    Raises:
        Malformed: as in parse_json_object.
    """
    if file.length > MAX_JSON_BYTES:
        raise Malformed(f"{file.name}: {file.length:,} bytes of JSON; at most {MAX_JSON_BYTES:,} are read")
    return parse_json_object(file.read(0, file.length), file.name)


def _unique(pairs: list[tuple[str, Any]], name: str) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise Malformed(f"{name}: {printable(twice)!r} is given twice")
    return found
