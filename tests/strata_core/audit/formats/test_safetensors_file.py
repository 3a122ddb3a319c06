from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from tests.strata_core.audit.building import call, floats, inspected, name, program, safetensors, text


def entry(start: int, end: int, shape: tuple[int, ...] = (4,), kind: str = "F32") -> dict[str, Any]:
    return {"dtype": kind, "shape": list(shape), "data_offsets": [start, end]}


def test_tensors_and_metadata_are_listed(tmp_path: Path) -> None:
    header = {
        "__metadata__": {"note": "x"},
        "a": entry(0, 16),
        "b": entry(16, 16, (0, 3)),
        "c": entry(16, 20, (), "I32"),
    }
    report = inspected(tmp_path, safetensors(header, floats(1, 2, 3, 4) + b"\1\0\0\0"))
    assert report.verdict == "ok"
    assert [(tensor.name, tensor.element_type.name, tensor.shape) for tensor in report.tensors] == [
        ("a", "float32", (4,)),
        ("b", "float32", (0, 3)),
        ("c", "int32", ()),
    ]
    assert report.details["metadata"] == {"note": "x"}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (safetensors({"a": entry(0, 16)}, bytes(11)), "16 bytes of data are announced and 11 are present"),
        (safetensors({"a": entry(0, 16)}, bytes(18)), "2 bytes too many"),
        (safetensors({"a": entry(0, 16), "b": entry(8, 24)}, bytes(24)), "overlaps"),
        (safetensors({"a": entry(0, 16), "b": entry(20, 36)}, bytes(36)), "belong to none"),
        (safetensors({"a": entry(4, 20)}, bytes(20)), "belong to none"),
        (safetensors({"a": entry(0, 16, (5,))}, bytes(16)), "takes 20 bytes"),
        (safetensors({"a": entry(16, 0)}, bytes(16)), "takes 16 bytes"),
        (safetensors({"a": entry(0, 16, (-4,))}, bytes(16)), "no short list of counts"),
        (safetensors({"a": entry(0, 16, kind="F31")}, bytes(16)), "unknown dtype F31"),
        (safetensors({"a": {**entry(0, 16), "more": 1}}, bytes(16)), "something else"),
        (safetensors({"a": entry(0, 16), "__metadata__": {"x": 1}}, bytes(16)), "no table of texts"),
        (safetensors(b'{"a":1,"a":2}'), "given twice"),
        (safetensors(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "nested too deeply"),
        (safetensors(b'{"\xff":{}}'), "not UTF-8"),
        (safetensors(b"{oops"), "not valid JSON"),
        (struct.pack("<Q", 1 << 40) + b'{"a":1}', "a header of 1,099,511,627,776 bytes"),
        (struct.pack("<Q", 1 << 63) + b'{"a":1}', "is announced"),
        (safetensors(b'{"a":[' + b"[]," * 2_000_000 + b"[]]}"), "no checkpoint needs that many"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_fault_is_corrupt_and_named(data: bytes, reason: str, tmp_path: Path) -> None:
    report = inspected(tmp_path, data)
    assert report.verdict == "corrupt"
    assert reason in report.reasons()[0]


@pytest.mark.parametrize("kind", ["F64", "F16", "BF16", "F8_E4M3", "F8_E5M2", "C64", "I64", "U16", "BOOL"])
def test_sizes_of_element_types_agree_with_the_library(kind: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("safetensors.torch")
    types = {
        "F64": torch.float64,
        "F16": torch.float16,
        "BF16": torch.bfloat16,
        "F8_E4M3": torch.float8_e4m3fn,
        "F8_E5M2": torch.float8_e5m2,
        "C64": torch.complex64,
        "I64": torch.int64,
        "U16": torch.uint16,
        "BOOL": torch.bool,
    }
    tensor = torch.ones(6).to(types[kind])
    report = inspected(tmp_path, library.save({"w": tensor}))
    assert report.verdict == "ok"
    assert report.tensors[0].size_bytes == tensor.nbytes


def test_a_file_that_a_pickle_reader_would_run_is_unsafe(tmp_path: Path) -> None:
    """BINFLOAT takes eight bytes, the last of them the brace, so both readings of the file get past its start."""
    payload = call(name("posix", "system"), text("touch CANARY"))
    data = b"G" + bytes(7) + b"{" + b"0" + payload + b"."
    report = inspected(tmp_path, data.ljust(0x47 + 8, b" "))
    assert report.format == "safetensors"
    assert report.verdict == "unsafe"


def test_a_pickle_is_a_pickle_under_any_name(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(program(call(name("posix", "system"), text("touch CANARY"))))
    from strata_core.audit import inspect_checkpoint

    report = inspect_checkpoint(path)
    assert (report.format, report.verdict) == ("pickle", "unsafe")


@pytest.mark.parametrize(
    "header",
    [
        b'{"a":{"dtype":"F32","shape":[-0],"data_offsets":[0,0]}}',
        b'{"\\ud800":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}',
        b'{"__metadata__":{"a":"\\ud800"}}',
    ],
)
def test_what_python_and_the_reference_reader_take_differently_is_corrupt(header: bytes, tmp_path: Path) -> None:
    assert inspected(tmp_path, safetensors(header)).verdict == "corrupt"
