from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.strata_core.audit.building import call, inspected, name, program, text, zipped


def saved(value: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, value, allow_pickle=True)
    return file.getvalue()


def npz(compressed: bool = False, **arrays: Any) -> bytes:
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **arrays)
    return file.getvalue()


def with_payload() -> bytes:
    """An object array whose pickle calls something."""
    data = saved(np.array([None]))
    start = data.index(b"\n", 8) + 1
    return data[:start] + program(call(name("posix", "system"), text("touch CANARY")))


ARRAYS = {
    "floats": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a column-major array": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "big-endian": np.arange(3, dtype=">i4"),
    "texts": np.array(["a", "bcd"]),
    "records": np.zeros(2, dtype=[("a", "<f4"), ("b", "<i2", (3,))]),
    "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "nothing": np.zeros((0, 4)),
    "objects": np.array([None, {"a": 1}, "x"], dtype=object),
}


@pytest.mark.parametrize("what", ARRAYS)
def test_an_array_that_numpy_wrote_is_ok(what: str, tmp_path: Path) -> None:
    array = ARRAYS[what]
    report = inspected(tmp_path, saved(array), stats=True)
    assert report.reasons() == []
    assert report.format == "numpy array"
    if array.dtype != object:
        assert [(one.shape, one.storage and one.storage.size_bytes) for one in report.tensors] == [
            (array.shape, array.nbytes)
        ]


def test_numbers_of_a_big_endian_array_are_read(tmp_path: Path) -> None:
    report = inspected(tmp_path, saved(np.array([1.5, -2.0], dtype=">f8")), stats=True)
    assert report.stats is not None
    assert (report.stats["array"]["min"], report.stats["array"]["max"]) == (-2.0, 1.5)


@pytest.mark.parametrize("compressed", [False, True])
def test_an_archive_lists_its_arrays(compressed: bool, tmp_path: Path) -> None:
    report = inspected(tmp_path, npz(compressed, w=np.ones((2, 2)), b=np.zeros(3, np.int16)), stats=True)
    assert report.reasons() == []
    assert report.format == "numpy archive"
    assert {one.name: (one.element_type.name, one.shape) for one in report.tensors} == {
        "w": ("float64", (2, 2)),
        "b": ("int16", (3,)),
    }


@pytest.mark.parametrize("data", [with_payload(), zipped({"a.npy": saved(np.ones(2)), "b.npy": with_payload()})])
def test_a_payload_among_objects_is_unsafe(data: bytes, tmp_path: Path) -> None:
    report = inspected(tmp_path, data)
    assert report.exit_code(strict=False) == 4
    assert "posix.system" in report.reasons()[0]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (saved(np.ones(4))[:-1], "32 bytes of elements are announced and 31 follow"),
        (saved(np.ones(4)) + b"x", "33 follow"),
        (saved(np.array([None])) + b"x", "after the end of its pickle"),
        (saved(np.ones(4)).replace(b"(4,)", b"(-4)"), "sound shape"),
        (saved(np.ones(4)).replace(b"<f8", b"<q9"), "element type"),
        (saved(np.ones(4))[:20], "announced"),
        (b"\x93NUMPY\x09\x00", "version 9.0"),
        (npz(w=np.ones(4)).replace(np.ones(4).tobytes(), np.zeros(4).tobytes()), "checksum"),
        (npz(w=np.ones(4)) + b"x", "after the end of the zip archive"),
    ],
)
def test_a_damaged_file_is_corrupt_and_says_why(data: bytes, reason: str, tmp_path: Path) -> None:
    report = inspected(tmp_path, data)
    assert report.exit_code(strict=False) == 5
    assert any(reason in told for told in report.reasons())
