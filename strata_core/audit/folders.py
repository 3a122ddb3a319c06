"""Folders that hold a checkpoint: sharded, distributed, a trainer's, strata's own, or a strata run."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Any

from strata_core.audit.bounded_json import read_json_object
from strata_core.audit.containers import read_blob
from strata_core.audit.findings import CORRUPT, Malformed, printable, verdict_of
from strata_core.audit.formats.distributed_checkpoint import METADATA_NAME, read_distributed
from strata_core.audit.formats.gguf_file import is_gguf
from strata_core.audit.formats.numpy_file import is_numpy_file
from strata_core.audit.formats.safetensors_file import looks_like_safetensors
from strata_core.audit.formats.torch_tar import is_tar
from strata_core.audit.formats.zip_archive import LOCAL_SIGNATURE
from strata_core.audit.opening import FileBytes, Folder, is_plain_name
from strata_core.audit.reading import Budget, Contents, PendingCheck

_CHECKPOINT_ENDINGS = (".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".pkl", ".pickle")
_INDEX_ENDING = ".index.json"
_MOST_FILES = 10_000
_SNIFFED_TEXT_BYTES = 1 << 20


def read_folder(folder: Folder, budget: Budget) -> Contents:
    """Reads whatever kind of checkpoint a folder holds, every file in it that could be loaded included."""
    if folder.kind("recipe.toml") == "file" and folder.kind("checkpoints") == "folder":
        return _read_run(folder, budget)
    contents = Contents("folder")
    names = folder.names()
    if len(names) > _MOST_FILES:
        contents.corrupt(f"a folder of {len(names):,} entries; at most {_MOST_FILES:,} are looked at")
        return contents
    if METADATA_NAME in names:
        contents = read_distributed(folder, budget)
    for name in names:
        _read_entry(folder, name, contents, budget)
    indexes = [name for name in names if name.endswith(_INDEX_ENDING)]
    for name in indexes:
        _check_index(folder, name, contents)
    if folder.kind("trainer.json") == "file" and "model.safetensors" in names:
        _read_strata(folder, contents)
    elif indexes and contents.format == "folder":
        contents.format = "sharded"
    _read_trainer_notes(folder, contents)
    if not contents.files and contents.format in ("folder", "sharded"):
        below = [name for name in names if folder.kind(name) == "folder"]
        hint = f"; folders below it: {', '.join(printable(name, limit=40) for name in below[:5])}" if below else ""
        contents.corrupt(f"no checkpoint in this folder{hint}")
    return contents


def is_corpus(folder: Folder, contents: Contents) -> bool:
    """Whether a folder is a strata corpus and nothing more: its manifest says so, and nothing in it could be loaded."""
    if contents.format != "folder" or verdict_of(contents.findings) != CORRUPT:
        return False
    if any(file["verdict"] != CORRUPT for file in contents.files) or folder.kind("corpus.json") != "file":
        return False
    try:
        return read_json_object(folder.file("manifest.json")).get("describes") == "corpus"
    except Malformed:
        return False


def _read_entry(folder: Folder, name: str, contents: Contents, budget: Budget) -> None:
    kind = folder.kind(name)
    named_so = name.lower().endswith(_CHECKPOINT_ENDINGS)
    if kind == "folder":
        contents.notes.append(f"{printable(name)}/ was not looked into")
        return
    if kind != "file":
        text = f"{printable(name)} is {kind or 'unreadable'}; it was not opened"
        if named_so:
            contents.corrupt(text)
        else:
            contents.notes.append(text)
        return
    if name == METADATA_NAME or name.endswith(".distcp"):
        return
    try:
        file = folder.file(name)
    except Malformed as error:
        contents.corrupt(error.message)
        return
    found = read_blob(file, budget) if named_so or _may_be_checkpoint(file) else None
    if found is None or not (named_so or _has_signature(file) or _is_program(found)):
        return
    for tensor in found.tensors:
        tensor.file = name
    contents.take_over(found)
    contents.files.append(
        {"path": name, "format": found.format, "bytes": file.length, "verdict": verdict_of(found.findings)}
    )
    contents.details.setdefault("by_file", {})[name] = found.details
    if found.value is not None and contents.value is None:
        contents.value = found.value


def _has_signature(file: FileBytes) -> bool:
    head = file.head(8)
    if head[:4] == LOCAL_SIGNATURE or is_tar(file) or (head[:1] == b"\x80" and head[1:2] <= b"\x05"):
        return True
    if is_gguf(file) or is_numpy_file(file):
        return True
    return looks_like_safetensors(file) and int.from_bytes(head, "little") <= file.length


def _may_be_checkpoint(file: FileBytes) -> bool:
    """Pickles of protocol 0 start like any text, so small texts are tried as well."""
    return _has_signature(file) or 0 < file.length <= _SNIFFED_TEXT_BYTES


def _is_program(found: Contents) -> bool:
    """Whether a file without signature is a pickle after all: it runs to its end, or calls something on the way."""
    if found.format != "pickle":
        return False
    runs_through = all(finding.kind != CORRUPT for finding in found.findings)
    return runs_through or any(use.use == "calls" for use in found.globals)


def _check_index(folder: Folder, name: str, contents: Contents) -> None:
    """Compares the table of a sharded checkpoint with the shards; no name in it is opened unless it is a plain one."""
    try:
        index = read_json_object(folder.file(name))
    except Malformed as error:
        contents.corrupt(error.message)
        return
    weight_map = index.get("weight_map")
    shown = printable(name)
    if not isinstance(weight_map, dict) or not all(isinstance(file, str) for file in weight_map.values()):
        contents.corrupt(f"{shown}: without a weight_map of names")
        return
    present: dict[str, set[str]] = {}
    for tensor in contents.tensors:
        if tensor.file is not None:
            present.setdefault(tensor.file, set()).add(tensor.name)
    for shard in sorted(set(weight_map.values())):
        if not is_plain_name(shard):
            contents.corrupt(f"{shown}: {printable(shard)!r} leads out of the folder; it was not opened")
        elif folder.kind(shard) != "file":
            contents.corrupt(f"{shown}: the shard {printable(shard)} is {folder.kind(shard) or 'missing'}")
    lost = [key for key, shard in weight_map.items() if shard in present and key not in present[shard]]
    for key in lost[:20]:
        contents.corrupt(f"{shown}: tensor {printable(key)} is not in {printable(weight_map[key])}")
    shards = set(weight_map.values())
    unlisted = [key for shard in shards for key in present.get(shard, ()) if key not in weight_map]
    if unlisted:
        contents.notes.append(f"{shown} does not list {len(unlisted)} tensors of its shards")


def _read_strata(folder: Folder, contents: Contents) -> None:
    contents.format = "strata checkpoint"
    try:
        trainer = read_json_object(folder.file("trainer.json"))
        progress = trainer.get("progress")
        step = progress.get("step") if isinstance(progress, dict) else None
        if isinstance(step, int) and not isinstance(step, bool):
            contents.step = step
        else:
            contents.corrupt("trainer.json: without progress.step")
        if folder.kind("manifest.json") is None:
            contents.notes.append("manifest.json is missing: sizes and digests cannot be compared")
        else:
            _check_manifest(folder, contents)
    except Malformed as error:
        contents.corrupt(error.message)


def _check_manifest(folder: Folder, contents: Contents) -> None:
    manifest = read_json_object(folder.file("manifest.json"))
    entries = manifest.get("files")
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict):
            raise Malformed("manifest.json: an entry that is no table")
        name, size, digest = entry.get("path"), entry.get("size"), entry.get("sha256")
        if not isinstance(name, str) or not isinstance(size, int) or not isinstance(digest, str):
            raise Malformed("manifest.json: an entry without path, size or sha256")
        file = folder.file(name)
        if file.length != size:
            contents.corrupt(f"{file.name}: {file.length:,} bytes where manifest.json announces {size:,}")
        else:
            contents.pending.append(PendingCheck(name, size, partial(_digest_fault, file, digest)))


def _digest_fault(file: FileBytes, expected: str) -> str | None:
    digest = hashlib.sha256()
    for chunk in file.chunks(0, file.length):
        digest.update(chunk)
    found = digest.hexdigest()
    return None if found == expected else f"{file.name}: SHA-256 {found} where manifest.json has {printable(expected)}"


def _read_trainer_notes(folder: Folder, contents: Contents) -> None:
    """Settings and step from the JSON files that trainers write beside the weights."""
    for name in ("config.json", "trainer_state.json"):
        if folder.kind(name) != "file":
            continue
        try:
            table = read_json_object(folder.file(name))
        except Malformed as error:
            contents.corrupt(error.message)
            continue
        if name == "config.json":
            contents.settings.update(_plain_settings(table, ""))
        elif contents.step is None and isinstance(table.get("global_step"), int):
            contents.step = table["global_step"]


def _plain_settings(table: dict[str, Any], prefix: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in table.items():
        if value is None or isinstance(value, bool | int | float | str):
            found[prefix + key] = value
        elif isinstance(value, dict) and prefix.count(".") < 3:
            found.update(_plain_settings(value, f"{prefix}{key}."))
    return found


def _read_run(folder: Folder, budget: Budget) -> Contents:
    """A strata run: its latest checkpoint, found by the text of the link and opened inside the run only."""
    below = folder.folder("checkpoints")
    target = (below.link_target("latest") or "").rstrip("/")
    steps = [name for name in below.names() if name.startswith("step-") and below.kind(name) == "folder"]
    if target and not is_plain_name(target):
        contents = Contents("strata run")
        contents.corrupt(f"checkpoints/latest leads out of the run, to {printable(target)!r}; it was not opened")
        return contents
    chosen = target or max(steps, key=_step_number, default="")
    if not chosen or below.kind(chosen) != "folder":
        contents = Contents("strata run")
        contents.corrupt("a run without a checkpoint" if not chosen else f"checkpoints/{printable(chosen)} is missing")
        return contents
    contents = read_folder(below.folder(chosen), budget)
    contents.format = "strata run"
    contents.details["checkpoint"] = f"checkpoints/{chosen}"
    contents.details["checkpoints"] = sorted(steps, key=_step_number)
    return contents


def _step_number(name: str) -> int:
    digits = name.removeprefix("step-")
    return int(digits) if digits.isascii() and digits.isdigit() else -1
