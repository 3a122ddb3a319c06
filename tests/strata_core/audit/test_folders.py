from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from strata_core.audit import inspect_checkpoint
from strata_core.errors import UsageError
from tests.strata_core.audit.building import call, floats, name, program, safetensors, text

PAYLOAD = program(call(name("posix", "system"), text("touch CANARY")))


def one_tensor(tensor: str, *values: float) -> bytes:
    size = 4 * len(values)
    return safetensors({tensor: {"dtype": "F32", "shape": [len(values)], "data_offsets": [0, size]}}, floats(*values))


def sharded(folder: Path, weight_map: dict[str, Any]) -> Path:
    folder.mkdir()
    (folder / "a.safetensors").write_bytes(one_tensor("x", 1, 2))
    (folder / "b.safetensors").write_bytes(one_tensor("y", 3))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return folder


def test_a_sharded_folder_is_read_as_one(tmp_path: Path) -> None:
    report = inspect_checkpoint(sharded(tmp_path / "m", {"x": "a.safetensors", "y": "b.safetensors"}))
    assert (report.verdict, report.format) == ("ok", "sharded")
    assert report.totals["parameters"] == 3
    assert {tensor.name: tensor.file for tensor in report.tensors} == {"x": "a.safetensors", "y": "b.safetensors"}


@pytest.mark.parametrize(
    ("weight_map", "reason"),
    [
        ({"x": "../secret.safetensors"}, "leads out of the folder"),
        ({"x": "/etc/passwd"}, "leads out of the folder"),
        ({"x": "c:\\a.safetensors"}, "leads out of the folder"),
        ({"x": "missing.safetensors"}, "missing"),
        ({"x": "b.safetensors"}, "tensor x is not in b.safetensors"),
        ({"x": 1}, "without a weight_map"),
    ],
)
def test_an_index_that_lies_is_corrupt(weight_map: dict[str, Any], reason: str, tmp_path: Path) -> None:
    (tmp_path / "secret.safetensors").write_bytes(one_tensor("x", 1))
    report = inspect_checkpoint(sharded(tmp_path / "m", weight_map))
    assert report.verdict == "corrupt"
    assert any(reason in found for found in report.reasons())


def test_links_and_special_files_are_not_opened(tmp_path: Path) -> None:
    folder = sharded(tmp_path / "m", {"x": "a.safetensors", "y": "b.safetensors"})
    (tmp_path / "evil.pt").write_bytes(PAYLOAD)
    (folder / "link.pt").symlink_to(tmp_path / "evil.pt")
    os.mkfifo(folder / "pipe.pt")
    report = inspect_checkpoint(folder)
    assert report.verdict == "corrupt"
    assert "link.pt is a symbolic link; it was not opened" in report.reasons()
    assert "pipe.pt is a named pipe; it was not opened" in report.reasons()
    assert report.globals == []


def test_a_special_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    report = inspect_checkpoint(tmp_path / "pipe")
    assert report.verdict == "corrupt"
    assert "no regular file" in report.reasons()[0]


def test_a_path_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        inspect_checkpoint(tmp_path / "nothing")
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(UsageError, match="leads nowhere"):
        inspect_checkpoint(tmp_path / "dangling")


@pytest.mark.parametrize("hidden", ["optimizer.pt", "notes.txt", "tokenizer", "scheduler.bin"])
def test_a_payload_in_any_file_of_a_folder_is_found(hidden: str, tmp_path: Path) -> None:
    folder = sharded(tmp_path / "m", {"x": "a.safetensors", "y": "b.safetensors"})
    (folder / hidden).write_bytes(PAYLOAD)
    assert inspect_checkpoint(folder).verdict == "unsafe"


def test_ordinary_files_beside_a_checkpoint_are_no_fault(tmp_path: Path) -> None:
    folder = sharded(tmp_path / "m", {"x": "a.safetensors", "y": "b.safetensors"})
    (folder / "README.md").write_text("A model card.\n")
    (folder / "merges.txt").write_text("c a\n(d b\nI 1\n")
    (folder / "config.json").write_text(json.dumps({"layers": 2, "transformers_version": "5.0"}))
    report = inspect_checkpoint(folder)
    assert report.verdict == "ok"
    assert report.settings["layers"] == 2
    assert report.versions == {"transformers_version": "5.0"}


