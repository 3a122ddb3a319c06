"""Plain lists of checksums: SHA256SUMS in the forms that tools write it, and JSON with nothing but files."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from strata_core.errors import DataError
from strata_core.manifest import verify

CASES = Path(__file__).resolve().parents[3].parent / "shared" / "cases"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "a.bin").write_bytes(b"\x00\x01\x02\x03")
    (folder / "b c.bin").write_bytes(b"\r\n")
    return folder


def checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("style", ["text", "binary", "crlf", "mark", "dot", "upper", "comment"])
def test_sha256sums_is_read_in_the_forms_that_tools_write(tree: Path, style: str) -> None:
    separator = " *" if style == "binary" else "  "
    start = "./" if style == "dot" else ""
    lines = [f"{checksum(path)}{separator}{start}{path.name}" for path in sorted(tree.iterdir())]
    if style == "upper":
        lines = [line[:64].upper() + line[64:] for line in lines]
    if style == "comment":
        lines.insert(0, "# made by hand")
    end = "\r\n" if style == "crlf" else "\n"
    mark = b"\xef\xbb\xbf" if style == "mark" else b""
    (tree / "SHA256SUMS").write_bytes(mark + "".join(line + end for line in lines).encode())
    for path in (tree, tree / "SHA256SUMS"):
        report = verify(path)
        assert report.ok and report.checked == 2 and report.describes == "listing"


def test_what_sha256sum_itself_prints_is_read_also_with_odd_names(tree: Path) -> None:
    for name in ("new\nline", "back\\slash", " leading", "*star", "donn\u00e9es"):
        (tree / name).write_bytes(name.encode())
    names = sorted(path.name for path in tree.iterdir() if path.name != "back\\slash")
    printed = subprocess.run(["sha256sum", "--", *names], cwd=tree, capture_output=True, check=True).stdout
    (tree / "SHA256SUMS").write_bytes(printed)
    report = verify(tree / "SHA256SUMS")
    assert report.ok and report.checked == 6
    assert report.notes == ("back\\slash: not listed, so not checked",)


def test_a_name_that_is_not_utf8_is_found_by_its_bytes(tree: Path) -> None:
    (Path(tree) / "bad\udcff").write_bytes(b"content")
    printed = subprocess.run(["sha256sum", b"bad\xff"], cwd=tree, capture_output=True, check=True).stdout
    (tree / "SHA256SUMS").write_bytes(printed)
    assert verify(tree).ok


def test_line_ends_inside_a_file_are_never_normalised(tree: Path) -> None:
    (tree / "text").write_bytes(b"one\n")
    (tree / "SHA256SUMS").write_text(f"{checksum(tree / 'text')}  text\n")
    (tree / "text").write_bytes(b"one\r\n")
    assert verify(tree).paths("changed") == ["text"]


def test_every_kind_of_fault_in_a_sha256sums_is_told_at_once(tree: Path) -> None:
    lines = [
        f"{'0' * 64}  a.bin",
        f"{checksum(tree / 'b c.bin')}  b c.bin",
        f"{checksum(tree / 'b c.bin')} *./b c.bin",
        f"{'0' * 64}  gone",
        f"{'0' * 64}  ../outside",
        "not a checksum",
    ]
    (tree / "SHA256SUMS").write_text("\n".join(lines))
    report = verify(tree)
    assert report.paths("changed") == ["a.bin"]
    assert report.paths("missing") == ["gone"]
    assert report.paths("other") == ["../outside", "SHA256SUMS:6", "b c.bin"]


def test_a_json_list_of_files_is_complete_so_what_it_leaves_out_is_extra(tree: Path) -> None:
    files = [{"path": "a.bin", "bytes": 4, "sha256": checksum(tree / "a.bin")}]
    (tree / "manifest.json").write_text(json.dumps({"version": 1, "files": files}))
    assert verify(tree).paths("extra") == ["b c.bin"]


@pytest.mark.parametrize("content", [b"", b"hello\n", bytes(range(256)), b"[1]", b"{}", b'{"files": 1}'])
def test_anything_else_is_refused(tree: Path, content: bytes) -> None:
    (tree / "list").write_bytes(content)
    with pytest.raises(DataError, match="list"):
        verify(tree / "list")


CASE_M05 = [
    "SHA256SUMS.lf",
    "SHA256SUMS.crlf",
    "SHA256SUMS.bom",
    "SHA256SUMS.star",
    "manifest.crlf.json",
    "manifest.bom.json",
]


@pytest.mark.parametrize("name", CASE_M05)
def test_case_m05_lists_written_on_other_systems_find_sound_files(tmp_path: Path, name: str) -> None:
    if not CASES.is_dir():
        pytest.skip("the acceptance cases are not here")
    folder = tmp_path / "tree"
    shutil.copytree(CASES / "M05/tree", folder)
    folder.chmod(0o755)
    shutil.copyfile(CASES / "M05" / name, folder / name)
    assert verify(folder / name).ok


def test_case_m05_a_text_with_other_line_ends_has_changed(tmp_path: Path) -> None:
    if not CASES.is_dir():
        pytest.skip("the acceptance cases are not here")
    for name in ("manifest_text.json", "text.txt"):
        shutil.copyfile(CASES / "M05" / name, tmp_path / name)
    assert verify(tmp_path / "manifest_text.json").paths("changed") == ["text.txt"]
