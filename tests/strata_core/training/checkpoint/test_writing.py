import hashlib
import mmap
import os
import resource

import pytest

from strata_core.errors import StorageError
from strata_core.training.checkpoint.writing import FileContents, write_files


def blocks(data):
    buffer = mmap.mmap(-1, -(-len(data) // 4096) * 4096)
    buffer[: len(data)] = data
    return FileContents(memoryview(buffer), len(data), in_blocks=True)


@pytest.mark.parametrize("size_bytes", [1, 4095, 4096, 4097, (16 << 20) + 5])
def test_files_hold_their_bytes_and_the_digests_are_those_of_the_files(tmp_path, size_bytes):
    data = os.urandom(size_bytes)
    entries = write_files(tmp_path, {"b": blocks(data), "a": FileContents.of(b"small")}, shown_as=tmp_path)
    assert (tmp_path / "b").read_bytes() == data
    assert (tmp_path / "a").read_bytes() == b"small"
    assert [(entry.path, entry.size, entry.sha256) for entry in entries] == [
        ("a", 5, hashlib.sha256(b"small").hexdigest()),
        ("b", size_bytes, hashlib.sha256(data).hexdigest()),
    ]


def test_what_cannot_go_past_the_page_cache_goes_through_it(tmp_path):
    data = os.urandom(10_000)
    shifted = memoryview(b"x" + data)[1:]
    write_files(tmp_path, {"a": FileContents(shifted, len(data), in_blocks=True)}, shown_as=tmp_path)
    assert (tmp_path / "a").read_bytes() == data


def test_an_existing_file_is_never_written_over(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(StorageError, match="File exists"):
        write_files(tmp_path, {"a": FileContents.of(b"new")}, shown_as=tmp_path)
    assert (tmp_path / "a").read_bytes() == b"old"


@pytest.mark.parametrize("limit_bytes", [8192, 10_001])
def test_a_refusal_names_the_final_path_and_the_bytes_wanted(tmp_path, limit_bytes):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        with pytest.raises(StorageError, match=r"final/big \(123,456 bytes\).*limit on file sizes"):
            write_files(tmp_path, {"big": blocks(bytes(123_456))}, shown_as=tmp_path / "final")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
