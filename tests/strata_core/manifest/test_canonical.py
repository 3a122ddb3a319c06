"""Canonical JSON against the vectors that RFC 8785 publishes."""

from __future__ import annotations

import json
import math
import random
import shutil
import struct
import subprocess

import pytest

from strata_core.errors import DataError
from strata_core.manifest.canonical import canonical_json, parse_json

# RFC 8785, appendix B: IEEE 754 bits and the text they have to give.
APPENDIX_B = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


def from_bits(bits: str) -> float:
    return struct.unpack(">d", bytes.fromhex(bits))[0]


@pytest.mark.parametrize(("bits", "text"), APPENDIX_B.items())
def test_numbers_are_written_as_appendix_b_says(bits: str, text: str) -> None:
    assert canonical_json(from_bits(bits)).decode() == text


@pytest.mark.parametrize("bits", ["7fffffffffffffff", "7ff0000000000000", "fff0000000000000"])
def test_nan_and_infinity_are_refused(bits: str) -> None:
    with pytest.raises(DataError):
        canonical_json([from_bits(bits)])


def test_the_example_of_section_3_2_2_gives_the_bytes_of_section_3_2_4() -> None:
    source = rb"""{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }"""
    published = """
        7b 22 6c 69 74 65 72 61 6c 73 22 3a 5b 6e 75 6c 6c 2c 74 72 75 65 2c 66 61 6c 73 65 5d 2c 22 6e
        75 6d 62 65 72 73 22 3a 5b 33 33 33 33 33 33 33 33 33 2e 33 33 33 33 33 33 33 2c 31 65 2b 33 30
        2c 34 2e 35 2c 30 2e 30 30 32 2c 31 65 2d 32 37 5d 2c 22 73 74 72 69 6e 67 22 3a 22 e2 82 ac 24
        5c 75 30 30 30 66 5c 6e 41 27 42 5c 22 5c 5c 5c 5c 5c 22 2f 22 7d
    """
    assert canonical_json(parse_json(source, source="example")) == bytes.fromhex(published)


def test_keys_are_ordered_by_utf16_code_units_as_in_section_3_2_3() -> None:
    source = (
        rb'{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",'
        rb'"\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}'
    )
    values = list(json.loads(canonical_json(parse_json(source, source="example"))).values())
    assert values == [
        "Carriage Return",
        "One",
        "Control",
        "Latin Small Letter O With Diaeresis",
        "Euro Sign",
        "Emoji: Grinning Face",
        "Hebrew Letter Dalet With Dagesh",
    ]


def test_every_float_reads_back_to_the_same_bits() -> None:
    generator = random.Random(8785)
    for _ in range(5000):
        value = from_bits(f"{generator.getrandbits(64):016x}")
        if math.isfinite(value):
            assert struct.pack(">d", float(canonical_json(value))) == struct.pack(">d", value + 0.0)


@pytest.mark.skipif(shutil.which("node") is None, reason="no ECMAScript engine on this machine")
def test_floats_are_written_as_an_ecmascript_engine_writes_them() -> None:
    generator = random.Random(6)
    drawn = [from_bits(f"{generator.getrandbits(64):016x}") for _ in range(3000)]
    drawn += [10.0**power * scale for power in range(-30, 30) for scale in (1.0, 1.5, 9.999999999999999)]
    values = [value for value in drawn if math.isfinite(value)]
    script = f"process.stdout.write(JSON.stringify({json.dumps(values)}.map(String)))"
    written = subprocess.run(["node", "-"], input=script.encode(), capture_output=True, check=True).stdout
    assert [canonical_json(value).decode() for value in values] == json.loads(written)


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1, 10**400])
def test_integers_that_a_double_may_not_hold_are_refused(value: int) -> None:
    with pytest.raises(DataError):
        canonical_json({"count": value})


def test_integers_up_to_the_limit_are_written_in_full() -> None:
    assert canonical_json([2**53, -(2**53), 0, True]) == b"[9007199254740992,-9007199254740992,0,true]"


def test_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(DataError, match="udcff"):
        canonical_json({"path": "bad\udcff"})


@pytest.mark.parametrize("value", [{1: "a"}, {"a": {1, 2}}, b"bytes"])
def test_values_without_a_json_form_are_a_programming_error(value: object) -> None:
    with pytest.raises(TypeError):
        canonical_json(value)


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":1,"a":2}',
        b'{"a":1,"\\u0061":1}',
        b"[NaN]",
        b"[-Infinity]",
        b"[1e999]",
        b"[9007199254740993]",
        b"[" + b"9" * 5000 + b"]",
        b"[" * 200_000,
        b'{"a":1',
        b"\xff\xfe",
        b"",
    ],
)
def test_text_that_two_readers_could_take_differently_is_refused(text: bytes) -> None:
    with pytest.raises(DataError, match="the source"):
        parse_json(text, source="the source")


def test_a_large_double_written_without_exponent_is_read_back_as_one() -> None:
    assert parse_json(canonical_json([1e20, 2.0**68]), source="x") == [1e20, 2.0**68]


def test_a_byte_order_mark_and_windows_line_ends_change_nothing() -> None:
    assert parse_json(b'\xef\xbb\xbf{\r\n "a": [1]\r\n}\r\n', source="x") == {"a": [1]}
