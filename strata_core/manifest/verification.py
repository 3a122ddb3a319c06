"""Verifying a corpus, a run, a checkpoint or a list of checksums: every fault in one pass, parents followed."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from strata_core.errors import DataError, UsageError
from strata_core.manifest.comparison import Survey, compare_folder, read_manifest_or_fault
from strata_core.manifest.document import MANIFEST_NAME, Manifest, Parent, parse_manifest
from strata_core.manifest.faults import Fault, ParentReport, Report
from strata_core.manifest.hashing import run_hash_jobs
from strata_core.manifest.listing import Listing, parse_listing
from strata_core.manifest.names import show_name
from strata_core.manifest.regular_file import read_manifest_file
from strata_core.manifest.run_folder import compare_run
from strata_core.manifest.tree import Found, look_around
from strata_core.observer import SILENT, Observer

CHECKSUMS_NAME = "SHA256SUMS"

_SECONDS_BETWEEN_REPORTS = 0.2
_LONG_READ_BYTES = 1 << 28


def verify(
    path: str | os.PathLike[str], *, quick: bool = False, apart: Path | None = None, observer: Observer = SILENT
) -> Report:
    """Holds a folder against its manifest and follows the chain of parents.

    Args:
        path: a corpus, run or checkpoint folder (or a link to one), a manifest file, or a SHA256SUMS file. A
            file is about the folder that it lies in.
        quick: names, types and sizes only; no content is read.
        apart: a file that is no part of the folder wherever it lies: its signature.
        observer: told about progress in bytes, and of the first fault when a long read lies ahead.

    Returns:
        Every fault found; see `Report`.

    Raises:
        UsageError: the path does not exist.
        DataError: there is no manifest, or the manifest itself cannot be used.
    """
    source = _find_list(Path(path))
    folder = source.parent
    data = read_manifest_file(source)
    found, faults = look_around(folder)
    found.pop(source.name, None)
    if apart is not None:
        found.pop(os.path.relpath(os.path.realpath(apart), os.path.realpath(folder)), None)
    survey = Survey(faults=faults)
    listing = parse_listing(data, found, source=source)
    if listing is not None:
        _compare_listing(survey, folder, listing, found)
        describes, digest = "listing", None
    else:
        manifest, faults = parse_manifest(data, source=str(source))
        describes, digest = manifest.describes, manifest.digest
        _compare_described(survey, folder, manifest, faults, found)
        _follow_parents(survey, manifest, folder, quick=quick, seen={manifest.digest})
    checked_bytes = 0 if quick else compare_contents(survey, observer)
    return Report(
        path=os.fspath(path),
        describes=describes,
        digest=digest,
        quick=quick,
        checked=survey.checked,
        checked_bytes=checked_bytes,
        faults=tuple(sorted(set(survey.faults), key=lambda fault: (fault.path, fault.kind, fault.what))),
        notes=tuple(survey.notes),
        parents=tuple(_with_outcome(parent, survey.faults) for parent in survey.parents),
    )


def _find_list(path: Path) -> Path:
    """The file that lists what has to be there."""
    try:
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)
    except OSError as error:
        what = "a link that leads nowhere" if os.path.islink(path) else error.strerror
        raise UsageError(f"{path}: {what}", hint="give a run, a checkpoint, a corpus or a list of checksums") from None
    if not is_folder:
        return path
    for name in (MANIFEST_NAME, CHECKSUMS_NAME):
        if os.path.lexists(path / name):
            return path / name
    raise DataError(
        f"{path}: there is no {MANIFEST_NAME} in it",
        hint="give the folder of a corpus, a run or a checkpoint; one without a manifest cannot be verified",
    )


def _compare_listing(survey: Survey, folder: Path, listing: Listing, found: dict[str, Found]) -> None:
    survey.add(listing.faults)
    refused = {fault.path for fault in listing.faults}
    if not listing.complete:
        listed = refused | {entry.path for entry in listing.entries}
        unlisted = [name for name, item in found.items() if name not in listed and item.kind != "a folder"]
        survey.notes += [f"{show_name(name)}: not listed, so not checked" for name in sorted(unlisted)]
        found = {name: item for name, item in found.items() if name in listed}
    compare_folder(survey, folder, listing.entries, found, refused=refused)


def _compare_described(
    survey: Survey, folder: Path, manifest: Manifest, faults: list[Fault], found: Mapping[str, Found]
) -> None:
    survey.add(faults)
    refused = {fault.path for fault in faults}
    if manifest.describes == "run":
        compare_run(survey, folder, manifest, found, refused=refused)
    else:
        compare_folder(survey, folder, manifest.files, found, refused=refused)


def _follow_parents(survey: Survey, manifest: Manifest, folder: Path, *, quick: bool, seen: set[str]) -> None:
    """Each parent, where it can be found, and in turn its parents."""
    for parent in manifest.parents:
        if parent.digest in seen:
            continue
        seen.add(parent.digest)
        place = _place_of(parent, folder)
        if place is None:
            survey.parents.append(ParentReport(parent.describes, parent.digest, parent.path, "not found here"))
            continue
        survey.parents.append(ParentReport(parent.describes, parent.digest, str(place), "digest ok" if quick else "ok"))
        found_manifest = _compare_parent(survey, parent, place, quick=quick)
        if found_manifest is not None:
            _follow_parents(survey, found_manifest, place, quick=quick, seen=seen)


def _place_of(parent: Parent, folder: Path) -> Path | None:
    """Where the parent's folder is, or None when there is no manifest where the child says."""
    if parent.path is None:
        return None
    place = os.path.join(folder, parent.path)
    if not os.path.lexists(os.path.join(place, MANIFEST_NAME)):
        return None
    return Path(os.path.realpath(place))


