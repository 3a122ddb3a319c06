"""Statements and bills of materials: their form, and that each value is the one in the manifests."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from datetime import UTC, datetime

import pytest

from strata_core.attestation.bill_of_materials import bill_of_materials
from strata_core.attestation.claims import provenance_statement, verification_statement
from strata_core.attestation.lineage import described
from strata_core.errors import DataError, UsageError
from strata_core.manifest import Manifest, verify

ENVIRONMENT = {
    "code": {"commit": "a" * 40, "dirty": False},
    "libraries": {"numpy": "2.4.6", "torch": "2.13.0+cpu"},
    "python": "3.11.7",
    "strata": "0.1.0",
    "device": "cpu",
}
RECORD = {
    "environment": ENVIRONMENT,
    "kind": "lm",
    "model": {"parameters": 10, "trained_parameters": 9},
    "seed": 1,
    "precision": {"asked": "bf16", "effective": "fp32"},
    "recipe_digest": "b" * 64,
}


@pytest.fixture
def recorded(chain):
    """The chain, with the record that a run has; its checkpoints name it again."""
    chain.rewrite(chain.run, record=RECORD)
    digest = Manifest.read(chain.run).digest
    state = Manifest.read(chain.run).state
    for item in state["checkpoints"]:
        parent = Manifest.read(chain.run / item["path"]).parents[0]
        chain.rewrite(
            chain.run / item["path"],
            parents=(type(parent)("run", digest, "../.."),),
            record={"step": int(item["path"][-8:])},
        )
        item["digest"] = Manifest.read(chain.run / item["path"]).digest
    chain.rewrite(chain.run, state=state)
    assert verify(chain.run).ok
    return chain


def check_statement(data: bytes, folder) -> dict:
    """The form of an in-toto statement v1, with the digest of every file as it lies there."""
    content = json.loads(data)
    assert set(content) == {"_type", "subject", "predicateType", "predicate"}
    assert content["_type"] == "https://in-toto.io/Statement/v1"
    for subject in content["subject"]:
        assert subject == {
            "name": subject["name"],
            "digest": {"sha256": hashlib.sha256((folder / subject["name"]).read_bytes()).hexdigest()},
        }
    return content


def test_a_verification_states_files_chain_and_time(recorded):
    now = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
    report = verify(recorded.run)
    data = verification_statement(described(recorded.run), report, now, replay={"equal": True, "to_step": 300})
    content = check_statement(data, recorded.run)
    predicate = content["predicate"]
    assert content["predicateType"] == "https://strata/verification/v1"
    assert predicate["timeVerified"] == "2026-05-01T12:30:00Z"
    assert predicate["manifest"]["digest"]["sha256"] == Manifest.read(recorded.run).digest
    assert predicate["files"] == {"match": True, "checked": report.checked, "bytes": report.checked_bytes}
    corpus = Manifest.read(recorded.corpus).digest
    assert predicate["chain"] == [{"describes": "corpus", "digest": {"sha256": corpus}, "status": "ok"}]
    assert predicate["replay"] == {"equal": True, "to_step": 300} and "signature" not in predicate
    on_disk = {str(path.relative_to(recorded.run)) for path in recorded.run.rglob("*") if path.is_file()}
    followed = {name for name in on_disk if name.startswith(("checkpoints/latest", "checkpoints/best"))}
    named = {subject["name"] for subject in content["subject"]}
    assert named == on_disk - followed - {".lock", "logs/rank-1.log"}


@pytest.mark.parametrize("which", ["run", "checkpoint", "link"])
def test_provenance_has_recipe_parents_and_what_it_was_built_with(recorded, which):
    checkpoint = recorded.checkpoint(300)
    folder = {"run": recorded.run, "checkpoint": checkpoint, "link": recorded.run / "checkpoints/latest"}[which]
    content = check_statement(provenance_statement(described(folder)), folder)
    assert content["predicateType"] == "https://slsa.dev/provenance/v1"
    definition, details = content["predicate"]["buildDefinition"], content["predicate"]["runDetails"]
    assert definition["externalParameters"] == {
        "recipe": {"run": {"seed": 1}},
        "overrides": {"run": {"max_steps": 300}},
    }
    run, corpus = Manifest.read(recorded.run), Manifest.read(recorded.corpus)
    wanted = [{"name": "corpus", "digest": {"sha256": corpus.digest}}]
    wanted += [{"name": "run", "digest": {"sha256": run.digest}}] if which != "run" else []
    assert definition["resolvedDependencies"] == [*wanted, {"name": "strata", "digest": {"gitCommit": "a" * 40}}]
    assert definition["internalParameters"]["code"] == {"commit": "a" * 40, "dirty": False}
    assert details["builder"]["version"] == {
        "strata": "0.1.0", "python": "3.11.7", "numpy": "2.4.6", "torch": "2.13.0+cpu",
    }  # fmt: skip
    assert details["metadata"] == {"invocationId": run.digest, "startedOn": "2025-01-01T00:00:00+00:00"}


def test_provenance_of_what_has_none_here_is_refused(recorded, tmp_path):
    with pytest.raises(UsageError, match="is a corpus"):
        provenance_statement(described(recorded.corpus))
    shutil.copytree(recorded.checkpoint(300), tmp_path / "copied")
    with pytest.raises(DataError, match="is not here"):
        provenance_statement(described(tmp_path / "copied"))
    (recorded.run / "recipe.toml").write_bytes(b"[run\n")
    with pytest.raises(DataError, match="not TOML"):
        provenance_statement(described(recorded.run))


def test_a_bill_has_the_form_of_cyclonedx_and_the_values_of_the_manifests(recorded):
    content = json.loads(bill_of_materials(described(recorded.run)))
    assert bill_of_materials(described(recorded.run)) == bill_of_materials(described(recorded.checkpoint(300)))
    assert (content["bomFormat"], content["specVersion"], content["version"]) == ("CycloneDX", "1.6", 1)
    model = content["metadata"]["component"]
    assert (model["type"], model["name"]) == ("machine-learning-model", "run/step-00000300")
    files = {file["name"]: file["hashes"] for file in model["components"]}
    assert files == {
        entry.path: [{"alg": "SHA-256", "content": entry.sha256}]
        for entry in Manifest.read(recorded.checkpoint(300)).files
    }
    properties = {item["name"].removeprefix("strata:"): item["value"] for item in model["properties"]}
    assert (properties["step"], properties["parameters"], properties["precision"]) == ("300", "10", "fp32")
    assert properties["manifest-digest"] == Manifest.read(recorded.checkpoint(300)).digest
    corpus = f"corpus:{Manifest.read(recorded.corpus).digest}"
    assert model["modelCard"] == {"modelParameters": {"datasets": [{"ref": corpus}]}}
    references = [component["bom-ref"] for component in content["components"]]
    assert references == [corpus, "pkg:pypi/numpy@2.4.6", "pkg:pypi/torch@2.13.0%2Bcpu"]
    assert content["dependencies"] == [{"ref": model["bom-ref"], "dependsOn": references}]
    assert all(re.fullmatch(r"[0-9a-f]{64}", hashes[0]["content"]) for hashes in files.values())


def test_what_the_manifests_do_not_say_is_left_out_of_a_bill(recorded, tmp_path):
    shutil.copytree(recorded.checkpoint(300), tmp_path / "copied")
    content = json.loads(bill_of_materials(described(tmp_path / "copied")))
    model = content["metadata"]["component"]
    assert [item["name"] for item in model["properties"]] == ["strata:manifest-digest", "strata:step"]
    assert "modelCard" not in model and content["components"] == []
    with pytest.raises(UsageError, match="is a corpus"):
        bill_of_materials(described(recorded.corpus))


def test_a_run_that_another_was_put_in_place_of_is_not_taken_for_the_one_named(recorded):
    recorded.rewrite(recorded.run, record={"seed": 2})
    content = json.loads(bill_of_materials(described(recorded.checkpoint(300))))
    assert content["components"] == []
    assert os.path.exists(recorded.run)
