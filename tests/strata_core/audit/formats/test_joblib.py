from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.strata_core.audit.building import call, inspected, name, numbers, program, table, text

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "lzma": lambda data: lzma.compress(data, format=lzma.FORMAT_ALONE),
}


def array(shape: tuple[int, ...], kind: str, data: bytes) -> bytes:
    """An array as joblib writes it: its description, a count of padding, the padding, the elements."""
    element_type = call(name("numpy", "dtype"), text(kind), b"\x89", b"\x88")
    state = table(
        subclass=name("numpy", "ndarray"),
        shape=numbers(shape),
        order=text("C"),
        dtype=element_type,
        allow_mmap=b"\x88",
        numpy_array_alignment_bytes=b"K\x10",
    )
    return name("joblib.numpy_pickle", "NumpyArrayWrapper") + b")\x81" + state + b"b" + data


FLOATS = b"\x03\xff\xff\xff" + struct.pack("<4f", 1, 2, 3, 4)
SOUND = program(table(w=array((2, 2), "f4", FLOATS), step=b"K\x01"), 3)
PAYLOAD = call(name("posix", "system"), text("touch CANARY"))


def test_arrays_within_the_pickle_are_passed_over(tmp_path: Path) -> None:
    report = inspected(tmp_path, SOUND)
    assert report.reasons() == []
    assert report.format == "pickle"
    assert report.step == 1


@pytest.mark.parametrize("packing", PACKERS)
def test_a_compressed_file_is_read_as_what_is_inside(packing: str, tmp_path: Path) -> None:
    report = inspected(tmp_path, PACKERS[packing](SOUND))
    assert report.reasons() == []
    assert report.format == f"pickle, {packing}-compressed"
    assert inspected(tmp_path, PACKERS[packing](program(PAYLOAD))).exit_code(strict=False) == 4


@pytest.mark.parametrize("packing", PACKERS)
def test_compressed_data_that_was_cut_or_has_more_after_it_is_corrupt(packing: str, tmp_path: Path) -> None:
    packed = PACKERS[packing](SOUND)
    assert inspected(tmp_path, packed[:-9]).exit_code(strict=False) == 5
    assert inspected(tmp_path, packed + b"rest").exit_code(strict=False) == 5


def test_a_payload_among_the_elements_is_what_pickle_would_run(tmp_path: Path) -> None:
    opcodes = b"0" + PAYLOAD + b"0N."
    padding = 1 + opcodes[0]
    data = program(table(w=array((len(opcodes) - padding,), "u1", opcodes)), 3)
    report = inspected(tmp_path, data)
    assert report.verdict == "unsafe"
    assert "posix.system" in report.reasons()[0]


def test_objects_within_are_judged(tmp_path: Path) -> None:
    assert inspected(tmp_path, program(table(w=array((1,), "O8", program(b"]Na"))), 3)).verdict == "ok"
    assert inspected(tmp_path, program(table(w=array((1,), "O8", program(PAYLOAD))), 3)).verdict == "unsafe"


def test_an_array_that_is_cut_short_is_corrupt(tmp_path: Path) -> None:
    assert inspected(tmp_path, program(table(w=array((2000,), "f4", FLOATS)), 3)).verdict == "corrupt"


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    report = inspected(tmp_path, zlib.compress(bytes(200 << 20)))
    assert report.verdict == "corrupt"
    assert "more than an inspection takes on" in report.reasons()[0]


def test_an_array_of_protocol_0_is_passed_over_as_well(tmp_path: Path) -> None:
    wrapper = name("joblib.numpy_pickle", "NumpyArrayWrapper")
    old = call(name("copy_reg", "_reconstructor"), wrapper, name("__builtin__", "object"), b"N")
    data = program(table(w=array((2, 2), "f4", FLOATS).replace(wrapper + b")\x81", old)), 2)
    assert inspected(tmp_path, data).reasons() == []


def test_other_names_of_joblib_stay_dangerous(tmp_path: Path) -> None:
    assert inspected(tmp_path, program(call(name("joblib", "load"), text("x")))).verdict == "unsafe"
