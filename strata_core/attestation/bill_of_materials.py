"""A CycloneDX 1.6 bill of materials of a trained model: what its manifests do not say is left out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import strata_core
from strata_core.attestation.lineage import Described, latest_checkpoint, run_behind
from strata_core.errors import UsageError

_ALGORITHM = "SHA-256"


def bill_of_materials(item: Described) -> bytes:
    """The bill of a checkpoint, or of the last one of a run: its files, its corpus, what it was made with.

    Raises:
        UsageError: it is a corpus.
        DataError: the run has no checkpoint.
    """
    if item.manifest.describes == "run":
        item = latest_checkpoint(item)
    if item.manifest.describes != "checkpoint":
        raise UsageError(f"--bom: {item.folder} is a {item.manifest.describes}", hint="give a run or a checkpoint")
    run = run_behind(item)
    record = {} if run is None else run.manifest.record
    environment = record.get("environment", {})
    data = _data(run)
    libraries = [_library(name, version) for name, version in sorted(environment.get("libraries", {}).items())]
    model = _model(item, run, record, [component["bom-ref"] for component in data])
    metadata: dict[str, Any] = {"tools": {"components": [_application("strata", strata_core.__version__)]}}
    metadata["component"] = model
    used = [component["bom-ref"] for component in [*data, *libraries]]
    content = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": metadata,
        "components": [*data, *libraries],
        "dependencies": [{"ref": model["bom-ref"], "dependsOn": used}],
    }
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def _model(item: Described, run: Described | None, record: Mapping[str, Any], datasets: list[str]) -> dict[str, Any]:
    files = [
        {"type": "file", "name": entry.path, "hashes": [{"alg": _ALGORITHM, "content": entry.sha256}]}
        for entry in item.manifest.files
    ]
    facts = {
        "manifest-digest": item.manifest.digest,
        "step": item.manifest.record.get("step"),
        "run-digest": run.manifest.digest if run is not None else None,
        "kind": record.get("kind"),
        "parameters": record.get("model", {}).get("parameters"),
        "trained-parameters": record.get("model", {}).get("trained_parameters"),
        "seed": record.get("seed"),
        "precision": record.get("precision", {}).get("effective"),
        "recipe-digest": record.get("recipe_digest"),
        "started": run.manifest.times.get("started") if run is not None else None,
    }
    model: dict[str, Any] = {
        "type": "machine-learning-model",
        "bom-ref": f"checkpoint:{item.manifest.digest}",
        "name": item.folder.name if run is None else f"{run.folder.name}/{item.folder.name}",
        "components": files,
        "properties": [
            {"name": f"strata:{name}", "value": str(value)} for name, value in facts.items() if value is not None
        ],
    }
    if datasets:
        model["modelCard"] = {"modelParameters": {"datasets": [{"ref": reference} for reference in datasets]}}
    return model


def _data(run: Described | None) -> list[dict[str, Any]]:
    """What the run was made from: its corpus, and the checkpoint whose weights it began with."""
    found = []
    for parent in run.manifest.parents if run is not None else ():
        kind = "data" if parent.describes == "corpus" else "machine-learning-model"
        digest = {"name": "strata:manifest-digest", "value": parent.digest}
        found.append(
            {
                "type": kind,
                "bom-ref": f"{parent.describes}:{parent.digest}",
                "name": parent.describes,
                "properties": [digest],
            }
        )
    return found


def _library(name: str, version: str) -> dict[str, Any]:
    reference = f"pkg:pypi/{quote(name)}@{quote(version)}"
    return {"type": "library", "bom-ref": reference, "name": name, "version": version, "purl": reference}


def _application(name: str, version: str) -> dict[str, Any]:
    return {"type": "application", "name": name, "version": version}
