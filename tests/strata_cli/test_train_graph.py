"""`strata train-graph`, and `strata resume` of its runs."""

import json
import shutil

import pytest

from strata_cli import main
from strata_core.corpus.graphs.preparation import GraphSettings, prepare_graph_sample
from tests.strata_core.corpus.helpers import write_jsonl

SMALL = GraphSettings(sample_examples=60, sample_eval_examples=15, sample_longest_hops=2)
SETTINGS = {
    "model.d_model": 16,
    "batch.batch_size": 12,
    "batch.micro_batch_size": 6,
    "run.max_steps": 4,
    "run.log_every": 1,
    "optimizer.warmup_steps": 1,
    "evaluation.every": 2,
    "checkpoint.every": 2,
    **dict.fromkeys(
        [f"objective.{name}" for name in ("node", "link", "next_hop", "relation", "path_alignment", "count")], 0.0
    ),
}
"""A few steps of a few of the objectives: planning the memory traces each of them."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return prepare_graph_sample("synthetic-reasoning", tmp_path_factory.mktemp("graphs") / "corpus", SMALL).path


def command(corpus, *arguments, **changes):
    settings = SETTINGS | {"corpus.path": corpus} | {key.replace("__", "."): value for key, value in changes.items()}
    given = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    return ["train-graph", "--recipe", "graph/quickstart", "--device", "cpu", *given, *map(str, arguments)]


def answer(capsys):
    return json.loads(capsys.readouterr().out)


def test_a_dry_run_prints_the_resolved_recipe_and_the_memory_plan(corpus, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main.run(command(corpus, "--dry-run", "--json")) == 0
    planned = answer(capsys)
    assert planned["recipe"]["kind"] == "graph" and planned["recipe"]["corpus"]["path"] == str(corpus)
    assert planned["memory"]["fits"] and planned["memory"]["predicted_peak_bytes"] > 0
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_trained_verified_and_resumed_to_the_same_bytes(corpus, tmp_path, capsys):
    run, again = tmp_path / "run", tmp_path / "again"
    assert main.run(command(corpus, "--out", run, "--json")) == 0
    result = answer(capsys)
    assert (result["steps"], result["stopped_because"]) == (4, "finished")
    assert result["best"]["metric"] == "selection_score"
    assert main.run(["verify-manifest", str(run)]) == 0
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [record["step"] for record in records] == [1, 2, 3, 4]
    assert {"loss_answer", "loss_status", "loss_path_selection", "loss_confidence"} <= records[0].keys()
    shutil.copytree(run, again, symlinks=True)
    shutil.rmtree(again / "checkpoints" / "step-00000004")
    assert main.run(["resume", str(again), "--device", "cpu", "--quiet"]) == 0
    capsys.readouterr()
    last = "checkpoints/step-00000004/model.safetensors"
    assert (again / last).read_bytes() == (run / last).read_bytes()
    resumed = [json.loads(line) for line in (again / "metrics.jsonl").read_text().splitlines()]
    for record in records + resumed:
        del record["timing"]
    assert resumed == records
    assert main.run(["resume", str(again), "--set", "run.max_steps=5", "--device", "cpu", "--json"]) == 0
    assert answer(capsys)["steps"] == 5


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"objective__answr": 1}, "did you mean objective.answer?"),
        ({"distributed__use_fsdp": "true"}, "data parallelism replicates the full state on each rank"),
        ({"corpus__path": "nowhere"}, "there is no such corpus"),
        ({"corpus__path": "", "corpus__sample": ""}, "the recipe names no corpus"),
    ],
)
def test_what_cannot_be_trained_is_a_usage_error(corpus, tmp_path, monkeypatch, capsys, changes, said):
    monkeypatch.chdir(tmp_path)
    assert main.run(command(corpus, "--out", tmp_path / "run", **changes)) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_recipe_or_corpus_of_the_other_kind_names_the_right_command(corpus, tmp_path, capsys):
    assert main.run(["train-graph", "--recipe", "lm/small", "--out", str(tmp_path / "run")]) == 2
    assert "strata train-lm --recipe lm/small" in capsys.readouterr().err
    assert main.run(["train-lm", "--recipe", "lm/small", "--set", f"corpus.path={corpus}", "--dry-run"]) == 5
    assert "strata train-graph" in capsys.readouterr().err
    text = write_jsonl(tmp_path / "in.jsonl", ["some text"] * 5)
    prepare = ["prepare-corpus", str(text), "--vocab-size", "300", "--val-fraction", "0", "--quiet"]
    assert main.run([*prepare, "--out", str(tmp_path / "text")]) == 0
    assert main.run(command(tmp_path / "text", "--out", tmp_path / "run")) == 5
    assert "strata train-lm" in capsys.readouterr().err


def test_a_place_that_is_taken_is_refused_before_torch_is_loaded(strata, tmp_path):
    (tmp_path / "torch.py").write_text("raise SystemExit('torch was imported')")
    (tmp_path / "taken").mkdir()
    result = strata("train-graph", "--recipe", "graph/quickstart", "--out", "taken")
    assert (result.returncode, b"taken exists already" in result.stderr) == (6, True)
