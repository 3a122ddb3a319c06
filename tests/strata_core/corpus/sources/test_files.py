"""Finding the files to read."""

import os
from pathlib import Path

import pytest

from strata_core.corpus.sources.files import escape_name, find_files
from strata_core.errors import DataError, UsageError


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Files, hidden names, an unknown suffix, and links to a file, a folder and nowhere."""
    root = tmp_path / "tree"
    names = ["b.txt", "a.txt", "part-10.txt", "part-9.txt", "sub/d.jsonl.gz"]
    for name in [*names, ".git/x.txt", ".hidden.txt", "notes.md"]:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    (root / "Empty").mkdir()
    (root / "a-link.txt").symlink_to("b.txt")
    (root / "sub" / "loop").symlink_to("..")
    (root / "dangling.txt").symlink_to("missing.txt")
    return root


def test_a_folder_is_walked_in_the_order_of_path_bytes(tree: Path) -> None:
    files, _ = find_files([tree])
    assert [file.name for file in files] == ["a.txt", "b.txt", "part-10.txt", "part-9.txt", "sub/d.jsonl.gz"]


def test_what_is_not_read_is_named_with_the_reason(tree: Path) -> None:
    _, passed_over = find_files([tree])
    assert {one.name: one.reason for one in passed_over} == {
        ".git": "hidden",
        ".hidden.txt": "hidden",
        "a-link.txt": "a link to a file that is read under another name",
        "dangling.txt": "a link that leads nowhere",
        "notes.md": "its name does not tell what it holds",
        "sub/loop": "a link to a folder",
    }


def test_links_to_one_file_elsewhere_are_read_once(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("once")
    root = tmp_path / "tree"
    root.mkdir()
    (root / "one.txt").symlink_to(outside)
    (root / "two.txt").symlink_to(outside)
    files, passed_over = find_files([root])
    assert [file.name for file in files] == ["one.txt"]
    assert [one.name for one in passed_over] == ["two.txt"]


def test_format_and_compression_go_by_the_name(tmp_path: Path) -> None:
    names = ["a.txt", "b.TXT", "c.jsonl", "d.ndjson.zst", "e.text.gz"]
    for name in names:
        (tmp_path / name).write_bytes(b"x")
    files, _ = find_files([tmp_path / name for name in names])
    assert [(file.format, file.compression) for file in files] == [
        ("text", "none"),
        ("text", "none"),
        ("jsonl", "none"),
        ("jsonl", "zstd"),
        ("text", "gzip"),
    ]


def test_a_format_that_is_asked_for_wins_over_names(tree: Path) -> None:
    files, _ = find_files([tree], format="jsonl")
    assert {file.format for file in files} == {"jsonl"}
    assert "notes.md" in [file.name for file in files]


def test_inputs_keep_their_order(tmp_path: Path) -> None:
    for name in ("z.txt", "a.txt"):
        (tmp_path / name).write_text(name)
    files, _ = find_files([tmp_path / "z.txt", "-", tmp_path / "a.txt"])
    assert [file.name for file in files] == ["z.txt", "-", "a.txt"]


@pytest.mark.parametrize(
    "make",
    [
        lambda root: root / "absent.txt",
        lambda root: root / "file.txt" / "below",
        lambda root: root / "folder.txt",
        lambda root: root / "table.csv",
        lambda root: root / "pipe.txt",
    ],
    ids=["absent", "below a file", "a folder named like a file", "unknown suffix", "a pipe"],
)
def test_an_input_that_cannot_be_is_refused_by_name(tmp_path: Path, make) -> None:
    (tmp_path / "file.txt").write_text("x")
    (tmp_path / "folder.txt").mkdir()
    (tmp_path / "table.csv").write_text("x")
    os.mkfifo(tmp_path / "pipe.txt")
    path = make(tmp_path)
    with pytest.raises(UsageError) as raised:
        find_files([path])
    assert str(path) in raised.value.message


def test_a_folder_without_anything_to_read_is_bad_data(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        find_files([tmp_path])


def test_standard_input_can_be_given_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="twice"):
        find_files(["-", "-"])


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "here.txt").write_text("x")
    files, _ = find_files(["~/here.txt"])
    assert files[0].path == tmp_path / "here.txt"


def test_names_that_are_not_utf8_are_escaped_reversibly() -> None:
    assert escape_name(os.fsdecode(b"bad\xff")) == "bad\\xff"
    assert escape_name("bad\\xff") == "bad\\\\xff"
    assert escape_name("données 日本") == "données 日本"