def test_a_folder_without_checkpoints_says_so(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-5").mkdir()
    report = inspect_checkpoint(tmp_path)
    assert report.verdict == "corrupt"
    assert "checkpoint-5" in report.reasons()[0]


def strata_checkpoint(folder: Path, *, step: int = 100) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model": {"d_model": 8}}))
    (folder / "trainer.json").write_text(json.dumps({"progress": {"step": step}}))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(one_tensor("emb.weight", 1, 2, 3))
    (folder / "optimizer.safetensors").write_bytes(one_tensor("emb.weight.exp_avg_sq", 1, 2, -3))
    files = [
        {"path": path.name, "size": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for path in sorted(folder.iterdir())
    ]
    (folder / "manifest.json").write_text(json.dumps({"files": files}))
    return folder


def test_a_strata_checkpoint_tells_its_step_settings_and_moments(tmp_path: Path) -> None:
    report = inspect_checkpoint(strata_checkpoint(tmp_path / "step-00000100"))
    assert (report.verdict, report.format, report.step) == ("ok", "strata checkpoint", 100)
    assert report.settings == {"model.d_model": 8}
    assert report.totals["parameters"] == 3
    assert report.optimizer is not None
    assert report.optimizer["kinds"] == {"exp_avg_sq": 1}


def test_negative_mean_squares_are_a_numeric_fault(tmp_path: Path) -> None:
    report = inspect_checkpoint(strata_checkpoint(tmp_path / "c"), stats=True)
    assert report.verdict == "numeric"
    assert "cannot be negative" in report.reasons()[0]


def test_a_size_that_differs_from_the_manifest_is_corrupt_at_once(tmp_path: Path) -> None:
    folder = strata_checkpoint(tmp_path / "c")
    (folder / "tokenizer.json").write_text("{ }")
    report = inspect_checkpoint(folder)
    assert report.verdict == "corrupt"
    assert "3 bytes where manifest.json announces 2" in report.reasons()[0]


def test_changed_content_of_the_same_size_is_found_with_stats(tmp_path: Path) -> None:
    folder = strata_checkpoint(tmp_path / "c")
    (folder / "tokenizer.json").write_text("[]")
    assert inspect_checkpoint(folder).verdict == "ok"
    report = inspect_checkpoint(folder, stats=True)
    assert report.verdict == "corrupt"
    assert "tokenizer.json: SHA-256" in report.reasons()[0]


def test_a_missing_manifest_is_noted(tmp_path: Path) -> None:
    folder = strata_checkpoint(tmp_path / "c")
    (folder / "manifest.json").unlink()
    report = inspect_checkpoint(folder)
    assert report.verdict == "ok"
    assert any("manifest.json is missing" in note for note in report.notes)


def run_folder(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    for step in (900, 1000):
        strata_checkpoint(run / "checkpoints" / f"step-{step:08}", step=step)
    (run / "recipe.toml").write_text("")
    return run


def test_a_run_shows_its_latest_checkpoint(tmp_path: Path) -> None:
    run = run_folder(tmp_path)
    (run / "checkpoints" / "latest").symlink_to("step-00000900")
    report = inspect_checkpoint(run)
    assert (report.format, report.step) == ("strata run", 900)


def test_a_run_without_the_link_shows_its_highest_step(tmp_path: Path) -> None:
    assert inspect_checkpoint(run_folder(tmp_path)).step == 1000


def test_a_link_out_of_the_run_is_not_followed(tmp_path: Path) -> None:
    run = run_folder(tmp_path)
    shutil.copytree(run / "checkpoints" / "step-00000900", tmp_path / "outside")
    (run / "checkpoints" / "latest").symlink_to("../../outside")
    report = inspect_checkpoint(run)
    assert report.verdict == "corrupt"
    assert "leads out of the run" in report.reasons()[0]
    assert report.tensors == []


def test_a_corpus_is_no_checkpoint_and_is_sent_to_the_command_for_it(byte_corpus) -> None:
    with pytest.raises(UsageError, match=f"{byte_corpus} is a strata corpus, not a checkpoint") as refused:
        inspect_checkpoint(byte_corpus)
    assert refused.value.hint == f"strata verify-manifest {byte_corpus} checks it"


def test_a_payload_among_the_files_of_a_corpus_is_found(byte_corpus, tmp_path: Path) -> None:
    shutil.copytree(byte_corpus, tmp_path / "corpus")
    (tmp_path / "corpus" / "train-00001.bin").write_bytes(PAYLOAD)
    assert inspect_checkpoint(tmp_path / "corpus").verdict == "unsafe"


def test_a_folder_that_only_calls_itself_a_corpus_is_looked_into(tmp_path: Path) -> None:
    (tmp_path / "corpus.json").write_text("{}")
    (tmp_path / "manifest.json").write_text('{"describes": "corpus"}')
    (tmp_path / "model.safetensors").write_bytes(one_tensor("w", 1, 2, 3))
    assert inspect_checkpoint(tmp_path).verdict == "ok"
