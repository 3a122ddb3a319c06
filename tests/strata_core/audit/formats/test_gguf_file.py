from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.strata_core.audit.building import inspected


def string(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def gguf(metadata: dict[str, bytes], tensors: list[tuple[str, tuple[int, ...], int, int]], data: bytes) -> bytes:
    """A GGUF of version 3; metadata as type and value, tensors as (name, dims, type, offset)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(string(key) + value for key, value in metadata.items())
    for name, dims, kind, offset in tensors:
        head += string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
    return head + bytes(-len(head) % 32) + data


def text(value: str) -> bytes:
    return struct.pack("<I", 8) + string(value)


METADATA = {
    "general.architecture": text("llama"),
    "llama.block_count": struct.pack("<II", 4, 2),
    "tokenizer.ggml.tokens": struct.pack("<IIQ", 9, 8, 2) + string("a") + string("b"),
    "tokenizer.ggml.scores": struct.pack("<IIQ2f", 9, 6, 2, 0.0, 1.0),
}
TENSORS = [("w", (4, 2), 0, 0), ("q", (32, 2), 2, 32)]
DATA = struct.pack("<8f", *range(8)) + bytes(36) + bytes(28)
TEMPLATE = "tokenizer.chat_template"


def test_metadata_and_tensors_are_listed(tmp_path: Path) -> None:
    report = inspected(tmp_path, gguf(METADATA, TENSORS, DATA), stats=True)
    assert report.reasons() == []
    assert report.format == "gguf"
    assert report.settings == {"general.architecture": "llama", "llama.block_count": 2}
    shown = {one.name: (one.element_type.name, one.shape, one.size_bytes) for one in report.tensors}
    assert shown == {"w": ("float32", (2, 4), 32), "q": ("q4_0", (2, 32), 36)}
    assert report.stats is not None
    assert report.stats["w"]["max"] == 7.0


def test_a_plain_template_is_named_and_not_accused(tmp_path: Path) -> None:
    template = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] }}{% endfor %}"
    report = inspected(tmp_path, gguf({**METADATA, TEMPLATE: text(template)}, TENSORS, DATA))
    assert report.verdict == "ok"
    assert any("a template of" in note for note in report.notes)


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ x|attr('y') }}",
        "{{ cycler._next }}",
        "{{ ''['\\x5f\\x5fa'] }}",
    ],
)
def test_a_template_that_reaches_out_is_unsafe(template: str, tmp_path: Path) -> None:
    report = inspected(tmp_path, gguf({TEMPLATE: text(template)}, TENSORS, DATA))
    assert report.exit_code(strict=False) == 4
    assert "reaches out of its sandbox" in report.reasons()[0]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (gguf(METADATA, TENSORS, DATA)[:-60], "cut short"),
        (gguf(METADATA, TENSORS, DATA)[:40], "announced"),
        (gguf(METADATA, TENSORS, DATA + bytes(64)), "after the last tensor"),
        (gguf(METADATA, [("w", (4, 2), 0, 0), ("v", (4,), 0, 0)], DATA), "overlaps"),
        (gguf(METADATA, [("w", (4,), 0, 0), ("w", (4,), 0, 32)], DATA), "listed twice"),
        (gguf(METADATA, [("w", (4, 2), 99, 0)], DATA), "unknown type 99"),
        (gguf(METADATA, [("q", (31, 2), 2, 0)], DATA), "do not fill blocks"),
        (gguf(METADATA, [("q", (1 << 62, 1 << 62), 0, 0)], DATA), "elements"),
        (gguf({"a": struct.pack("<I", 77)}, [], b""), "unknown type 77"),
        (gguf({"a": struct.pack("<IIQ", 9, 8, 1 << 60)}, [], b""), "a list of"),
        (gguf({"a": struct.pack("<IIQ", 9, 4, 1 << 60)}, [], b""), "announced"),
        (gguf({"general.alignment": struct.pack("<II", 4, 0)}, [], b""), "general.alignment"),
        (b"GGUF" + struct.pack("<IQQ", 9, 0, 0), "version 9"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 40, 0), "tensors"),
    ],
)
def test_a_damaged_file_is_corrupt_and_says_why(data: bytes, reason: str, tmp_path: Path) -> None:
    report = inspected(tmp_path, data)
    assert report.exit_code(strict=False) == 5
    assert any(reason in told for told in report.reasons())
