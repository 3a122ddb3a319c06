"""A folder held against the entries of its manifest: all but the contents, which are noted to be hashed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from strata_core.errors import DataError
from strata_core.manifest.document import Manifest, parse_manifest
from strata_core.manifest.faults import Fault, ParentReport
from strata_core.manifest.hashing import FileEntry, HashJob
from strata_core.manifest.names import differ_only_in_unicode_form, folded_form
from strata_core.manifest.regular_file import read_manifest_file
from strata_core.manifest.tree import Found


@dataclass
class Survey:
    """What a verification has come upon so far.

    Attributes:
        faults, notes, parents: as in `Report`.
        jobs: what remains to be hashed, each with the entry that it should give.
        checked: number of entries looked at.
    """

    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    parents: list[ParentReport] = field(default_factory=list)
    jobs: list[tuple[HashJob, FileEntry]] = field(default_factory=list)
    checked: int = 0

    def add(self, faults: Iterable[Fault], *, prefix: str = "") -> None:
        """Takes in faults of a folder whose place, seen from the verified one, is `prefix`."""
        self.faults += [replace(fault, path=prefix + fault.path) for fault in faults]


def read_manifest_or_fault(survey: Survey, source: Path, *, prefix: str) -> tuple[Manifest, str, set[str]] | None:
    """The manifest of a checkpoint or a parent, its digest, and its listed paths that cannot be used.

    None, and a fault in the survey, when the manifest cannot be used at all.
    """
    try:
        manifest, faults = parse_manifest(read_manifest_file(source), source=str(source))
        digest = manifest.digest
    except DataError as error:
        survey.add([Fault("changed", source.name, f"cannot be used: {error.message}")], prefix=prefix)
        return None
    survey.add(faults, prefix=prefix)
    return manifest, digest, {fault.path for fault in faults}


def compare_folder(
    survey: Survey,
    folder: Path,
    entries: Sequence[FileEntry],
    found: Mapping[str, Found],
    *,
    prefix: str = "",
    refused: Collection[str] = (),
    growing: Collection[str] = (),
) -> None:
    """Adds to the survey every difference but those of content, and the files whose content is to be hashed.

    Args:
        survey: what is added to.
        folder: where the entries' paths start.
        entries: what should be there, each path plain and once.
        found: what is there, by path relative to `folder`.
        prefix: what stands before these paths in the faults.
        refused: listed paths whose entries cannot be used; when one exists it is not called extra.
        growing: paths of files that may have become longer than their entries say.
    """
    remaining = dict(found)
    absent = []
    for entry in entries:
        survey.checked += 1
        item = remaining.pop(entry.path, None)
        if item is None:
            absent.append(entry)
        else:
            _compare_file(survey, folder, entry, item, prefix, grows=entry.path in growing)
    for path in refused:
        remaining.pop(path, None)
    survey.add(_absent_faults(absent, remaining), prefix=prefix)
    survey.add(_remaining_faults(entries, remaining, found), prefix=prefix)


def _compare_file(survey: Survey, folder: Path, entry: FileEntry, item: Found, prefix: str, *, grows: bool) -> None:
    shown = prefix + entry.path
    if item.kind != "a file":
        survey.add([Fault("other", shown, f"{item.kind} in place of the file", "a file", item.described)])
    elif item.size == entry.size or (grows and item.size > entry.size):
        job = HashJob(folder / entry.path, shown, first_bytes=entry.size if grows else None)
        survey.jobs.append((job, entry))
    else:
        survey.add([Fault("changed", shown, "another size", f"{entry.size:,} bytes", item.described)])


def _absent_faults(absent: Sequence[FileEntry], remaining: dict[str, Found]) -> list[Fault]:
    """Files that are not there under their exact name; a twin of the name is taken out of `remaining`."""
    twins = {folded_form(name): name for name in remaining} if absent else {}
    faults = []
    for entry in absent:
        twin = twins.pop(folded_form(entry.path), None)
        if twin is None:
            faults.append(Fault("missing", entry.path, "not there"))
            continue
        del remaining[twin]
        way = "Unicode form" if differ_only_in_unicode_form(twin, entry.path) else "upper and lower case"
        faults.append(
            Fault("other", entry.path, f"there under a name that differs in {way}", ascii(entry.path), ascii(twin))
        )
    return faults


def _remaining_faults(
    entries: Sequence[FileEntry], remaining: Mapping[str, Found], found: Mapping[str, Found]
) -> list[Fault]:
    """Whatever is there and not listed: files, links, special files, empty folders."""
    listed = {folded_form(entry.path): entry.path for entry in entries} if remaining else {}
    expected_folders = {parent for entry in entries for parent in _folders_above(entry.path)}
    occupied_folders = {name.rpartition("/")[0] for name in found}
    faults = []
    for name, item in remaining.items():
        if item.kind != "a folder" and name in expected_folders:
            faults.append(Fault("other", name, f"{item.kind} in place of the folder", "a folder", item.described))
        elif item.kind != "a folder":
            twin = listed.get(folded_form(name))
            remark = f"; its name, {name!a}, is a twin of {twin!a}" if twin else ""
            faults.append(Fault("extra", name, f"not listed{remark}", "", item.described))
        elif name not in expected_folders and name not in occupied_folders:
            faults.append(Fault("extra", name, "not listed", "", "an empty folder"))
    return faults


def _folders_above(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]
