"""A seeded mutation fuzzer of checkpoint files: `python -m tests.strata_core.audit.fuzz --files 20000`.

Sound files of every format are damaged (bits, cuts, splices, members moved between archives), inspected in a process of
its own (so that its time and memory can be told), and loaded by the format's own loader. What must never happen:
an exception, more than 2 s or 300 MB, or the verdict "ok" for a file that the loader refuses, or whose tensors changed
where a checksum can tell.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import pickle
import random
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LONGEST_SECONDS = 2.0
LARGEST_BYTES = 300 << 20
_BATCH = 500
_NUMBERS = (0, 1, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)
_LOADED_FORMATS = ("zip", "deflated", "views", "legacy", "safetensors")
"""Formats with a loader that damaged files can be given to: one that runs nothing a file names."""
_CHECKED_FORMATS = ("zip", "deflated", "views")
_EXPLAINED = ("don't know how to restore data location", "Unsupported operand")
"""Refusals that say nothing against a file: storages of a device that this machine lacks, and opcodes that pickle has
and torch's own restricted unpickler has not."""


@dataclass
class Outcome:
    """Counts by (format, verdict, what the loader did), the rules broken, and examples of disagreements."""

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    longest_seconds: float = 0.0
    largest_bytes: int = 0


def base_files() -> dict[str, bytes]:
    """Small sound checkpoints, by a name for their format."""
    import torch
    from safetensors.torch import save

    torch.manual_seed(0)
    weight = torch.randn(6, 4)
    state = {
        "model": {"weight": weight, "tied": weight, "bias": torch.randn(6).bfloat16()},
        "optimizer": {
            "state": {0: {"step": torch.tensor(3.0), "exp_avg": torch.zeros(6, 4)}},
            "param_groups": [{"lr": 1.0}],
        },
        "step": 3,
    }
    views = {"turned": weight.t(), "row": weight[2], "expanded": torch.ones(1).expand(5, 5), "id": torch.arange(7)}
    plain = _saved(torch, state)
    return {
        "zip": plain,
        "deflated": _repacked(plain, zipfile.ZIP_DEFLATED),
        "views": _saved(torch, views),
        "legacy": _with_fixed_keys(_saved(torch, state, _use_new_zipfile_serialization=False)),
        "pickle": pickle.dumps({"state": {"weight": weight}, "step": 3, "names": ["a", ("b", 1.5)]}),
        "tar": _tar_of({"sys_info": pickle.dumps({}, 2), **_oldest_members()}),
        "safetensors": save({"weight": weight, "half": weight.half(), "empty": torch.zeros(0, 3)}, {"format": "pt"}),
    }


