"""JSON with one way to write each value (RFC 8785, JSON Canonicalization Scheme), and a strict reader."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from strata_core.errors import DataError

LARGEST_EXACT_INTEGER = 2**53
"""Integers up to this one survive every JSON reader, since many hold numbers as IEEE 754 doubles."""

_ESCAPES = {code: f"\\u{code:04x}" for code in range(0x20)}
_ESCAPES |= {ord(raw): "\\" + short for raw, short in zip('"\\\b\f\n\r\t', '"\\bfnrt', strict=True)}


def canonical_json(value: Any) -> bytes:
    """The RFC 8785 form of a value made of dict (string keys), list, tuple, str, int, float, bool and None.

    No white space, keys in the order of their UTF-16 code units, numbers as ECMAScript writes them, UTF-8.

    Raises:
        DataError: a number that JSON cannot hold (NaN, infinity, an integer beyond 2**53) or text that UTF-8
            cannot hold (a lone surrogate, as in a file name that is not UTF-8).
        TypeError: another type.
    """
    return "".join(_pieces(value)).encode()


def _pieces(value: Any) -> Iterator[str]:
    if value is None or isinstance(value, bool):
        yield {None: "null", True: "true", False: "false"}[value]
    elif isinstance(value, str):
        yield _string(value)
    elif isinstance(value, int):
        if abs(value) > LARGEST_EXACT_INTEGER:
            raise DataError(f"the integer {value} is beyond 2**53 and has no exact form in canonical JSON")
        yield int.__repr__(value)
    elif isinstance(value, float):
        yield _number(value)
    elif isinstance(value, list | tuple):
        yield "["
        for index, item in enumerate(value):
            yield "," if index else ""
            yield from _pieces(item)
        yield "]"
    elif isinstance(value, dict):
        yield "{"
        for index, key in enumerate(sorted(value, key=_utf16_order)):
            yield ("," if index else "") + _string(key) + ":"
            yield from _pieces(value[key])
        yield "}"
    else:
        raise TypeError(f"canonical JSON has no form for {type(value).__name__}")


def _utf16_order(key: Any) -> bytes:
    if not isinstance(key, str):
        raise TypeError(f"a key of a JSON object is a string, not {type(key).__name__}")
    return key.encode("utf-16-be", "surrogatepass")


def _string(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError(
            f"{text!a} cannot be written as UTF-8", hint="names and text in a manifest are UTF-8: rename it"
        ) from None
    return '"' + text.translate(_ESCAPES) + '"'


def _number(value: float) -> str:
    """ECMAScript's Number::toString (ECMA-262, 6.1.6.1.20), on the shortest round-trip digits, as in repr."""
    if not math.isfinite(value):
        raise DataError(f"{value} is not a number that JSON can hold")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = float.__repr__(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = int(exponent or 0) + len(digits) - len(fraction)
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+d}"


def parse_json(data: bytes, *, source: str) -> Any:
    """Reads JSON text, refusing what two readers could take for different values.

    A byte order mark and any white space between tokens are accepted.

    Args:
        data: the bytes of the whole text.
        source: what to call it in an error.

    Raises:
        DataError: not UTF-8, not JSON, a key twice in one object, NaN or infinity, an integer beyond 2**53
            that is not the canonical form of a double, or nesting deeper than the interpreter can follow.
    """
    try:
        return json.loads(
            data.decode("utf-8-sig"),
            object_pairs_hook=_object_without_duplicates,
            parse_int=_exact_number,
            parse_float=_finite_float,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError as error:
        raise DataError(f"{source}: byte {error.start} is not UTF-8") from None
    except RecursionError:
        raise DataError(f"{source}: nested too deeply") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise DataError(f"{source}: not JSON: {error.msg} at {where}") from None
    except ValueError as error:
        raise DataError(f"{source}: {error}") from None


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!a} stands twice in one object")
        found[key] = value
    return found


def _exact_number(text: str) -> int | float:
    """An integer, or the large double that canonical JSON writes without a point or exponent."""
    if len(text) <= 17 and abs(int(text)) <= LARGEST_EXACT_INTEGER:
        return int(text)
    value = float(text)
    if not math.isfinite(value) or _number(value) != text:
        raise ValueError(f"the integer {text[:40]} is beyond 2**53")
    return value


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")
