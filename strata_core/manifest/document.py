"""A manifest: what a folder holds, what it was made from, and the digest by which others name it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from strata_core.errors import DataError
from strata_core.files import write_file
from strata_core.manifest.canonical import canonical_json, parse_json
from strata_core.manifest.faults import Fault
from strata_core.manifest.hashing import FileEntry
from strata_core.manifest.names import name_problem, show_name
from strata_core.manifest.regular_file import read_manifest_file

FORMAT_VERSION = 1
MANIFEST_NAME = "manifest.json"

_DIGEST_FORM = "64 lower-case hexadecimal digits"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_KEYS = {
    "format_version": int,
    "describes": str,
    "files": list,
    "parents": list,
    "record": dict,
    "state": dict,
    "times": dict,
}


@dataclass(frozen=True)
class Parent:
    """What a folder was made from.

    Attributes:
        describes: what the parent is: "corpus", "run" or "checkpoint".
        digest: of the parent's manifest; this is what names it.
        path: where it was, relative to the child's folder where possible, or None; a hint, in no digest.
    """

    describes: str
    digest: str
    path: str | None = None


@dataclass(frozen=True)
class Manifest:
    """The content of a `manifest.json`, which lies in the folder it describes and does not list itself.

    Attributes:
        describes: "corpus", "run" or "checkpoint".
        files: what the folder holds.
        parents: what it was made from.
        record: facts about how it was made.
        state: what changes while a run lives; not part of the digest.
        times: ISO 8601 strings and seconds; not part of the digest.
    """

    describes: str
    files: tuple[FileEntry, ...] = ()
    parents: tuple[Parent, ...] = ()
    record: dict[str, Any] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    times: dict[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The identity: SHA-256 in hexadecimal of the canonical JSON without state, times, parents' paths."""
        content = self._content()
        del content["state"], content["times"]
        for parent in content["parents"]:
            del parent["path"]
        return _sha256(content)

    def to_bytes(self) -> bytes:
        """The file: canonical JSON and a newline.

        Raises:
            DataError: a listed path is not plain, not UTF-8 or there twice; a value has no canonical form.
        """
        for fault in entry_faults(self.files):
            raise DataError(f"a manifest cannot list {show_name(fault.path)}: {fault.what}")
        content = self._content()
        return canonical_json(content | {"checksum": _sha256(content)}) + b"\n"

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Writes `manifest.json` into the folder it describes, as a whole or not at all.

        Raises:
            DataError: as `to_bytes`.
            StorageError: the file system refused.
        """
        write_file(Path(folder) / MANIFEST_NAME, self.to_bytes())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Manifest:
        """Reads a manifest file, or the `manifest.json` of a folder. None of the files it lists is looked at.

        Raises:
            DataError: absent, unreadable, not a manifest of this format, damaged, or with unsafe entries.
        """
        path = Path(path)
        if path.is_dir():
            path = path / MANIFEST_NAME
        manifest, faults = parse_manifest(read_manifest_file(path), source=str(path))
        for fault in faults:
            raise DataError(
                f"{path}: {show_name(fault.path)}: {fault.what}",
                hint=f"strata verify-manifest {path} lists every fault",
            )
        return manifest

    def _content(self) -> dict[str, Any]:
        return {
            "format_version": FORMAT_VERSION,
            "describes": self.describes,
            "files": [asdict(entry) for entry in sorted(self.files, key=lambda entry: entry.path)],
            "parents": [asdict(parent) for parent in self.parents],
            "record": self.record,
            "state": self.state,
            "times": self.times,
        }


def parse_manifest(data: bytes, *, source: str) -> tuple[Manifest, list[Fault]]:
    """Takes a manifest apart, keeping every entry that can be used and listing what is wrong with the others.

    Raises:
        DataError: not JSON, or not the shape of a manifest of this format: nothing in it can be relied on.
    """
    content = parse_json(data, source=source)
    if not isinstance(content, dict) or "format_version" not in content:
        raise DataError(f"{source}: not a strata manifest: no format_version")
    if content["format_version"] != FORMAT_VERSION:
        raise DataError(
            f"{source}: format_version is {content['format_version']!a}; this program reads {FORMAT_VERSION}",
            hint="use the release of strata that wrote it",
        )
    _check_shape(content, source)
    files, faults = parse_entries(content["files"], source=source)
    manifest = Manifest(
        describes=content["describes"],
        files=tuple(files),
        parents=tuple(_parse_parent(item, source) for item in content["parents"]),
        record=content["record"],
        state=content["state"],
        times=content["times"],
    )
    return manifest, _checksum_faults(content, data) + faults


def _check_shape(content: dict[str, Any], source: str) -> None:
    for key, kind in _KEYS.items():
        if key not in content:
            raise DataError(f"{source}: the key {key!r} is missing")
        if not isinstance(content[key], kind):
            raise DataError(f"{source}: {key} is {type(content[key]).__name__}, not {kind.__name__}")
    for key in content.keys() - _KEYS.keys() - {"checksum"}:
        raise DataError(f"{source}: unknown key {key!a}")


def _checksum_faults(content: dict[str, Any], data: bytes) -> list[Fault]:
    """The checksum covers state, times and paths of parents too, which no other manifest vouches for."""
    if "checksum" not in content:
        return []
    claimed = content["checksum"]
    actual = _sha256({key: value for key, value in content.items() if key != "checksum"})
    if claimed != actual:
        return [Fault("changed", MANIFEST_NAME, "not what its own checksum says", f"{claimed}", actual)]
    if _without_white_space(data) != canonical_json(content):
        return [Fault("changed", MANIFEST_NAME, "not in canonical form")]
    return []


def _without_white_space(data: bytes) -> bytes:
    """Drops what transfers between systems add: a byte order mark, spaces and line ends between tokens."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    return re.sub(rb'("(?:[^"\\]|\\.)*")|[ \t\r\n]+', rb"\1", data)


def parse_entries(items: list[Any], *, source: str) -> tuple[list[FileEntry], list[Fault]]:
    """File entries from JSON, and what is wrong with those left out; of two with one path the first stays.

    Raises:
        DataError: an entry is not an object with a path.
    """
    entries = []
    faults = []
    for index, item in enumerate(items):
        if not isinstance(item, dict) or not isinstance(item.get("path"), str):
            raise DataError(f"{source}: entry {index} of its files is not an object with a path")
        path, size, sha256 = item["path"], item.get("size"), item.get("sha256")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            faults.append(Fault("other", path, "malformed size in the manifest", "0 or more", f"{size}"))
        elif not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
            faults.append(Fault("other", path, "malformed digest in the manifest", _DIGEST_FORM, f"{sha256}"))
        else:
            entries.append(FileEntry(path, size, sha256))
    return usable_entries(entries), faults + entry_faults(entries)


def usable_entries(entries: Sequence[FileEntry]) -> list[FileEntry]:
    """Those with a path that may be opened; of two with one path, the first."""
    usable: dict[str, FileEntry] = {}
    for entry in entries:
        if name_problem(entry.path) is None:
            usable.setdefault(entry.path, entry)
    return list(usable.values())


def entry_faults(entries: Sequence[FileEntry]) -> list[Fault]:
    """Paths that may not be opened, and paths listed twice."""
    faults = []
    seen: set[str] = set()
    for entry in entries:
        refusal = name_problem(entry.path)
        if refusal is not None:
            faults.append(Fault("other", entry.path, refusal))
        elif entry.path in seen:
            faults.append(Fault("other", entry.path, "listed twice"))
        seen.add(entry.path)
    return faults


def _parse_parent(item: Any, source: str) -> Parent:
    if not isinstance(item, dict) or not item.keys() >= {"describes", "digest"}:
        raise DataError(f"{source}: a parent is not an object with describes and digest")
    path = item.get("path")
    if not isinstance(item["describes"], str) or not (path is None or isinstance(path, str)):
        raise DataError(f"{source}: a parent's describes or path is not text")
    if not isinstance(item["digest"], str) or not _SHA256.fullmatch(item["digest"]):
        raise DataError(f"{source}: a parent's digest is {item['digest']!a}, not {_DIGEST_FORM}")
    return Parent(item["describes"], item["digest"], path)


def _sha256(content: Any) -> str:
    return hashlib.sha256(canonical_json(content)).hexdigest()
