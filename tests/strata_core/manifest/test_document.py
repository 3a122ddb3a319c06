"""The manifest file: what it holds, what its digest covers, what a damaged one does."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from strata_core.errors import DataError
from strata_core.manifest import FileEntry, Manifest, Parent

SHA = "0123456789abcdef" * 4
MANIFEST = Manifest(
    describes="run",
    files=(FileEntry("b.txt", 3, SHA), FileEntry("a.txt", 0, SHA)),
    parents=(Parent("corpus", SHA, "../corpus"),),
    record={"seed": 1234, "learning_rate": 6e-4, "name": "é"},
    state={"final": False, "logs": []},
    times={"started": "2025-01-01T00:00:00+00:00"},
)


def test_the_digest_is_that_of_the_json_without_what_may_differ_between_machines() -> None:
    text = (
        '{"describes":"run","files":['
        f'{{"path":"a.txt","sha256":"{SHA}","size":0}},{{"path":"b.txt","sha256":"{SHA}","size":3}}],"format_version":1,'
        f'"parents":[{{"describes":"corpus","digest":"{SHA}"}}],'
        '"record":{"learning_rate":0.0006,"name":"é","seed":1234}}'
    )
    assert MANIFEST.digest == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    "other",
    [
        replace(MANIFEST, state={"final": True}),
        replace(MANIFEST, times={"started": "2026-01-01T00:00:00+00:00"}),
        replace(MANIFEST, parents=(Parent("corpus", SHA, "/elsewhere"),)),
        replace(MANIFEST, files=MANIFEST.files[::-1]),
    ],
)
def test_state_times_places_and_order_do_not_change_the_identity(other: Manifest) -> None:
    assert other.digest == MANIFEST.digest


@pytest.mark.parametrize(
    "other",
    [
        replace(MANIFEST, describes="corpus"),
        replace(MANIFEST, files=MANIFEST.files[:1]),
        replace(MANIFEST, parents=()),
        replace(MANIFEST, parents=(Parent("corpus", SHA[::-1], "../corpus"),)),
        replace(MANIFEST, record={**MANIFEST.record, "seed": 1235}),
    ],
)
def test_anything_else_changes_the_identity(other: Manifest) -> None:
    assert other.digest != MANIFEST.digest


def test_a_manifest_reads_back_as_it_was_written(tmp_path: Path) -> None:
    MANIFEST.write(tmp_path)
    for place in (tmp_path, tmp_path / "manifest.json"):
        found = Manifest.read(place)
        assert found == replace(MANIFEST, files=MANIFEST.files[::-1])
        assert found.digest == MANIFEST.digest
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_the_file_is_one_line_of_json_with_the_keys_of_the_format(tmp_path: Path) -> None:
    MANIFEST.write(tmp_path)
    data = (tmp_path / "manifest.json").read_bytes()
    assert data.endswith(b"}\n") and data.count(b"\n") == 1
    assert list(json.loads(data)) == [
        "checksum",
        "describes",
        "files",
        "format_version",
        "parents",
        "record",
        "state",
        "times",
    ]


@pytest.mark.parametrize("bit", range(8))
def test_a_single_bit_flipped_anywhere_in_the_file_is_noticed(tmp_path: Path, bit: int) -> None:
    MANIFEST.write(tmp_path)
    path = tmp_path / "manifest.json"
    data = path.read_bytes()
    for position in range(bit, len(data), 8):
        path.write_bytes(data[:position] + bytes([data[position] ^ 1 << bit]) + data[position + 1 :])
        with pytest.raises(DataError, match=r"manifest\.json"):
            Manifest.read(path)


def test_line_ends_and_a_byte_order_mark_added_on_the_way_are_accepted(tmp_path: Path) -> None:
    content = json.loads(MANIFEST.to_bytes())
    text = json.dumps(content, indent=1, ensure_ascii=False).replace("\n", "\r\n")
    (tmp_path / "manifest.json").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert Manifest.read(tmp_path).digest == MANIFEST.digest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format_version": 2}, "format_version is 2"),
        ({"extra": 1}, "unknown key 'extra'"),
        ({"files": {}}, "files is dict"),
        ({"files": [1]}, "entry 0"),
        ({"files": [{"path": "a", "size": -1, "sha256": SHA}]}, "malformed size"),
        ({"files": [{"path": "a", "size": True, "sha256": SHA}]}, "malformed size"),
        ({"files": [{"path": "a", "size": 1, "sha256": SHA.upper()}]}, "malformed digest"),
        ({"files": [{"path": "a", "size": 1, "sha256": SHA}] * 2}, "listed twice"),
        ({"files": [{"path": "../a", "size": 1, "sha256": SHA}]}, "climbs out"),
        ({"parents": [{"describes": "run", "digest": "1"}]}, "parent's digest"),
        ({"parents": [{"describes": "run", "digest": SHA, "path": 1}]}, "not text"),
        ({"parents": ["run"]}, "a parent"),
        ({"state": []}, "state is list"),
    ],
)
def test_a_manifest_of_another_shape_is_refused_with_the_reason(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    content = json.loads(MANIFEST.to_bytes()) | change
    del content["checksum"]
    (tmp_path / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match=message):
        Manifest.read(tmp_path)


@pytest.mark.parametrize("key", ["describes", "files", "parents", "record", "state", "times", "format_version"])
def test_a_manifest_without_one_of_its_keys_is_refused(tmp_path: Path, key: str) -> None:
    content = json.loads(MANIFEST.to_bytes())
    del content[key]
    (tmp_path / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match=key):
        Manifest.read(tmp_path)


def test_a_folder_without_a_manifest_is_a_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"manifest\.json"):
        Manifest.read(tmp_path)


@pytest.mark.parametrize("path", ["../a", "/a", "a//b", "~a", "a\\b", "C:a", "", "bad\udcff"])
def test_a_path_that_is_not_plain_cannot_be_listed(tmp_path: Path, path: str) -> None:
    with pytest.raises(DataError):
        Manifest("corpus", files=(FileEntry(path, 1, SHA),)).write(tmp_path)
    assert list(tmp_path.iterdir()) == []
