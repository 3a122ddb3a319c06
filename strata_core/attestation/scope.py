"""What a model signature covers: the regular files of a folder, or one file, less what it leaves out by name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from strata_core.errors import DataError, UsageError
from strata_core.manifest import MANIFEST_NAME
from strata_core.manifest.document import parse_manifest
from strata_core.manifest.faults import Fault
from strata_core.manifest.regular_file import kind_of, read_manifest_file
from strata_core.manifest.run_folder import LOCK_NAME, is_of_no_account
from strata_core.manifest.run_state import CHECKPOINTS
from strata_core.manifest.tree import Found, look_around
from strata_core.manifest.verification import CHECKSUMS_NAME

_LISTS = (MANIFEST_NAME, CHECKSUMS_NAME)
_LINKS = tuple(f"{CHECKPOINTS}/{name}" for name in ("best", "latest"))


@dataclass(frozen=True)
class Place:
    """What is signed or verified.

    Attributes:
        folder: where the names of its files start; no link.
        file: the one file that is meant, None for all of the folder.
    """

    folder: Path
    file: str | None = None

    @property
    def name(self) -> str:
        """What the subject is called."""
        return self.file or self.folder.name or "model"

    @property
    def has_list(self) -> bool:
        """Whether the folder says itself what it holds."""
        return self.file is None and any(os.path.lexists(self.folder / name) for name in _LISTS)

    def look(self) -> tuple[dict[str, Found], list[Fault]]:
        """Everything there by relative path, and what cannot be listed."""
        if self.file is None:
            return look_around(self.folder)
        status = os.lstat(self.folder / self.file)
        return {self.file: Found(kind_of(status), status.st_size)}, []

    def relative(self, path: Path) -> str:
        """A path as seen from the folder; it begins with .. where it lies elsewhere."""
        return os.path.relpath(os.path.realpath(path), self.folder)


def place_of(path: Path) -> Place:
    """What a path stands for: a folder, or one file; a manifest or a SHA256SUMS stands for its folder.

    Raises:
        UsageError: there is no such path.
    """
    if not path.exists():
        what = "a link that leads nowhere" if os.path.islink(path) else "no such file or directory"
        raise UsageError(f"{path}: {what}", hint="give a folder, or a file")
    if path.is_dir():
        return Place(Path(os.path.realpath(path)))
    folder = Path(os.path.realpath(path.parent))
    return Place(folder) if path.name in _LISTS else Place(folder, path.name)


def left_out_of_run(place: Place, found: Mapping[str, Found]) -> list[str]:
    """Names in a run that its manifest does not count as files of the run: lock, logs of other ranks, links.

    The links are not lost: the manifest says where they lead, and it is signed.
    """
    if place.file is not None or not os.path.lexists(place.folder / MANIFEST_NAME):
        return []
    try:
        manifest, _ = parse_manifest(read_manifest_file(place.folder / MANIFEST_NAME), source=MANIFEST_NAME)
    except DataError:
        return []
    if manifest.describes != "run":
        return []
    unaccounted = [name for name, item in found.items() if item.kind != "a folder" and is_of_no_account(name, item)]
    return sorted({LOCK_NAME, *_LINKS, *unaccounted})


def is_under(name: str, paths: Iterable[str]) -> bool:
    """Whether a name is one of the paths or lies below one."""
    return any(name == path or name.startswith(f"{path}/") for path in paths)
