"""`strata compare`: equal runs are called equal; of a run and a forgery step, tensor and the right one are named."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from strata_cli import main
from strata_core.manifest import Manifest, hash_files
from strata_core.recipes import load_recipe
from strata_core.training.schedule import CosineSchedule
from tests.strata_core.conftest import TINY

NORM = "transformer.norm.weight"


@pytest.fixture(scope="module")
def trained(tmp_path_factory, byte_corpus) -> Path:
    """A run of 6 steps with checkpoints at 2, 4 and 6, and the same again."""
    folder = tmp_path_factory.mktemp("trained")
    shutil.copytree(byte_corpus, folder / "corpus")
    (folder / "tiny.toml").write_text("[corpus]\npath = 'corpus'\n")
    settings = [*TINY, "run.max_steps=6", "checkpoint.every=2", "checkpoint.keep_last=9", "run.log_every=1"]
    recipe = load_recipe(folder / "tiny.toml", "lm", settings)

    from strata_core.launch.starting import train

    for name in ("run", "again"):
        train(recipe, folder / name, device="cpu")
    return folder


def forged(trained: Path, folder: Path, *, step: int) -> Path:
    """A copy beside the same corpus: one weight at a step is another, and all manifests were rewritten."""
    from safetensors.torch import load_file, save_file

    run = folder / "forged"
    shutil.copytree(trained / "again", run, symlinks=True)
    shutil.copytree(trained / "corpus", folder / "corpus")
    checkpoint = run / f"checkpoints/step-{step:08d}"
    weights = load_file(checkpoint / "model.safetensors")
    weights[NORM][0] += 1.0
    save_file(weights, checkpoint / "model.safetensors")
    rewrite(run, checkpoint)
    return run


def rewrite(run: Path, checkpoint: Path) -> None:
    manifest = Manifest.read(checkpoint)
    manifest = replace(manifest, files=tuple(hash_files(checkpoint, [entry.path for entry in manifest.files])))
    manifest.write(checkpoint)
    of_run = Manifest.read(run)
    name = f"checkpoints/{checkpoint.name}"
    listed = [
        {"path": name, "digest": manifest.digest} if item["path"] == name else item
        for item in of_run.state["checkpoints"]
    ]
    logs = [vars(entry) for entry in hash_files(run, [entry["path"] for entry in of_run.state["logs"]])]
    replace(of_run, state={**of_run.state, "checkpoints": listed, "logs": logs}).write(run)


def test_two_runs_of_one_recipe_are_equal(trained, capsys):
    runs = [str(trained / "run"), str(trained / "again")]
    assert main.run(["compare", *runs, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "verdict": "equal", "first_step": None, "tensor": None, "right": None, "checkpoint_step": None, "notes": [],
    }  # fmt: skip
    assert main.run(["compare", *runs]) == 0
    assert capsys.readouterr().out.splitlines() == ["equal: records and checkpoints, as far as both go"]


@pytest.mark.parametrize("order", ["forged first", "forged second"])
def test_a_weight_that_was_replaced_is_named_with_its_step_and_the_right_run(trained, tmp_path, capsys, order):
    forgery = forged(trained, tmp_path, step=4)
    runs = [str(trained / "run"), str(forgery)]
    runs = runs[::-1] if order == "forged first" else runs
    assert main.run(["verify-manifest", str(forgery)]) == 0
    capsys.readouterr()
    assert main.run(["compare", *runs, "--json"]) == 4
    answer = json.loads(capsys.readouterr().out)
    assert (answer["verdict"], answer["first_step"], answer["tensor"]) == ("differ", 4, NORM)
    assert answer["right"] == ("b" if order == "forged first" else "a")


def test_one_step_trained_at_another_rate_is_named_in_a_run_that_is_whole(trained, monkeypatch, capsys):
    honest_rate = CosineSchedule.rate
    recipe = load_recipe(trained / "run/recipe.toml", "lm", [f"corpus.path={trained / 'corpus'}"])

    from strata_core.launch.starting import train

    with monkeypatch.context() as altered:
        altered.setattr(
            CosineSchedule, "rate", lambda self, step: honest_rate(self, step) * (1.01 if step == 2 else 1.0)
        )
        train(recipe, trained / "altered", device="cpu")
    assert main.run(["compare", str(trained / "altered"), str(trained / "run"), "--json"]) == 4
    answer = json.loads(capsys.readouterr().out)
    assert (answer["first_step"], answer["checkpoint_step"], answer["right"]) == (3, 4, "b")
    assert answer["tensor"].startswith("transformer.")


def test_a_record_that_was_changed_is_named_by_its_step(trained, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(trained / "again", run, symlinks=True)
    shutil.copytree(trained / "corpus", tmp_path / "corpus")
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    record = json.loads(lines[2])
    assert record["step"] == 3
    lines[2] = json.dumps({**record, "loss": record["loss"] - 0.5}) + "\n"
    (run / "metrics.jsonl").write_text("".join(lines))
    rewrite(run, run / "checkpoints/step-00000002")
    assert main.run(["compare", str(trained / "run"), str(run), "--json"]) == 4
    answer = json.loads(capsys.readouterr().out)
    assert (answer["first_step"], answer["tensor"], answer["right"]) == (3, None, "a")


def test_a_run_with_a_damaged_file_is_not_the_right_one(trained, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(trained / "again", run, symlinks=True)
    text = (run / "metrics.jsonl").read_text()
    (run / "metrics.jsonl").write_text(text.replace('"loss": ', '"loss": 1', 1))
    assert main.run(["compare", str(run), str(trained / "run")]) == 4
    lines = capsys.readouterr().out.splitlines()
    assert "note: a is not what its manifests say: metrics.jsonl: another size" in lines
    assert f"right: b, {trained / 'run'}" in lines


def test_what_is_no_run_is_a_usage_error(trained, tmp_path, capsys):
    assert main.run(["compare", str(trained / "run"), str(tmp_path / "gone")]) == 2
    assert main.run(["compare", str(trained / "run"), str(trained / "corpus")]) == 2
