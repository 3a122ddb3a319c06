"""Files that torch itself writes, read back without it: names, types, shapes and values have to agree."""

from __future__ import annotations

import collections
import io
import pickle
import random
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strata_core.audit import inspect_checkpoint
from tests.strata_core.audit.building import call, inspected, name, program, table, text

torch = pytest.importorskip("torch")

TYPES = (
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
    torch.complex64,
    torch.complex128,
    torch.int8,
    torch.int64,
    torch.uint8,
    torch.uint16,
    torch.uint64,
    torch.bool,
)


def written(value: Any, layout: str) -> bytes:
    file = io.BytesIO()
    if layout == "pickle":
        pickle.dump(value, file)
    else:
        torch.save(value, file, _use_new_zipfile_serialization=layout == "zip")
    return file.getvalue()


@pytest.mark.parametrize("layout", ["zip", "legacy", "pickle"])
def test_every_element_type_is_listed_as_torch_has_it(layout: str, tmp_path: Path) -> None:
    value = {str(kind): torch.zeros(2, 3).to(kind) for kind in TYPES}
    report = inspected(tmp_path, written(value, layout), stats=True)
    assert report.verdict == "ok"
    found = {
        tensor.name: (f"torch.{tensor.element_type.name}", tensor.shape, tensor.size_bytes) for tensor in report.tensors
    }
    assert found == {
        # A dot in a key stays as it is.
        key: (str(tensor.dtype), tuple(tensor.shape), tensor.nbytes)
        for key, tensor in value.items()
    }


@pytest.mark.parametrize("layout", ["zip", "legacy", "pickle"])
def test_a_training_checkpoint_is_summarised(layout: str, tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.5)
    model(torch.ones(3)).sum().backward()
    optimizer.step()
    value = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "global_step": 12,
        "config": {"layers": 2, "name": "tiny"},
        "numpy": np.random.get_state(),
        "generator": np.random.default_rng(0),
        "python": random.getstate(),
        "counts": collections.Counter("aab"),
    }
    report = inspected(tmp_path, written(value, layout))
    assert report.reasons() == []
    assert report.step == 12
    assert report.settings == {"layers": 2, "name": "tiny"}
    assert report.totals["parameters"] == sum(parameter.numel() for parameter in model.parameters())
    assert report.optimizer is not None
    assert report.optimizer["kinds"] == {"step": 2, "exp_avg": 2, "exp_avg_sq": 2}


@pytest.mark.parametrize("layout", ["zip", "legacy"])
def test_sparse_quantised_nested_and_meta_tensors_are_listed(layout: str, tmp_path: Path) -> None:
    value = {
        "coo": torch.eye(3).to_sparse(),
        "csr": torch.eye(3).to_sparse_csr(),
        "quantised": torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8),
        "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "meta": torch.empty(5, device="meta"),
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }
    report = inspected(tmp_path, written(value, layout), stats=True)
    assert report.verdict == "ok"
    found = {tensor.name: (tensor.element_type.name, tensor.layout, tensor.shape) for tensor in report.tensors}
    assert found == {
        "coo": ("float32", "sparse_coo", (3, 3)),
        "csr": ("float32", "sparse_csr", (3, 3)),
        "quantised": ("qint8", "strided", (4,)),
        "nested": ("float32", "nested", (5,)),
        "meta": ("float32", "meta", (5,)),
        "parameter": ("float32", "strided", (2,)),
    }


@pytest.mark.parametrize("layout", ["zip", "legacy"])
def test_shared_elements_are_counted_once(layout: str, tmp_path: Path) -> None:
    weight, big = torch.randn(8, 4), torch.randn(1000, 100)
    value = {"wte": weight, "lm_head": weight, "slice": big[:1], "turned": weight.t(), "same": big[0]}
    report = inspected(tmp_path, written(value, layout))
    assert report.verdict == "ok"
    assert report.totals == {"tensors": 5, "parameters": 132, "elements": 132, "bytes": 128 + 400_000}
    assert sorted(map(sorted, report.sharing)) == [["lm_head", "turned", "wte"], ["same", "slice"]]
    assert any("99,900 unused" in note for note in report.notes)


def test_an_expanded_view_of_one_element_costs_its_storage(tmp_path: Path) -> None:
    report = inspected(tmp_path, written({"w": torch.zeros(1).expand(10**6, 10**6)}, "zip"), stats=True)
    assert report.verdict == "ok"
    assert report.tensors[0].size_bytes == 4
    assert report.tensors[0].overlaps_itself


def test_a_whole_module_is_listed_by_its_parameter_names(tmp_path: Path) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    report = inspected(tmp_path, written(module, "zip"))
    assert report.verdict == "unknown-global"
    assert sorted(tensor.name for tensor in report.tensors) == sorted(module.state_dict())


def test_a_script_archive_is_unsafe(tmp_path: Path) -> None:
    class Adder(torch.nn.Module):
        def forward(self, value: Any) -> Any:
            return value + 1

    path = tmp_path / "script.pt"
    torch.jit.trace(Adder(), torch.zeros(1)).save(str(path))
    report = inspect_checkpoint(path)
    assert report.verdict == "unsafe"
    assert "TorchScript" in report.reasons()[0]


LEGACY = written({"w": torch.arange(6.0).view(2, 3), "v": torch.ones(2)}, "legacy")


