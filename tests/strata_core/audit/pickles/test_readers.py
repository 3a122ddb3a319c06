from __future__ import annotations

import io
import pickle
import struct
from collections import OrderedDict
from typing import Any

import pytest

from tests.strata_core.audit import readers
from tests.strata_core.audit.building import archive, call, inspected, name, number, program, table, text


def frame(size: int) -> bytes:
    return b"\x95" + struct.pack("<Q", size)


ORDERED = name("collections", "OrderedDict")
C_AND_PYTHON = {
    "a frame that cuts an operand": (b"\x80\x04" + frame(8) + b"K\x05X\x02\0\0\0ab0.", "ends within"),
    "a frame that cuts a length": (b"\x80\x04" + frame(2) + b"X\x02\0\0\0ab.", "ends within"),
    "a frame that cuts a line": (b"\x80\x04" + frame(3) + b"I12\n.", "ends within"),
    "a frame that cuts a name": (b"\x80\x04" + frame(5) + ORDERED + b"0N.", "ends within"),
    "a frame within a frame": (b"\x80\x04" + frame(13) + b"N0" + frame(2) + b"N.", "before the one before it ended"),
    "a frame longer than the rest": (b"\x80\x04" + frame(9) + b"N.", "a frame of 9 bytes with 2 left"),
    "a stop before the frame ends": (b"\x80\x04" + frame(4) + b"N.N.", "stops before its frame ends"),
    "octal digits": (b"I010\n.", "takes it as 8"),
    "a signed one": (b"I+1\n.", "takes it as True"),
    "a one after a space": (b"I 1\n.", "takes it as True"),
    "a number before a NUL": (b"I5\0x\n.", "takes it as 5"),
    "a NUL for a number": (b"I\0\n.", "takes it as 0"),
    "a long number before a NUL": (b"L5\0xL\n.", "takes it as 5"),
    "a float out of range": (b"F1e400\n.", "takes it as inf"),
    "a float after a space": (b"F 1\n.", "takes it as 1.0"),
    "a float with underscores": (b"F1_0\n.", "takes it as 10.0"),
    "a float before a NUL": (b"F1\0\n.", "takes it as 1.0"),
    "a memo index before a NUL": (b"Np5\0x\n.", "takes it as 5"),
    "arguments in a list": (ORDERED + b"]R.", "arguments in a list"),
    "arguments in a text": (ORDERED + b"U\x00R.", "arguments in a str"),
    "arguments of __new__ in a list": (b"\x80\x02" + ORDERED + b"]\x81.", "arguments in a list"),
    "arguments of __new__ with keywords": (b"\x80\x04" + ORDERED + b"]}\x92.", "arguments in a list"),
    "no items for a number": (b"K\x05(e.", "no items for a int"),
    "no members for a list": (b"\x80\x04](\x90.", "no items for a list"),
    "no items for a set": (b"\x80\x04\x8f(e.", "no items for a set"),
    "no items for a dict of a class": (ORDERED + b")R(e.", "no items for a collections.OrderedDict"),
    "an empty state of a list": (b"]}b.", "the state of a list is empty"),
    "an empty tuple for a state": (ORDERED + b")R)b.", "is empty and no dict"),
    "nothing for the slots": (ORDERED + b")R}N\x86b.", "is empty and no dict"),
}
"""Streams that C's reader and Python's take differently, and what is said of each."""

TORCH = {
    "an old name in a new protocol": (
        b"\x80\x03" + name("UserDict", "UserDict") + b"0N.",
        "torch's reader translates it",
    ),
    "a dotted name in an old protocol": (b"\x80\x02" + name("mine", "A.B") + b"0N.", "torch's reader follows"),
    "a state of pairs": (b"\x80\x02" + ORDERED + b")R](X\x01\0\0\0aK\x01\x86eb.", "torch's reader takes pairs"),
    "no protocol of pickle": (b"\x80\x09N.", "pickle protocol 9"),
    "arguments in a list": (b"\x80\x02" + ORDERED + b"]R.", "Python's and torch's take them"),
}
SETTINGS = {
    "8-bit text": (b"\x80\x02U\x01\xe9.", "takes it as UTF-8"),
    "8-bit text in quotes": (b"S'\\xe9'\n.", "takes it as UTF-8"),
    "long 8-bit text": (b"\x80\x02T" + struct.pack("<i", 100_000) + b"\xe9" * 100_000 + b".", "takes it as UTF-8"),
    "thousands of digits": (b"L" + b"9" * 5000 + b"L\n.", "older ones read it"),
}
AGREED: dict[str, tuple[bytes, Any]] = {
    "hexadecimal digits": (b"I0x1f\n.", 31),
    "zeros": (b"I000\n.", 0),
    "underscores": (b"L1_000L\n.", 1000),
    "a frame that ends after an opcode": (b"\x80\x04" + frame(1) + b"I12\n.", 12),
    "an empty frame": (b"\x80\x04" + frame(0) + b"N.", None),
    "a frame after a frame": (b"\x80\x04" + frame(2) + b"N0" + frame(2) + b"N.", None),
    "values left on the stack": (b"K\x01K\x02.", 2),
    "a mark left on the stack": (b"K\x01(K\x02.", 2),
    "no items set": (b"K\x05(u.", 5),
    "no state": (b"]Nb.", []),
    "an item set by its place": (b"](K\x05eK\x00K\x06s.", [6]),
    "bytes added": (b"\x80\x05\x96\x01\0\0\0\0\0\0\0aK\x62a.", bytearray(b"ab")),
    "a state of attributes": (ORDERED + b")R}b.", OrderedDict()),
    "lone surrogates": (b"X\x03\0\0\0\xed\xa0\x80.", "\ud800"),
    "a float without digits after the point": (b"F5.\n.", 5.0),
}


