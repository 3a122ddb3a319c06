"""Writing shards, read back byte by byte."""

import struct
from pathlib import Path

import numpy as np
import pytest

from strata_core.corpus.format import ShardInfo
from strata_core.corpus.text.shards import ShardWriter


def write(folder: Path, lengths: list[int], *, shard_tokens: int, batch: int) -> list[ShardInfo]:
    writer = ShardWriter(folder, "train", token_bytes=2, shard_tokens=shard_tokens)
    ids = np.arange(sum(lengths), dtype=np.uint16)
    done = 0
    for start in range(0, len(lengths), batch):
        here = lengths[start : start + batch]
        writer.add_documents(ids[done : done + sum(here)], np.array(here), text_bytes=10)
        done += sum(here)
    return list(writer.finish().shards)


def slow(lengths: list[int], shard_tokens: int) -> list[list[int]]:
    """Documents put into shards one after another; a shard is full when it holds the bound or more."""
    shards: list[list[int]] = []
    for length in lengths:
        if not shards or sum(shards[-1]) >= shard_tokens:
            shards.append([])
        shards[-1].append(length)
    return shards


@pytest.mark.parametrize("shard_tokens", [1, 7, 10, 100, 1000])
@pytest.mark.parametrize("batch", [1, 3, 50])
def test_documents_are_cut_into_shards_whatever_the_batches(tmp_path: Path, shard_tokens: int, batch: int) -> None:
    lengths = [3, 1, 12, 5, 5, 1, 1, 1, 30, 2]
    found = write(tmp_path, lengths, shard_tokens=shard_tokens, batch=batch)
    wanted = slow(lengths, shard_tokens)
    assert found == [ShardInfo(f"train-{at:05d}", sum(one), len(one)) for at, one in enumerate(wanted)]
    first = 0
    for info, one in zip(found, wanted, strict=True):
        ids = struct.unpack(f"<{info.tokens}H", (tmp_path / f"{info.name}.bin").read_bytes())
        assert list(ids) == list(range(first, first + info.tokens))
        offsets = struct.unpack(f"<{len(one) + 1}Q", (tmp_path / f"{info.name}.idx").read_bytes())
        assert list(offsets) == [sum(one[:at]) for at in range(len(one) + 1)]
        first += info.tokens


def test_a_document_of_a_file_is_as_one_of_an_array(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    ids = np.arange(9, dtype=np.uint16)
    (tmp_path / "tokens").write_bytes(ids.tobytes())
    one = ShardWriter(tmp_path / "a", "val", token_bytes=2, shard_tokens=5)
    one.add_documents(ids[:2], np.array([2]), 1)
    one.add_document_file(tmp_path / "tokens", 9, 8)
    one.add_documents(ids[:1], np.array([1]), 1)
    two = ShardWriter(tmp_path / "b", "val", token_bytes=2, shard_tokens=5)
    for part, text_bytes in ((ids[:2], 1), (ids, 8), (ids[:1], 1)):
        two.add_documents(part, np.array([len(part)]), text_bytes)
    assert one.finish() == two.finish()
    for name in ("val-00000.bin", "val-00000.idx", "val-00001.bin", "val-00001.idx"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_split_without_documents_has_no_files(tmp_path: Path) -> None:
    info = ShardWriter(tmp_path, "val", token_bytes=2, shard_tokens=5).finish()
    assert (info.documents, info.tokens, info.bytes, info.shards) == (0, 0, 0, ())
    assert list(tmp_path.iterdir()) == []


def test_what_is_discarded_leaves_no_files(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, "train", token_bytes=2, shard_tokens=5)
    writer.add_documents(np.arange(20, dtype=np.uint16), np.array([6, 6, 8]), 20)
    writer.add_documents(np.arange(1, dtype=np.uint16), np.array([1]), 1)
    assert len(list(tmp_path.iterdir())) == 8
    writer.discard()
    assert list(tmp_path.iterdir()) == []
