"""In-toto statements about a run, a checkpoint or a corpus: that it was verified, and how it came to be (SLSA v1)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import strata_core
from strata_core.attestation.lineage import Described, files_of, recipe_of, run_behind
from strata_core.attestation.statement import STATEMENT_TYPE
from strata_core.errors import DataError, UsageError
from strata_core.manifest import Report
from strata_core.manifest.canonical import canonical_json

VERIFICATION_TYPE = "https://strata/verification/v1"
PROVENANCE_TYPE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "https://strata/training/v1"
BUILDER = "https://strata/trainer"


def verification_statement(
    item: Described,
    report: Report,
    now: datetime,
    *,
    replay: Mapping[str, Any] | None = None,
    signature: Mapping[str, Any] | None = None,
) -> bytes:
    """A statement of what was verified: the files, the chain, and, where they were looked at, replay and signature.

    Args:
        item: what was verified.
        report: the outcome, without a fault.
        now: when.
        replay: the outcome of a replay as JSON, equal.
        signature: the outcome about a signature as JSON, which holds.
    """
    predicate: dict[str, Any] = {
        "verifier": {"id": "https://strata", "version": strata_core.__version__},
        "timeVerified": _time(now),
        "manifest": {"describes": item.manifest.describes, "digest": {"sha256": item.manifest.digest}},
        "files": {"match": True, "checked": report.checked, "bytes": report.checked_bytes},
        "chain": [
            {"describes": parent.describes, "digest": {"sha256": parent.digest}, "status": parent.status}
            for parent in report.parents
        ],
        "notes": list(report.notes),
    }
    if replay is not None:
        predicate["replay"] = dict(replay)
    if signature is not None:
        predicate["signature"] = {key: signature[key] for key in ("method", "identity", "signer", "subject")}
    return _statement(item, VERIFICATION_TYPE, predicate)


def provenance_statement(item: Described) -> bytes:
    """How a run or a checkpoint came to be, as its manifests tell it (SLSA provenance v1).

    Raises:
        UsageError: it is a corpus.
        DataError: the run of a checkpoint is not here, or its recipe cannot be read.
    """
    if item.manifest.describes not in ("run", "checkpoint"):
        raise UsageError(
            f"--statement slsa: {item.folder} is a {item.manifest.describes}", hint="give a run or a checkpoint"
        )
    run = run_behind(item)
    if run is None:
        raise DataError(
            f"{item.folder}: the run that it belongs to is not here, and what it was trained with stands there",
            hint="verify it in its run, or copy the run beside it",
        )
    record, times = run.manifest.record, run.manifest.times
    environment = dict(record.get("environment", {}))
    code = environment.pop("code", None) or {}
    libraries = environment.get("libraries", {})
    internal = {"environment": environment, "code": code} | {
        key: record[key] for key in ("seed", "precision", "recipe_digest") if key in record
    }
    definition = {
        "buildType": BUILD_TYPE,
        "externalParameters": recipe_of(run),
        "internalParameters": internal,
        "resolvedDependencies": _dependencies(run, item, code),
    }
    versions = {"strata": environment.get("strata"), "python": environment.get("python"), **libraries}
    details: dict[str, Any] = {
        "builder": {"id": BUILDER, "version": {name: value for name, value in versions.items() if value}}
    }
    metadata = {"invocationId": run.manifest.digest}
    if "started" in times:
        metadata["startedOn"] = times["started"]
    if run.manifest.state.get("final") and "updated" in times:
        metadata["finishedOn"] = times["updated"]
    details["metadata"] = metadata
    return _statement(item, PROVENANCE_TYPE, {"buildDefinition": definition, "runDetails": details})


def _dependencies(run: Described, item: Described, code: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The parents of the run, the run of a checkpoint, and the source, each by its digest."""
    parents = [*run.manifest.parents, *(item.manifest.parents if item is not run else ())]
    found = [{"name": parent.describes, "digest": {"sha256": parent.digest}} for parent in parents]
    if code.get("commit"):
        found.append({"name": "strata", "digest": {"gitCommit": code["commit"]}})
    return found


def _statement(item: Described, predicate_type: str, predicate: Mapping[str, Any]) -> bytes:
    """Canonical JSON and a newline; the subjects are the files, by which others look for what is meant."""
    subjects = [{"name": entry.path, "digest": {"sha256": entry.sha256}} for entry in files_of(item)]
    content = {
        "_type": STATEMENT_TYPE,
        "subject": subjects,
        "predicateType": predicate_type,
        "predicate": predicate,
    }
    return canonical_json(content) + b"\n"


def _time(now: datetime) -> str:
    return now.isoformat(timespec="seconds").replace("+00:00", "Z")
