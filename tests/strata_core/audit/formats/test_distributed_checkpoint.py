from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from strata_core.audit import inspect_checkpoint
from tests.strata_core.audit.building import call, name, program, text

torch = pytest.importorskip("torch")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    import torch.distributed.checkpoint as distributed

    value = {"model": {"w": torch.randn(8, 4), "b": torch.randn(8).bfloat16()}, "step": 7, "config": {"layers": 1}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        distributed.save(value, checkpoint_id=str(tmp_path / "c"), no_dist=True)
    return tmp_path / "c"


def shard(folder: Path) -> Path:
    return next(folder.glob("*.distcp"))


def test_names_types_and_the_step_are_read(saved: Path) -> None:
    report = inspect_checkpoint(saved, stats=True)
    assert report.reasons() == []
    assert report.step == 7
    found = {tensor.name: (tensor.element_type.name, tensor.shape) for tensor in report.tensors}
    assert found == {"model.w": ("float32", (8, 4)), "model.b": ("bfloat16", (8,))}
    assert report.totals["parameters"] == 40


def test_a_missing_shard_is_named(saved: Path) -> None:
    missing = shard(saved)
    missing.unlink()
    report = inspect_checkpoint(saved)
    assert report.verdict == "corrupt"
    assert missing.name in report.reasons()[0]


def test_a_cut_shard_names_the_items(saved: Path) -> None:
    shard(saved).write_bytes(shard(saved).read_bytes()[:200])
    report = inspect_checkpoint(saved)
    assert report.verdict == "corrupt"
    assert any("model.w" in reason for reason in report.reasons())


def test_a_changed_bit_of_a_shard_is_found(saved: Path) -> None:
    data = bytearray(shard(saved).read_bytes())
    at = data.find(b"archive/data/0")
    data[at + 80] ^= 1
    shard(saved).write_bytes(bytes(data))
    assert inspect_checkpoint(saved).verdict == "corrupt"


def test_a_payload_in_the_metadata_is_found(saved: Path) -> None:
    metadata = saved / ".metadata"
    data = metadata.read_bytes()
    payload = call(name("posix", "system"), text("touch CANARY")) + b"0"
    metadata.write_bytes(data[:2] + payload + data[11:])
    assert inspect_checkpoint(saved).verdict == "unsafe"


def test_a_payload_in_a_nested_archive_is_found(saved: Path) -> None:
    """Objects are torch archives inside the shard; one is replaced by a raw pickle of the same size."""
    data = shard(saved).read_bytes()
    at = data.find(b"PK\x03\x04")
    evil = program(call(name("posix", "system"), text("touch CANARY")))
    shard(saved).write_bytes(data[:at] + evil + data[at + len(evil) :])
    assert inspect_checkpoint(saved).verdict == "unsafe"


@pytest.mark.parametrize("target", ["../out.distcp", "/etc/passwd"])
def test_a_shard_outside_the_folder_is_not_opened(target: str, saved: Path) -> None:
    metadata = saved / ".metadata"
    old = shard(saved).name.encode()
    data = metadata.read_bytes()
    assert data.count(bytes([len(old)]) + old) >= 1
    changed = data.replace(bytes([len(old)]) + old, bytes([len(target)]) + target.encode())
    # The frame is dropped, for its length no longer fits.
    metadata.write_bytes(changed[:2] + changed[11:])
    report = inspect_checkpoint(saved)
    assert report.verdict == "corrupt"
    assert any("leads out of the folder" in reason for reason in report.reasons())


def test_chunks_of_two_ranks_make_one_tensor(tmp_path: Path) -> None:
    """A tensor sharded over rows, as the planner of two ranks would describe it."""
    tensor = sharded_tensor(tmp_path)
    report = inspect_checkpoint(tmp_path / "c", stats=True)
    assert report.reasons() == []
    assert report.tensors[0].shape == tuple(tensor.shape)
    assert report.stats is not None
    assert report.stats["w"]["max"] == pytest.approx(float(tensor.max()))


def sharded_tensor(tmp_path: Path) -> Any:
    import io
    import pickle

    from torch.distributed.checkpoint.filesystem import _StorageInfo
    from torch.distributed.checkpoint.metadata import (
        ChunkStorageMetadata,
        Metadata,
        MetadataIndex,
        TensorProperties,
        TensorStorageMetadata,
    )

    folder = tmp_path / "c"
    folder.mkdir()
    tensor = torch.randn(6, 4)
    stored, chunks = {}, []
    for rank, start in enumerate((0, 4)):
        part = tensor[start : start + 4].clone()
        file = io.BytesIO()
        torch.save(part, file)
        (folder / f"__{rank}_0.distcp").write_bytes(file.getvalue())
        offset = torch.Size([start, 0])
        chunks.append(ChunkStorageMetadata(offset, part.size()))
        stored[MetadataIndex("w", offset)] = _StorageInfo(f"__{rank}_0.distcp", 0, len(file.getvalue()))
    described = TensorStorageMetadata(TensorProperties(dtype=torch.float32), tensor.size(), chunks)
    (folder / ".metadata").write_bytes(pickle.dumps(Metadata({"w": described}, None, stored)))
    return tensor
