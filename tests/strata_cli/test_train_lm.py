import json
import sys
import tomllib

import pytest

from strata_cli import main
from strata_cli.commands.train import new_run_dir
from strata_cli.display.memory_table import show_below_recipe
from strata_core.memory_fit import MemoryPlan


def test_a_dry_run_prints_the_resolved_recipe_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main.run(["train-lm", "--recipe", "quickstart", "--set", "run.max_steps=77", "--dry-run"]) == 0
    tables = tomllib.loads(capsys.readouterr().out)
    assert (tables["run"]["max_steps"], tables["optimizer"]["schedule_steps"]) == (77, 77)
    assert main.run(["train-lm", "--recipe", "quickstart", "--dry-run", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["recipe"]["kind"] == "lm"
    memory = answer["memory"]
    assert memory["device"] == "cpu"
    assert sum(memory["parts"].values()) == memory["predicted_peak_bytes"] <= memory["budget_bytes"]
    assert memory["fits"] and memory["largest_micro_batch_size"] == 16
    assert list(tmp_path.iterdir()) == []


def training_without_validation(folder, *settings):
    """The command line that trains a tiny model on a corpus, made here, without a validation split."""
    (folder / "a.txt").write_text("one text with some words in it\n" * 200)
    corpus = str(folder / "corpus")
    assert main.run(["prepare-corpus", str(folder / "a.txt"), "--out", corpus, "--val-fraction", "0"]) == 0
    small = ("model.n_layers=1", "model.d_model=16", "model.n_heads=2", "batch.seq_len=16", "batch.batch_size=8")
    options = [part for setting in (*small, f"corpus.path={corpus}", *settings) for part in ("--set", setting)]
    return ["train-lm", "--recipe", "lm/small", *options]


def test_a_corpus_without_validation_is_refused_once_with_the_remedy_and_planned_for_all_the_same(tmp_path, capsys):
    arguments = [*training_without_validation(tmp_path), "--out", str(tmp_path / "run")]
    capsys.readouterr()
    assert main.run(arguments) == 2
    said = capsys.readouterr().err
    assert said.count("has no validation split") == 1 and "set evaluation.every = 0" in said
    assert not (tmp_path / "run").exists()
    assert main.run([*arguments, "--dry-run"]) == 0
    said = capsys.readouterr().err
    assert "warning: training would be refused" in said and "set evaluation.every = 0" in said


def test_a_run_that_cannot_fit_is_refused_before_anything_starts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ["train-lm", "--recipe", "lm/1b", "--set", "model.n_layers=4", "--device", "cuda"]
    arguments += ["--device-memory", "8GiB"]
    assert main.run(arguments) == 3
    said = capsys.readouterr().err
    assert "8.0 GiB" in said and "--set memory.recompute=blocks needs" in said
    assert main.run([*arguments, "--dry-run", "--json"]) == 3
    memory = json.loads(capsys.readouterr().out)["memory"]
    assert not memory["fits"]
    assert all(remedy["predicted_peak_bytes"] <= 8 * 2**30 for remedy in memory["remedies"])
    assert list(tmp_path.iterdir()) == []


def test_a_bad_recipe_is_refused_before_torch_is_loaded(strata, tmp_path):
    (tmp_path / "torch.py").write_text("raise SystemExit('torch was imported')")
    result = strata("train-lm", "--recipe", "quickstart", "--set", "run.max_step=5")
    assert result.returncode == 2
    assert b"--set run.max_step=5: unknown key; did you mean run.max_steps?" in result.stderr


def test_a_place_that_is_taken_is_refused_before_torch_is_loaded(strata, tmp_path):
    (tmp_path / "torch.py").write_text("raise SystemExit('torch was imported')")
    (tmp_path / "taken").mkdir()
    result = strata("train-lm", "--recipe", "quickstart", "--out", "taken")
    assert (result.returncode, b"taken exists already" in result.stderr) == (6, True)


@pytest.mark.parametrize(
    ("recipe", "name"), [("lm/small", "small-1"), ("x/my run.toml", "my-run-1"), ("quickstart", "quickstart-1")]
)
def test_the_default_run_directory_is_named_after_the_recipe(tmp_path, monkeypatch, recipe, name):
    monkeypatch.chdir(tmp_path)
    assert new_run_dir(recipe).as_posix() == f"runs/{name}"


def test_the_default_run_directory_is_never_one_that_exists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "small-1").mkdir(parents=True)
    (tmp_path / "runs" / "small-2").symlink_to("nowhere")
    assert new_run_dir("lm/small").as_posix() == "runs/small-3"


def test_a_resume_that_cannot_fit_names_no_setting_that_it_would_refuse(tmp_path, capsys):
    run = str(tmp_path / "run")
    once = ("run.max_steps=1", "optimizer.warmup_steps=0", "evaluation.every=0")
    assert main.run([*training_without_validation(tmp_path, *once), "--out", run]) == 0
    before = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert main.run(["resume", run, "--set", "run.max_steps=2", "--device-memory", "1MiB", "--device", "cpu"]) == 3
    said = capsys.readouterr().err
    assert "hint: use a device with more memory" in said and "micro_batch" not in said.partition("error:")[2]
    assert sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir()) == before