@pytest.mark.parametrize("what", C_AND_PYTHON)
def test_what_c_and_python_read_differently_is_corrupt_and_says_how(what: str, tmp_path: Any) -> None:
    data, reason = C_AND_PYTHON[what]
    assert readers.agreed(data) is None
    report = inspected(tmp_path, archive(data))
    assert report.exit_code(strict=False) == 5
    assert any(reason in told for told in report.reasons())
    assert inspected(tmp_path, data).verdict == "corrupt"


@pytest.mark.parametrize("what", TORCH)
def test_what_torch_reads_differently_is_corrupt_and_says_how(what: str, tmp_path: Any) -> None:
    data, reason = TORCH[what]
    report = inspected(tmp_path, archive(data))
    assert report.exit_code(strict=False) == 5
    assert any(reason in told for told in report.reasons())


def test_torch_really_reads_them() -> None:
    pytest.importorskip("torch")
    for what in ("a state of pairs", "no protocol of pickle", "arguments in a list"):
        data = TORCH[what][0]
        assert readers.torch_outcome(data) != readers.REFUSED
        assert readers.outcomes(data)["C, from a buffered file"] == readers.REFUSED


@pytest.mark.parametrize("what", SETTINGS)
def test_what_readers_of_other_settings_read_differently_is_corrupt(what: str, tmp_path: Any) -> None:
    data, reason = SETTINGS[what]
    report = inspected(tmp_path, archive(data))
    assert report.verdict == "corrupt"
    assert any(reason in told for told in report.reasons())


@pytest.mark.parametrize("what", AGREED)
def test_what_all_readers_read_alike_is_not_accused(what: str) -> None:
    data, value = AGREED[what]
    assert pickle.loads(data) == value
    assert readers.agreed(data) not in (None, readers.REFUSED)
    assert readers.complaint(data) is None


def test_c_reads_another_value_from_a_stream_than_from_memory() -> None:
    data = b"\x80\x04" + frame(7) + b"X\x06\0\0\0ab" + b"cdefgh0N."
    assert pickle.load(io.BytesIO(data)) is None
    with pytest.raises(pickle.UnpicklingError):
        pickle.loads(data)
    assert "drops the frame's last bytes" in (readers.complaint(data) or "")


@pytest.mark.parametrize("hidden", [b"\x80\x04" + frame(1 << 40), b"\x80\x04" + frame(3) + b"I12\n0", b"I010\n0"])
def test_a_payload_after_a_difference_is_found(hidden: bytes, tmp_path: Any) -> None:
    report = inspected(tmp_path, hidden + call(name("posix", "system"), text("touch CANARY")) + b".")
    assert report.verdict == "unsafe"
    assert {finding.kind for finding in report.findings} == {"unsafe", "corrupt"}


def test_computed_arguments_are_unsafe(tmp_path: Any) -> None:
    arguments = call(name("builtins", "tuple"), b"](" + text("x") + text("mine_codec") + b"e")
    report = inspected(tmp_path, archive(program(name("_codecs", "encode") + arguments + b"R")))
    assert report.verdict == "unsafe"
    assert any("computed arguments" in reason for reason in report.reasons())


def test_what_honest_writers_write_in_every_protocol_is_not_accused() -> None:
    value = {
        "a": [1, -1, 2**70, 1.5, float("inf"), True, None, "é\n", b"\x00\xff" * 300],
        "b": {1, 2},
        "c": "x" * 70_000,
    }
    for protocol in range(6):
        assert readers.complaint(pickle.dumps(value, protocol)) is None
        assert readers.complaint(pickle._dumps(value, protocol)) is None  # type: ignore[attr-defined]


@pytest.mark.parametrize("streams", [3000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_no_random_stream_is_ok_where_readers_differ_or_accused_where_they_agree(streams: int) -> None:
    counts, broken = readers.compare(streams, seed=1, with_torch=False)
    assert broken == []
    assert min(counts[kind] for kind in ("agree, ok", "differ, accused", "refused, accused")) > streams // 100


def test_no_random_stream_is_ok_where_torch_reads_it_differently() -> None:
    pytest.importorskip("torch")
    _, broken = readers.compare(1500, seed=2, with_torch=True)
    assert broken == []


def test_a_sound_archive_stays_ok(tmp_path: Any) -> None:
    assert inspected(tmp_path, archive(program(table(step=number(3))))).reasons() == []
