"""Reads a checkpoint folder back, and finds the newest one that is whole."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from strata_core.errors import DataError
from strata_core.manifest import MANIFEST_NAME, Manifest, Parent, hash_files
from strata_core.training.checkpoint.folders import step_folder_name, step_of, steps_in
from strata_core.training.checkpoint_choice import BEST, LATEST

CONFIG_FILE = "config.json"
MODEL_FILE = "model.safetensors"
OPTIMIZER_FILE = "optimizer.safetensors"
TOKENIZER_FILE = "tokenizer.json"
TRAINER_FILE = "trainer.json"


@dataclass(frozen=True)
class LoadedCheckpoint:
    """A checkpoint read from disk.

    Tensors are on the CPU and mapped from their files: reading one costs time only when it is used. They may be
    changed; the files stay as they are.

    Attributes:
        path: the folder, links resolved.
        config, trainer, model, optimizer, tokenizer, parents: as in CheckpointState.
        digest: the manifest's digest, the checkpoint's identity.
    """

    path: Path
    config: dict[str, Any]
    trainer: dict[str, Any]
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    tokenizer: bytes | None
    parents: tuple[Parent, ...]
    digest: str


def load_checkpoint(
    path: str | os.PathLike[str], *, verify: bool = True, with_optimizer: bool = True
) -> LoadedCheckpoint:
    """Reads a checkpoint folder.

    Args:
        path: the folder, or a link to it.
        verify: compare the digests of the files that are read with the manifest; their sizes are compared always.
        with_optimizer: whether optimizer.safetensors is wanted; without, it is neither verified nor read.

    Raises:
        DataError: a file is missing, has another size or content than the manifest says, or cannot be read.
    """
    folder = Path(path).resolve()
    manifest = _read_manifest(folder)
    names = [entry.path for entry in manifest.files if with_optimizer or entry.path != OPTIMIZER_FILE]
    if fault := _file_fault(folder, manifest, names, verify=verify):
        raise DataError(f"the checkpoint {folder} is not whole: {fault}", hint="choose another checkpoint of the run")
    return LoadedCheckpoint(
        path=folder,
        config=_read_json(folder / CONFIG_FILE),
        trainer=_read_json(folder / TRAINER_FILE),
        model=read_tensors(folder / MODEL_FILE),
        optimizer=read_tensors(folder / OPTIMIZER_FILE) if with_optimizer else {},
        tokenizer=(folder / TOKENIZER_FILE).read_bytes() if TOKENIZER_FILE in names else None,
        parents=manifest.parents,
        digest=manifest.digest,
    )


def newest_whole(folder: Path, *, verify: bool = True) -> tuple[Path, list[str]]:
    """The checkpoint of the highest step that is whole; looks only, changes nothing.

    Args:
        folder: a run's checkpoints folder.
        verify: compare digests, not only sizes.

    Returns:
        The checkpoint's folder, and a line for each thing that was passed over with the reason.

    Raises:
        DataError: there is no whole checkpoint.
    """
    passed_over = _oddities(folder)
    for step in reversed(steps_in(folder)):
        candidate = folder / step_folder_name(step)
        fault = checkpoint_fault(candidate, verify=verify)
        if fault is None:
            return candidate, passed_over
        passed_over.append(f"{candidate.name}: {fault}")
    found = "; ".join(passed_over) or "there is none"
    raise DataError(
        f"{folder} has no usable checkpoint ({found})",
        hint="start a new run, or bring a checkpoint back from a copy",
    )


def checkpoint_fault(folder: Path, *, verify: bool = True) -> str | None:
    """Why a folder is not a whole checkpoint of the step that its name says, None if it is one."""
    try:
        manifest = _read_manifest(folder)
    except DataError as error:
        return error.message
    step = manifest.record.get("step")
    if step != step_of(folder.name):
        return f"holds step {step}, another than its name says"
    return _file_fault(folder, manifest, [entry.path for entry in manifest.files], verify=verify)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file by name, mapped, on the CPU.

    Raises:
        DataError: the file cannot be read or is not safetensors.
    """
    try:
        # By descriptor, since safetensors refuses paths that are not UTF-8.
        with (
            open(path, "rb") as file,
            safe_open(f"/dev/fd/{file.fileno()}", framework="pt", device="cpu") as handle,
        ):
            return {name: handle.get_tensor(name) for name in handle.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: no readable safetensors file ({error})") from error


def _read_manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST_NAME
    if not path.is_file():
        raise DataError(f"{path} is missing", hint="a checkpoint without its manifest is not complete")
    manifest = Manifest.read(path)
    if manifest.describes != "checkpoint":
        raise DataError(f"{path} describes a {manifest.describes}, not a checkpoint")
    return manifest


def _file_fault(folder: Path, manifest: Manifest, names: Sequence[str], *, verify: bool) -> str | None:
    expected = {entry.path: entry for entry in manifest.files}
    for name in (CONFIG_FILE, MODEL_FILE, OPTIMIZER_FILE, TRAINER_FILE):
        if name not in expected:
            return f"{MANIFEST_NAME} does not list {name}"
    for name in names:
        try:
            status = os.lstat(folder / name)
        except FileNotFoundError:
            return f"{name} is missing"
        if not stat.S_ISREG(status.st_mode):
            return f"{name} is not a regular file"
        if status.st_size != expected[name].size:
            return f"{name} has {status.st_size:,} bytes, expected {expected[name].size:,}"
    if verify:
        for entry in hash_files(folder, names):
            if entry.sha256 != expected[entry.path].sha256:
                return f"{entry.path} has SHA-256 {entry.sha256}, expected {expected[entry.path].sha256}"
    return None


def _oddities(folder: Path) -> list[str]:
    """What a person should hear about before the steps themselves: links to nothing, and names that only look like a
    step's."""
    found = []
    for link in (folder / LATEST, folder / BEST):
        if os.path.lexists(link) and not link.exists():
            found.append(f"{link.name}: points to {os.readlink(link)}, which is not there")
    if folder.is_dir():
        found += [
            f"{name}: not the name of a finished checkpoint"
            for name in sorted(os.listdir(folder))
            if name.startswith("step") and step_of(name) is None
        ]
    return found


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, OSError) as error:
        raise DataError(f"{path}: no readable JSON ({error})") from error
    if not isinstance(value, dict):
        raise DataError(f"{path}: holds a JSON {type(value).__name__}, not an object")
    return value