def test_ranks_of_the_environment_are_ignored_or_refused_by_the_names_of_their_variables(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    dry = ["train-lm", "--recipe", "quickstart", "--set", "batch.micro_batch_size=16", "--device", "cpu", "--dry-run"]
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert main.run(dry) == 0
    said = capsys.readouterr().err
    assert "warning: WORLD_SIZE=4 in the environment is ignored: without RANK it starts no ranks" in said
    for name, value in {"WORLD_SIZE": "3", "RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}.items():
        monkeypatch.setenv(name, value)
    assert main.run(dry) == 2
    said = capsys.readouterr().err
    assert "3 ranks cannot share equally: RANK=0, WORLD_SIZE=3 in the environment make this process one" in said
    assert "to train in this process alone: unset RANK WORLD_SIZE" in said
    assert main.run([*dry, "--nproc", "2"]) == 2
    assert "--nproc, --nnodes and --max-restarts start ranks, and RANK=0" in capsys.readouterr().err


def test_a_size_without_a_unit_is_refused_before_anything_is_read(tmp_path, capsys):
    for command in (["train-lm", "--recipe", "nowhere"], ["train-graph", "--recipe", "nowhere"], ["resume", "nowhere"]):
        assert main.run([*command, "--device-memory", "80"]) == 2
        said = capsys.readouterr().err
        assert "'80' has no unit" in said and "hint: did you mean 80GiB?" in said


def test_a_resume_that_may_not_cut_its_batch_anew_shows_no_largest_micro_batch(tmp_path, capsys):
    parts = {"weights": 7}
    for changeable, is_shown in ((None, True), (frozenset({"memory.recompute"}), False)):
        plan = MemoryPlan("cpu", 10**9, parts, 7, largest_micro_batch_size=2, changeable=changeable)
        show_below_recipe(plan)
        assert ("largest micro-batch" in capsys.readouterr().out) == is_shown


def test_resuming_what_is_no_run_is_a_usage_error(tmp_path, capsys):
    assert main.run(["resume", str(tmp_path / "none")]) == 2
    assert main.run(["resume", str(tmp_path), "--from", "newest"]) == 2
    assert "latest, best or the number of a step" in capsys.readouterr().err


def test_help_is_shown_without_torch(strata, tmp_path):
    for name in ("torch", "numpy", "tokenizers", "pydantic"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')")
    for command in ("train-lm", "train-graph", "resume", "recipes", "prepare-corpus", "verify-manifest", None):
        assert strata(*filter(None, [command]), "--help").returncode == 0
    assert "torch" not in sys.argv
