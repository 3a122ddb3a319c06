"""Files and folders that are there whole or not at all."""

import errno
import os
import resource
import subprocess
import sys

import pytest

from strata_core.errors import PlaceTakenError, StorageError, UsageError
from strata_core.files import expand_path, folder_made_whole, point_link, remove_folder, storage_errors, write_file


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "file"
    write_file(path, b"old")
    write_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    write_file(path, b"old")
    code = f"""
import resource, signal
from strata_core.errors import StorageError
from strata_core.files import write_file
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_file({str(path)!r}, b"x" * 5000)
except StorageError as error:
    assert "5,000 bytes" in error.message and "file" in error.message
else:
    raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000


@pytest.mark.parametrize(
    ("number", "words"), [(errno.ENOSPC, "no space left"), (errno.EROFS, "read-only"), (errno.EDQUOT, "quota")]
)
def test_a_refusal_names_the_path_and_the_cause(tmp_path, number, words):
    with pytest.raises(StorageError, match=words) as caught, storage_errors(tmp_path / "big", wanted_bytes=12345):
        raise OSError(number, os.strerror(number))
    assert str(tmp_path / "big") in caught.value.message and "12,345" in caught.value.message


def test_a_folder_appears_when_everything_is_in_it(tmp_path):
    final = tmp_path / "made"
    with folder_made_whole(final) as aside:
        (aside / "one").write_text("1")
        assert not final.exists()
    assert (final / "one").read_text() == "1"
    assert [entry.name for entry in tmp_path.iterdir()] == ["made"]


def test_a_folder_whose_making_fails_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError), folder_made_whole(tmp_path / "made") as aside:
        (aside / "one").write_text("1")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_cleared(tmp_path):
    (tmp_path / ".made.partial" / "deep").mkdir(parents=True)
    (tmp_path / ".made.partial" / "deep" / "old").write_text("old")
    with folder_made_whole(tmp_path / "made") as aside:
        (aside / "new").write_text("new")
    assert [path.name for path in (tmp_path / "made").rglob("*")] == ["new"]


def test_an_existing_place_and_one_in_the_making_are_refused(tmp_path):
    (tmp_path / "there").write_text("")
    with pytest.raises(PlaceTakenError, match="exists already"), folder_made_whole(tmp_path / "there"):
        pass
    with (
        folder_made_whole(tmp_path / "made"),
        pytest.raises(PlaceTakenError, match="another process"),
        folder_made_whole(tmp_path / "made"),
    ):
        pass
    assert (tmp_path / "made").is_dir()


def test_a_link_moves_in_one_step(tmp_path):
    point_link(tmp_path / "latest", "one")
    point_link(tmp_path / "latest", "two")
    assert os.readlink(tmp_path / "latest") == "two"


def test_a_removed_folder_is_gone(tmp_path):
    (tmp_path / "old" / "deep").mkdir(parents=True)
    remove_folder(tmp_path / "old")
    assert list(tmp_path.iterdir()) == []


def test_a_tilde_is_the_home_folder_and_dollars_are_taken_as_written(monkeypatch):
    monkeypatch.setenv("HOME", "/somewhere")
    assert str(expand_path("~/x")) == "/somewhere/x"
    assert str(expand_path("~")) == "/somewhere"
    assert str(expand_path("$HOME/x")) == "$HOME/x"
    assert str(expand_path("a/~b")) == "a/~b"


def test_an_unknown_user_is_refused():
    with pytest.raises(UsageError, match="no-such-user"):
        expand_path("~no-such-user/x")


def test_without_a_home_variable_the_password_entry_counts(monkeypatch):
    monkeypatch.delenv("HOME")
    assert expand_path("~/x").is_absolute()
