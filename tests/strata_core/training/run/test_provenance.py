"""The commit that a run's manifest names: the package's own, never that of a repository it merely lies in."""

import hashlib
import shutil
import struct
import zlib
from pathlib import Path

import pytest
import torch

import strata_core
from strata_core.training.distributed import ALONE
from strata_core.training.run.provenance import environment_record

PACKAGE_FILE = "strata_core/__init__.py"

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def add_object(repository: Path, kind: str, content: bytes) -> str:
    data = f"{kind} {len(content)}".encode() + b"\0" + content
    name = hashlib.sha1(data).hexdigest()
    place = repository / "objects" / name[:2] / name[2:]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(zlib.compress(data))
    return name


def write_index(repository: Path, tracked: dict[str, str]) -> None:
    """The index of version 2 (gitformat-index(5)): files by path with the names of their contents."""
    index = b"DIRC" + struct.pack(">II", 2, len(tracked))
    for path, blob in sorted(tracked.items()):
        entry = bytes(24) + struct.pack(">IIII", 0o100644, 0, 0, 0) + bytes.fromhex(blob)
        entry += struct.pack(">H", len(path)) + path.encode()
        index += entry + bytes(8 - len(entry) % 8)
    (repository / "index").write_bytes(index + hashlib.sha1(index).digest())


def make_repository(folder: Path, *, tracked: bool) -> str:
    """A repository with one commit around a package; gives the commit."""
    (folder / PACKAGE_FILE).parent.mkdir(parents=True)
    (folder / PACKAGE_FILE).write_text("")
    repository = folder / ".git"
    (repository / "refs" / "heads").mkdir(parents=True)
    blob = bytes.fromhex(add_object(repository, "blob", b""))
    package = add_object(repository, "tree", b"100644 __init__.py\0" + blob)
    tree = add_object(repository, "tree", b"40000 strata_core\0" + bytes.fromhex(package) if tracked else b"")
    person = "A <a@example.org> 0 +0000"
    commit = add_object(repository, "commit", f"tree {tree}\nauthor {person}\ncommitter {person}\n\nfirst\n".encode())
    (repository / "HEAD").write_text("ref: refs/heads/main\n")
    (repository / "refs" / "heads" / "main").write_text(f"{commit}\n")
    (repository / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
    write_index(repository, {PACKAGE_FILE: blob.hex()} if tracked else {})
    return commit


def recorded(folder: Path, monkeypatch) -> dict | None:
    monkeypatch.setattr(strata_core, "__file__", str(folder / PACKAGE_FILE))
    return environment_record(torch.device("cpu"), ALONE, deterministic=False)["code"]


def test_a_checkout_is_recorded_with_its_commit_and_whether_it_was_changed(tmp_path, monkeypatch):
    commit = make_repository(tmp_path, tracked=True)
    assert recorded(tmp_path, monkeypatch) == {"commit": commit, "dirty": False}
    (tmp_path / PACKAGE_FILE).write_text("changed = True\n")
    assert recorded(tmp_path, monkeypatch) == {"commit": commit, "dirty": True}


def test_the_commit_of_a_repository_that_the_package_is_merely_installed_in_is_not_recorded(tmp_path, monkeypatch):
    make_repository(tmp_path, tracked=False)
    assert recorded(tmp_path, monkeypatch) is None


def test_outside_a_repository_there_is_no_commit(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    (tmp_path / PACKAGE_FILE).parent.mkdir()
    (tmp_path / PACKAGE_FILE).write_text("")
    assert recorded(tmp_path, monkeypatch) is None