def base_folders() -> dict[str, dict[str, bytes]]:
    """Small sound checkpoints that are folders, as the bytes of their files."""
    import torch
    import torch.distributed.checkpoint as distributed
    from safetensors.torch import save

    weights = {"a": torch.ones(4, 3), "b": torch.ones(5)}
    shards = {f"{name}.safetensors": save({name: tensor}) for name, tensor in weights.items()}
    index = {"weight_map": {name: f"{name}.safetensors" for name in weights}}
    strata = {
        "config.json": b"{}",
        "trainer.json": json.dumps({"progress": {"step": 3}}).encode(),
        "model.safetensors": save(weights),
        "optimizer.safetensors": save({"a.exp_avg": weights["a"]}),
    }
    listed = [
        {"path": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in strata.items()
    ]
    with tempfile.TemporaryDirectory() as name:
        distributed.save({"model": weights, "step": 3}, checkpoint_id=name, no_dist=True)
        written = {path.name: path.read_bytes() for path in Path(name).iterdir()}
    return {
        "distributed": written,
        "sharded": {**shards, "model.safetensors.index.json": json.dumps(index).encode()},
        "strata": {**strata, "manifest.json": json.dumps({"files": listed}).encode()},
    }


def _oldest_members() -> dict[str, bytes]:
    """One storage of six floats and one tensor of 2 x 3 under the key 7, in the layout of torch 0.1."""
    storages = pickle.dumps(1, 2) + b"\x80\x02(K\x05U\x03cpuctorch\nFloatStorage\nt."
    storages += struct.pack("<q6f", 6, *range(6)) + pickle.dumps([], 2)
    tensors = pickle.dumps(1, 2) + b"\x80\x02(K\x07K\x05ctorch\nFloatTensor\nt."
    tensors += struct.pack("<ii2q2qq", 2, 0, 2, 3, 3, 1, 0)
    return {"pickle": b"\x80\x02}U\x01wU\x017Qs.", "storages": storages, "tensors": tensors}


def _tar_of(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return file.getvalue()


def _saved(torch: Any, value: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


def _with_fixed_keys(data: bytes) -> bytes:
    """Legacy storage keys are addresses of the process; these are the same in every run."""
    found = dict.fromkeys(re.findall(rb"[0-9]{12,16}", data))
    for number, key in enumerate(found):
        data = data.replace(b"X" + len(key).to_bytes(4, "little") + key, b"X\x01\0\0\0" + str(number).encode())
    return data


def _members(data: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(entry.filename, archive.read(entry)) for entry in archive.infolist()]


def _repacked(data: bytes, compression: int, members: list[tuple[str, bytes]] | None = None) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members if members is not None else _members(data):
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=compression)
    return file.getvalue()


def mutated(data: bytes, kind: str, bases: dict[str, bytes], rng: random.Random) -> bytes:
    """One damaged copy of a file."""
    if kind in _CHECKED_FORMATS and rng.random() < 0.25:
        return _with_member_damaged(data, kind, bases, rng)
    damaged = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        _damage(damaged, bases, rng)
    return bytes(damaged)


def _damage(data: bytearray, bases: dict[str, bytes], rng: random.Random) -> None:
    if not data:
        return
    way = rng.randrange(7)
    at = rng.randrange(len(data))
    if way == 0:
        data[at] ^= 1 << rng.randrange(8)
    elif way == 1:
        data[at] = rng.randrange(256)
    elif way == 2:
        del data[at:]
    elif way == 3:
        del data[at : at + rng.randrange(1, 64)]
    elif way == 4:
        width = rng.choice((1, 2, 4, 8))
        data[at : at + width] = (rng.choice(_NUMBERS) & ((1 << 8 * width) - 1)).to_bytes(width, "little")
    elif way == 5:
        other = bases[rng.choice(sorted(bases))]
        start = rng.randrange(len(other))
        data[at:at] = other[start : start + rng.randrange(1, 256)]
    else:
        start = rng.randrange(len(data))
        data[at:at] = data[start : start + rng.randrange(1, 64)]


def _with_member_damaged(data: bytes, kind: str, bases: dict[str, bytes], rng: random.Random) -> bytes:
    """An archive put together again with a member damaged, doubled, dropped or taken from elsewhere."""
    members = _members(data)
    at = rng.randrange(len(members))
    name, content = members[at]
    way = rng.randrange(4)
    if way == 0:
        damaged = bytearray(content)
        _damage(damaged, bases, rng)
        members[at] = name, bytes(damaged)
    elif way == 1:
        members.insert(rng.randrange(len(members)), (name, members[rng.randrange(len(members))][1]))
    elif way == 2:
        del members[at]
    else:
        members[at] = name, rng.choice(_members(bases[rng.choice(_CHECKED_FORMATS)]))[1]
    packing = zipfile.ZIP_DEFLATED if kind == "deflated" else zipfile.ZIP_STORED
    return _repacked(data, packing, members)


def inspect_all(folder: Path) -> None:
    """Inspects every file of a folder and prints one JSON line for each (the body of the process that is measured)."""
    import time
    import traceback

    from strata_core.audit import inspect_checkpoint

    for path in sorted(folder.iterdir()):
        began = time.perf_counter()
        try:
            report = inspect_checkpoint(path, stats=int(path.stem) % 2 == 0)
            json.dumps(report.to_json())
            verdict, problem = report.verdict, ""
        except Exception:
            verdict, problem = "exception", traceback.format_exc()
        line = {"name": path.name, "verdict": verdict, "problem": problem, "bytes": _largest_resident_bytes()}
        print(json.dumps({**line, "seconds": time.perf_counter() - began}), flush=True)


def _largest_resident_bytes() -> int:
    """Of this process alone: getrusage counts what it was forked from too."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) * 1024


def load(data: bytes, kind: str) -> dict[str, Any] | str:
    """The tensors that the format's own loader gives, by name, or how it refuses."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load as load_safetensors

    if kind == "safetensors":
        try:
            return dict(load_safetensors(data))
        except (SafetensorError, RuntimeError, ValueError, KeyError, TypeError, AttributeError) as error:
            return f"{type(error).__name__}: {error}"
    try:
        value = torch.load(io.BytesIO(data), weights_only=True)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    found: dict[str, Any] = {}
    _collect(value, "", found)
    return found


def _collect(value: Any, name: str, found: dict[str, Any]) -> None:
    """Damaged pickles can make a dict that holds itself, so each is walked once."""
    import torch

    seen: set[int] = set()
    waiting = [(name, value)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, torch.Tensor):
            found[name] = value
        elif isinstance(value, dict) and id(value) not in seen and len(name) < 1000:
            seen.add(id(value))
            waiting += [(f"{name}.{key}" if name else f"{key}", inner) for key, inner in value.items()]


def _values_changed(found: dict[str, Any], original: dict[str, Any]) -> bool:
    """Whether a tensor of the original's name, type and shape has other bits."""
    import torch

    def bits(tensor: Any) -> bytes:
        plain = tensor.contiguous().reshape(-1)
        return bytes(plain.view(torch.uint8).tolist()) if plain.numel() else b""

    return any(
        name in original
        and original[name].shape == tensor.shape
        and original[name].dtype == tensor.dtype
        and bits(tensor) != bits(original[name])
        for name, tensor in found.items()
    )


def run(files: int, seed: int) -> Outcome:
    """Makes, inspects and loads so many files."""
    outcome = Outcome()
    bases, folders = base_files(), base_folders()
    originals = {kind: load(bases[kind], kind) for kind in _LOADED_FORMATS}
    kinds = sorted([*bases, *folders])
    for start in range(0, files, _BATCH):
        with tempfile.TemporaryDirectory() as name:
            batch: dict[str, tuple[str, bytes]] = {}
            for number in range(start, min(start + _BATCH, files)):
                kind = kinds[number % len(kinds)]
                path = Path(name) / f"{number:06}.ckpt"
                rng = random.Random(f"{seed}/{number}")
                if kind in folders:
                    _write_damaged_folder(path, folders[kind], bases, rng)
                    batch[path.name] = kind, b""
                else:
                    data = mutated(bases[kind], kind, bases, rng)
                    path.write_bytes(data)
                    batch[path.name] = kind, data
            _judge_batch(Path(name), batch, originals, outcome)
    return outcome


def _write_damaged_folder(path: Path, files: dict[str, bytes], bases: dict[str, bytes], rng: random.Random) -> None:
    path.mkdir()
    chosen = rng.choice(sorted(files))
    for name, data in files.items():
        damaged = bytearray(data)
        if name == chosen:
            _damage(damaged, bases, rng)
        (path / name).write_bytes(damaged)


def _judge_batch(
    folder: Path, batch: dict[str, tuple[str, bytes]], originals: dict[str, Any], outcome: Outcome
) -> None:
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-m", "tests.strata_core.audit.fuzz", "--inspect", str(folder)]
    printed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in printed.stdout.splitlines()]
    if len(lines) != len(batch):
        outcome.broken.append(f"the inspecting process ended early: {printed.stderr[-2000:]}")
    for line in lines:
        kind, data = batch[line["name"]]
        outcome.longest_seconds = max(outcome.longest_seconds, line["seconds"])
        outcome.largest_bytes = max(outcome.largest_bytes, line["bytes"])
        where = f"{kind} {line['name']}"
        if line["verdict"] == "exception":
            outcome.broken.append(f"{where}: {line['problem']}")
        if line["seconds"] > LONGEST_SECONDS or line["bytes"] > LARGEST_BYTES:
            outcome.broken.append(f"{where}: {line['seconds']:.1f} s, {line['bytes']:,} bytes")
        if kind in _LOADED_FORMATS:
            _compare_with_loader(where, kind, data, line["verdict"], originals[kind], outcome)
        else:
            outcome.counts[kind, line["verdict"], "not run"] += 1


def _compare_with_loader(
    where: str, kind: str, data: bytes, verdict: str, original: dict[str, Any], outcome: Outcome
) -> None:
    loaded = load(data, kind)
    refused = isinstance(loaded, str)
    outcome.counts[kind, verdict, "refused" if refused else "loaded"] += 1
    if verdict != "ok":
        return
    if isinstance(loaded, str):
        if not any(reason in loaded for reason in _EXPLAINED):
            outcome.broken.append(f"{where}: ok, but the loader refuses it: {loaded[:200]}")
    elif kind in _CHECKED_FORMATS and _was_changed(data, loaded, original):
        outcome.broken.append(f"{where}: ok, but tensors changed under their checksums")


def _was_changed(data: bytes, loaded: dict[str, Any], original: dict[str, Any]) -> bool:
    """Archives put together again have new checksums; only those whose recorded sums do not fit count."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            sums_fit = archive.testzip() is None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError):
        sums_fit = False
    return not sums_fit and _values_changed(loaded, original)


def main() -> int:
    """Runs the fuzzer, or the process that inspects for it, from the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inspect", type=Path)
    options = parser.parse_args()
    if options.inspect is not None:
        inspect_all(options.inspect)
        return 0
    outcome = run(options.files, options.seed)
    for (kind, verdict, did), count in sorted(outcome.counts.items()):
        print(f"{kind:12} {verdict:15} loader {did:8} {count:7}")
    print(f"longest {outcome.longest_seconds:.2f} s, largest {outcome.largest_bytes / 2**20:.0f} MiB")
    for line in outcome.broken[:40]:
        print(line)
    print(f"{len(outcome.broken)} rules broken in {options.files} files")
    return 1 if outcome.broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
