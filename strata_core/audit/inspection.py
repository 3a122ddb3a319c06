"""Inspects a checkpoint of any known format without loading it."""

from __future__ import annotations

import fnmatch
from pathlib import Path

from strata_core.audit.containers import read_blob
from strata_core.audit.findings import CORRUPT, NUMERIC, Finding, Malformed
from strata_core.audit.folders import is_corpus, read_folder
from strata_core.audit.names import find_wrappers
from strata_core.audit.opening import Opened, check_exists
from strata_core.audit.reading import Budget, Contents, PendingCheck
from strata_core.audit.report import Report
from strata_core.audit.summary import (
    find_settings,
    find_sharing,
    find_step,
    find_versions,
    is_bookkeeping,
    is_optimizer_state,
    is_random_state,
    summarise_optimizer,
)
from strata_core.audit.tensors import Tensor, distinct_elements
from strata_core.errors import UsageError
from strata_core.observer import SILENT, Observer


def inspect_checkpoint(
    path: str | Path, *, stats: bool = False, tensors: str | None = None, observer: Observer = SILENT
) -> Report:
    """Says what a checkpoint file, checkpoint folder or run is, whether it is whole and whether it is safe to load.

    Nothing in it is unpickled or imported, nothing outside `path` is opened, and without `stats` the elements of
    tensors are not read (but for checksums of the first 16 MiB).

    Args:
        stats: also read all elements: NaN, Inf, range and norm of each floating tensor, checksums, digests.
        tensors: a shell pattern; only tensors of matching names are listed and have statistics.
        observer: told about progress.

    Raises:
        UsageError: there is nothing at `path`, or a corpus.
        DataError: `path` may not be read.
    """
    path = Path(path)
    check_exists(path)
    with Opened() as opened:
        contents = open_contents(opened, path)
        report = _report(path, contents, tensors)
        if stats:
            _add_stats(report, contents, observer)
    return report


def open_contents(opened: Opened, path: Path) -> Contents:
    """Reads the file or folder at a path; the result's tensors can be read from while `opened` is open.

    Raises:
        UsageError: it is a corpus.
        DataError: it may not be read.
    """
    budget = Budget(read_blob)
    if path.is_dir():
        folder = opened.folder(path)
        contents = read_folder(folder, budget)
        if is_corpus(folder, contents):
            raise UsageError(
                f"{path} is a strata corpus, not a checkpoint", hint=f"strata verify-manifest {path} checks it"
            )
        return contents
    if not path.is_file():
        contents = Contents("special file")
        contents.corrupt(f"{path} is no regular file; it was not opened")
        return contents
    file = opened.file(path)
    file.name = path.name
    return read_blob(file, budget)


def _report(path: Path, contents: Contents, pattern: str | None) -> Report:
    wrappers = find_wrappers(contents.tensors)
    findings = list(contents.findings) + [Finding(CORRUPT, clash) for clash in wrappers.clashes]
    sharing, remarks = find_sharing(contents.tensors)
    listed = [tensor for tensor in contents.tensors if pattern is None or fnmatch.fnmatchcase(tensor.name, pattern)]
    return Report(
        path=str(path),
        format=contents.format,
        findings=findings,
        globals=contents.globals,
        tensors=listed,
        totals=_totals(contents.tensors),
        step=find_step(contents),
        settings=find_settings(contents),
        versions=find_versions(contents),
        optimizer=summarise_optimizer(contents.tensors),
        sharing=sharing,
        wrappers=wrappers,
        notes=contents.notes + remarks,
        details=contents.details,
        files=contents.files,
    )


def _totals(tensors: list[Tensor]) -> dict[str, int]:
    others = (is_optimizer_state, is_random_state, is_bookkeeping)
    parameters = [tensor for tensor in tensors if not any(is_other(tensor) for is_other in others)]
    storages = {
        id(piece.storage): piece.storage.size_bytes
        for tensor in tensors
        for piece in tensor.stored_pieces()
        if piece.storage is not None
    }
    return {
        "tensors": len(tensors),
        "parameters": distinct_elements(parameters),
        "elements": distinct_elements(tensors),
        "bytes": sum(storages.values()),
    }


def _add_stats(report: Report, contents: Contents, observer: Observer) -> None:
    from strata_core.audit.numeric import gather_statistics

    total = sum(check.size_bytes for check in contents.pending)
    done = 0
    report.checksums = []
    if contents.pending:
        observer.stage_started("verifying checksums", total, "bytes")
        for check in contents.pending:
            fault = _outcome(check)
            report.checksums.append({"name": check.name, "bytes": check.size_bytes, "ok": fault is None})
            if fault is not None:
                report.findings.append(Finding(CORRUPT, fault))
            done += check.size_bytes
            observer.stage_advanced(done)
        observer.stage_finished()
    report.stats, faults = gather_statistics(report.tensors, observer)
    report.findings += [Finding(NUMERIC, fault) for fault in faults]


def _outcome(check: PendingCheck) -> str | None:
    try:
        return check.run()
    except Malformed as error:
        return error.message