@pytest.mark.parametrize("cut", [1, 3, 9, 40])
def test_a_cut_legacy_file_says_what_is_missing(cut: int, tmp_path: Path) -> None:
    report = inspected(tmp_path, LEGACY[:-cut])
    assert report.verdict == "corrupt"
    assert report.format == "torch legacy"
    assert any("are left" in reason or "cut short" in reason for reason in report.reasons())


def test_bytes_after_a_legacy_file_are_told(tmp_path: Path) -> None:
    assert "3 bytes after the last storage" in inspected(tmp_path, LEGACY + b"abc").reasons()[0]


@pytest.mark.parametrize("place", range(5))
def test_a_payload_in_any_pickle_of_a_legacy_file_is_found(place: int, tmp_path: Path) -> None:
    payload = call(name("posix", "system"), text("touch CANARY")) + b"0"
    starts = [0]
    file = io.BytesIO(LEGACY)
    import pickletools

    for _ in range(4):
        for _ in pickletools.genops(file):
            pass
        starts.append(file.tell())
    at = starts[place] + 2
    assert inspected(tmp_path, LEGACY[:at] + payload + LEGACY[at:]).verdict == "unsafe"


def test_a_legacy_file_before_an_archive_is_read_as_torch_reads_it(tmp_path: Path) -> None:
    report = inspected(tmp_path, LEGACY + written({"x": torch.ones(1)}, "zip"))
    assert report.format == "torch legacy"
    assert report.verdict == "corrupt"


def tar_of(members: dict[str, bytes], kinds: dict[str, bytes] | None = None) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for member, data in members.items():
            entry = tarfile.TarInfo(member)
            entry.size = len(data)
            if kinds and member in kinds:
                entry.type, entry.linkname, entry.size = kinds[member], "/etc/passwd", 0
            archive.addfile(entry, io.BytesIO(data))
    return file.getvalue()


def old_checkpoint(pickled: bytes) -> dict[str, bytes]:
    """The oldest layout: one storage of six floats, one tensor of 2 x 3 under the key 7."""
    storages = pickle.dumps(1, 2) + program(b"(K\x05" + text("cpu") + name("torch", "FloatStorage") + b"t")
    storages += struct.pack("<q6f", 6, *range(6)) + pickle.dumps([], 2)
    tensors = pickle.dumps(1, 2) + program(b"(K\x07K\x05" + name("torch", "FloatTensor") + b"t")
    tensors += struct.pack("<ii2q2qq", 2, 0, 2, 3, 3, 1, 0)
    return {"sys_info": pickle.dumps({}, 2), "pickle": pickled, "storages": storages, "tensors": tensors}


def test_the_oldest_layout_is_read_as_torch_reads_it(tmp_path: Path) -> None:
    data = tar_of(old_checkpoint(program(table(w=text("7") + b"Q"))))
    path = tmp_path / "checkpoint"
    path.write_bytes(data)
    report = inspect_checkpoint(path, stats=True)
    assert report.verdict == "ok"
    assert report.format == "torch tar"
    assert [(tensor.name, tensor.shape) for tensor in report.tensors] == [("w", (2, 3))]
    assert report.stats is not None
    assert report.stats["w"]["max"] == 5.0
    loaded = torch.load(path, weights_only=False)
    assert loaded["w"].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("member", ["sys_info", "pickle", "storages", "tensors"])
def test_a_payload_in_any_member_of_a_tar_is_found(member: str, tmp_path: Path) -> None:
    members = old_checkpoint(program(table(w=text("7") + b"Q")))
    members[member] = program(call(name("posix", "system"), text("touch CANARY")))
    assert inspected(tmp_path, tar_of(members)).verdict == "unsafe"


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_a_tar_member_that_is_no_file_is_unsafe(kind: bytes, tmp_path: Path) -> None:
    members = old_checkpoint(program(b"N"))
    assert inspected(tmp_path, tar_of(members, {"storages": kind})).verdict == "unsafe"


@pytest.mark.parametrize("member", ["../storages", "/storages"])
def test_a_tar_member_that_climbs_out_is_unsafe(member: str, tmp_path: Path) -> None:
    assert inspected(tmp_path, tar_of({member: b"x"})).verdict == "unsafe"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty file"),
        (b"<html>404 not found</html>", "begins with <html>"),
        (b"7z\xbc\xaf\x27\x1c" + bytes(60), "a 7z archive"),
        (b"\x1f\x8b\x08" + bytes(30), "gzip"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (bytes(4096), "not a checkpoint"),
        (b"\x80\x02K\x01.", "a single int"),
        (b"PK\x05\x06" + bytes(18), "zip archive without records"),
    ],
)
def test_what_is_no_checkpoint_is_named_for_what_it_is(data: bytes, reason: str, tmp_path: Path) -> None:
    report = inspected(tmp_path, data)
    assert report.verdict == "corrupt"
    assert reason in report.reasons()[0]


def test_an_archive_after_the_end_of_a_tar_is_corrupt(tmp_path: Path) -> None:
    data = tar_of(old_checkpoint(program(table(w=text("7") + b"Q"))))
    assert inspected(tmp_path, data).verdict == "ok"
    report = inspected(tmp_path, data + b"PK\x05\x06" + bytes(18))
    assert report.verdict == "corrupt"
    assert any("bytes after the end of the tar" in reason for reason in report.reasons())
