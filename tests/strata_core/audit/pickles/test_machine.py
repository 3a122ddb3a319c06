from __future__ import annotations

import pickle
import pickletools
from collections import OrderedDict
from typing import Any

import pytest

from strata_core.audit.opening import FileBytes
from strata_core.audit.pickles.machine import run_pickle
from strata_core.audit.pickles.symbols import Dictionary, Global, Group, Made, Opaque, Persistent, Stretch

VALUES = [
    None,
    True,
    -1,
    2**40,
    -(2**200),
    1.5,
    "text",
    "ünïcode \U0001f600 \n\\",
    (),
    (1,),
    (1, 2, 3, 4),
    [1, [2, [3]]],
    {"a": 1, "b": {"c": (1, 2)}},
    {1, 2},
    frozenset({"x"}),
    [None, False, 255, 256, 65535, 65536, -32768],
]


def run(data: bytes, **options: int) -> Any:
    return run_pickle(FileBytes.of_memory(data, "test"), **options)


def plain(value: Any) -> Any:
    if isinstance(value, Dictionary):
        return {plain(key): plain(inner) for key, inner in value.pairs()}
    if isinstance(value, Group):
        return {plain(member) for member in value.members}
    if isinstance(value, list | tuple):
        return type(value)(plain(inner) for inner in value)
    return value


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_plain_values_come_out_as_the_real_unpickler_makes_them(value: Any, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    found = run(data + b"rest")
    assert found.broken is None
    assert found.end == len(data)
    result = plain(found.value)
    if isinstance(result, Made):
        result = set(plain(result.arguments)[0])
    assert result == value


def test_every_opcode_of_pickletools_is_known() -> None:
    from strata_core.audit.pickles.machine import _HANDLERS

    assert {ord(opcode.code) for opcode in pickletools.opcodes} == set(_HANDLERS)


def test_shared_and_recursive_lists_stay_one_object() -> None:
    inner: list[Any] = [1]
    inner.append(inner)
    found = run(pickle.dumps([inner, inner])).value
    assert found[0] is found[1]
    assert found[0][1] is found[0]


def test_a_call_is_described_and_not_made() -> None:
    found = run(pickle.dumps(OrderedDict(a=1), 2))
    assert isinstance(found.value, Made)
    assert found.value.is_made_by("collections", "OrderedDict")
    assert found.value.entries == ["a", 1]


def test_long_bytes_stay_in_the_file() -> None:
    data = pickle.dumps(b"\x01" * 100_000, 4)
    found = run(data).value
    assert isinstance(found, Stretch)
    assert data[found.position : found.position + found.size] == b"\x01" * 100_000


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x80\x02\xff.", "no pickle opcode"),
        (b"\x80\x02", "are left"),
        (b".", "empty stack"),
        (b"0.", "a mark that was not set"),
        (b"t.", "a mark that was not set"),
        (b"\x80\x02h\x05.", "never stored"),
        (b"\x80\x02]r\xff\xff\xff\x7f.", "memo index"),
        (b"\x80\x04\x8d" + (1 << 60).to_bytes(8, "little") + b"x.", "are announced"),
        (b"\x80\x04\x95" + (1 << 63).to_bytes(8, "little") + b"N.", "a frame of"),
        (b"](K\x01\x90.", "adds items to a list by ADDITEMS"),
        (b"\x8f(]\x90.", "cannot be hashed"),
        (b"S 'a'\n.", "a string without its quotes"),
        (b"K\x01\x98.", "no buffer"),
        (b"X" + (100_000).to_bytes(4, "little") + b"a" * 99_999 + b"\xff.", "not utf-8"),
        (b"\x80\x09N.", "protocol 9"),
        (b"}(K\x01u.", "a key without a value"),
        (b"}]K\x01s.", "cannot be hashed"),
        (b"K\x01K\x02a.", "adds items to a int"),
        (b"X\x02\x00\x00\x00\xff\xfe.", "not utf-8"),
        (b"Iabc\n.", "no integer"),
        (b"\x8b\xff\xff\xff\xff.", "a length of -1"),
    ],
)
def test_a_broken_stream_says_where_and_why(data: bytes, reason: str) -> None:
    found = run(data)
    assert found.broken is not None
    assert reason in found.broken
    assert "at byte" in found.broken


def test_a_stream_of_too_many_opcodes_is_followed_no_further() -> None:
    found = run(b"N0" * 1000 + b"N.", operations=500)
    assert "more than 500 opcodes" in (found.broken or "")


def test_names_on_the_stack_are_resolved_through_the_memo() -> None:
    found = run(b"\x80\x04\x8c\x02os\x940\x8c\x06system\x940h\x00h\x01\x93.")
    assert found.value == Global("os", "system")


def test_a_computed_name_is_an_event_of_its_own() -> None:
    found = run(b"\x80\x04N\x8c\x06system\x93.")
    assert isinstance(found.value, Opaque)
    assert [event.kind for event in found.events] == ["unresolved"]


def test_persistent_ids_are_kept() -> None:
    found = run(b"\x80\x02(X\x07\x00\x00\x00storageK\x01tQ.")
    assert found.value == Persistent(("storage", 1))
    assert found.persistent_ids == [("storage", 1)]