def _compare_parent(survey: Survey, parent: Parent, place: Path, *, quick: bool) -> Manifest | None:
    """A parent is checked as far as its digest reaches: of a run, that is the files fixed at launch."""
    prefix = f"{place}/"
    read = read_manifest_or_fault(survey, place / MANIFEST_NAME, prefix=prefix)
    if read is None:
        return None
    manifest, digest, refused = read
    if digest != parent.digest:
        fault = Fault("other", MANIFEST_NAME, "not the parent that is named", parent.digest, digest)
        survey.add([fault], prefix=prefix)
        return None
    if not quick:
        found, unlistable = look_around(place)
        found.pop(MANIFEST_NAME, None)
        survey.add(unlistable, prefix=prefix)
        if manifest.describes == "run":
            listed = {entry.path for entry in manifest.files}
            found = {name: item for name, item in found.items() if name in listed}
        compare_folder(survey, place, manifest.files, found, prefix=prefix, refused=refused)
    return manifest


def compare_contents(survey: Survey, observer: Observer) -> int:
    """Hashes what a survey left to hash, largest files first, adding faults; returns the number of bytes."""
    jobs = sorted(survey.jobs, key=lambda job: -job[1].size)
    total_bytes = sum(entry.size for _, entry in jobs)
    if survey.faults and total_bytes >= _LONG_READ_BYTES:
        first = survey.faults[0]
        observer.warning(f"found before reading any content: {show_name(first.path)}: {first.what}")
    observer.stage_started("hashing", total_bytes, "bytes")
    done_bytes, told_at = 0, time.monotonic()

    def progress(count: int) -> None:
        nonlocal done_bytes, told_at
        done_bytes += count
        if time.monotonic() - told_at >= _SECONDS_BETWEEN_REPORTS:
            told_at = time.monotonic()
            observer.stage_advanced(done_bytes)

    outcomes = run_hash_jobs([job for job, _ in jobs], progress=progress)
    for (job, entry), outcome in zip(jobs, outcomes, strict=True):
        if isinstance(outcome, DataError):
            survey.faults.append(Fault("other", job.name, outcome.message))
        elif outcome.sha256 != entry.sha256:
            survey.faults.append(Fault("changed", job.name, "another content", entry.sha256, outcome.sha256))
    observer.stage_advanced(done_bytes)
    observer.stage_finished()
    return done_bytes


def _with_outcome(parent: ParentReport, faults: list[Fault]) -> ParentReport:
    if parent.path is not None and any(fault.path.startswith(f"{parent.path}/") for fault in faults):
        return replace(parent, status="failed")
    return parent
