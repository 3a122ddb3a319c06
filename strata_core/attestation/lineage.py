"""What manifests say about where a run or a checkpoint came from: the run behind it, and every file with its digest."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strata_core.errors import DataError, UsageError
from strata_core.manifest import MANIFEST_NAME, FileEntry, Manifest, hash_file
from strata_core.manifest.regular_file import read_manifest_file
from strata_core.manifest.run_state import parse_state

_RECIPE, _OVERRIDES = "recipe.toml", "overrides.toml"


@dataclass(frozen=True)
class Described:
    """A folder and its manifest."""

    folder: Path
    manifest: Manifest


def described(path: Path) -> Described:
    """The folder at a path, which may be a link to it or its manifest, with what the manifest says.

    Raises:
        UsageError: there is nothing.
        DataError: there is no manifest that can be used.
    """
    if not path.exists():
        raise UsageError(f"{path}: no such file or directory", hint="give a run or a checkpoint")
    folder = Path(os.path.realpath(path if path.is_dir() else path.parent))
    if not (folder / MANIFEST_NAME).exists():
        raise DataError(f"{path}: there is no {MANIFEST_NAME} in it", hint="give a run, a checkpoint or a corpus")
    return Described(folder, Manifest.read(folder))


def run_behind(item: Described) -> Described | None:
    """The run that a checkpoint belongs to, a run itself, or None where the run is not found here."""
    if item.manifest.describes == "run":
        return item
    for parent in item.manifest.parents:
        if parent.describes == "run" and parent.path is not None:
            folder = Path(os.path.realpath(item.folder / parent.path))
            if (folder / MANIFEST_NAME).exists():
                manifest = Manifest.read(folder)
                return Described(folder, manifest) if manifest.digest == parent.digest else None
    return None


def latest_checkpoint(run: Described) -> Described:
    """The last checkpoint that a run recorded.

    Raises:
        DataError: it has none.
    """
    state, _ = parse_state(run.manifest.state, source=str(run.folder / MANIFEST_NAME))
    if not state.checkpoints:
        raise DataError(f"{run.folder}: the run has no checkpoint yet")
    return described(run.folder / max(state.checkpoints))


def files_of(item: Described) -> list[FileEntry]:
    """Every file that its manifests list, its manifests included, sorted by path; of a run that goes on, no logs.

    Raises:
        DataError: a manifest cannot be read.
    """
    entries = [*item.manifest.files, hash_file(item.folder / MANIFEST_NAME, name=MANIFEST_NAME)]
    if item.manifest.describes == "run":
        state, _ = parse_state(item.manifest.state, source=str(item.folder / MANIFEST_NAME))
        entries += [*state.files, *(state.logs if state.final else ())]
        for path in state.checkpoints:
            below = files_of(described(item.folder / path))
            entries += [FileEntry(f"{path}/{entry.path}", entry.size, entry.sha256) for entry in below]
    return sorted(entries, key=lambda entry: entry.path)


def recipe_of(run: Described) -> dict[str, Any]:
    """What somebody chose for a run: `recipe`, and `overrides` where a resume changed something.

    Raises:
        DataError: the recipe is not there, or is not TOML.
    """
    chosen = {"recipe": _toml(run.folder / _RECIPE)}
    if (run.folder / _OVERRIDES).exists():
        chosen["overrides"] = _toml(run.folder / _OVERRIDES)
    return chosen


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_manifest_file(path).decode())
    except ValueError as error:
        raise DataError(f"{path}: not TOML: {error}") from None
