"""The bytes of compressed and plain files."""

import gzip
import hashlib
import io
from pathlib import Path

import pytest
import zstandard

from strata_core.corpus.sources.files import find_files
from strata_core.corpus.sources.streams import open_stream
from strata_core.errors import DataError

TEXT = b"".join(b'{"text": "line %d"}\n' % number for number in range(5000))


def read(path: Path) -> bytes:
    (file,), _ = find_files([path])
    with open_stream(file) as stream:
        return stream.content.read()


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


@pytest.mark.parametrize(
    ("name", "data", "content"),
    [
        ("plain.jsonl", TEXT, TEXT),
        ("one.jsonl.gz", gzip.compress(TEXT), TEXT),
        ("members.jsonl.gz", gzip.compress(TEXT) + gzip.compress(b"more"), TEXT + b"more"),
        ("padded.jsonl.gz", gzip.compress(TEXT) + bytes(100), TEXT),
        ("one.jsonl.zst", zstd(TEXT), TEXT),
        ("frames.jsonl.zst", zstd(TEXT) + zstd(b"") + zstd(b"more"), TEXT + b"more"),
        ("skippable.jsonl.zst", zstd(TEXT) + b"\x50\x2a\x4d\x18\x03\0\0\0abc" + zstd(b"more"), TEXT + b"more"),
        ("empty.txt", b"", b""),
    ],
)
def test_the_content_comes_out_whole(tmp_path: Path, name: str, data: bytes, content: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    assert read(tmp_path / name) == content


@pytest.mark.parametrize(
    ("name", "data", "cause"),
    [
        ("cut.jsonl.gz", gzip.compress(TEXT)[:-30], "cut short"),
        ("trailer.jsonl.gz", gzip.compress(TEXT)[:-4], "cut short"),
        ("crc.jsonl.gz", gzip.compress(TEXT)[:-8] + bytes(4) + gzip.compress(TEXT)[-4:], "damaged"),
        ("tail.jsonl.gz", gzip.compress(TEXT) + b"garbage", "damaged"),
        ("not.jsonl.gz", TEXT, "not gzip"),
        ("empty.jsonl.gz", b"", "not gzip"),
        ("cut.jsonl.zst", zstd(TEXT)[:-30], "cut short"),
        ("header.jsonl.zst", zstd(TEXT) + zstd(TEXT)[:5], "cut short"),
        ("tail.jsonl.zst", zstd(TEXT) + b"garbage", "damaged"),
        ("not.jsonl.zst", TEXT, "not zstd"),
        ("named.txt", gzip.compress(TEXT), "is gzip"),
    ],
)
def test_damage_is_named_with_file_and_cause(tmp_path: Path, name: str, data: bytes, cause: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError) as raised:
        read(tmp_path / name)
    assert name in raised.value.message
    assert cause in raised.value.message


def test_a_source_is_described_as_it_lies_on_disk(tmp_path: Path) -> None:
    data = gzip.compress(TEXT)
    (tmp_path / "a.jsonl.gz").write_bytes(data)
    (file,), _ = find_files([tmp_path / "a.jsonl.gz"])
    with open_stream(file) as stream:
        stream.content.read()
        info = stream.finish()
    assert (info.name, info.size, info.sha256) == ("a.jsonl.gz", len(data), hashlib.sha256(data).hexdigest())


def test_a_small_frame_of_much_content_is_given_in_bounded_pieces(tmp_path: Path) -> None:
    path = tmp_path / "zeros.txt.zst"
    path.write_bytes(zstd(bytes(1 << 26)))
    (file,), _ = find_files([path])
    total = 0
    with open_stream(file) as stream:
        while piece := stream.content.read(io.DEFAULT_BUFFER_SIZE):
            total += len(piece)
    assert total == 1 << 26
