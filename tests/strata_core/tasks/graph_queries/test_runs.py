"""Whole runs of a tiny reasoner: stopped and gone on with, on two ranks, from a state saved with the encoder frozen."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from strata_core.corpus.generators.reasoning import SPLITS, ReasoningSettings
from strata_core.corpus.graphs.corpus import open_graph_corpus
from strata_core.corpus.graphs.preparation import prepare_reasoning_corpus
from strata_core.launch.starting import resume_run, train
from strata_core.recipes import load_recipe
from strata_core.tasks.graph_queries.task import GraphQueryTask
from strata_core.training.checkpoint import load_checkpoint
from strata_core.training.distributed import ALONE
from strata_core.training.optimizer import load_optimizer_state, optimizer_state
from strata_core.training.precision import choose_precision
from strata_core.training.step import TrainingStep
from strata_core.training.stop import StopRequests
from tests.drills.forking import differences
from tests.strata_core.training.test_engine import stop_after

torch.set_num_threads(1)
ROOT = Path(__file__).parents[4]
SETTINGS = (
    "model.d_model=8",
    "model.message_rank=4",
    "model.dropout=0.2",
    "objective.on_policy_selection=true",
    "objective.relation_samples=5",
    "batch.batch_size=12",
    "batch.micro_batch_size=6",
    "batch.num_workers=0",
    "run.max_steps=8",
    "optimizer.warmup_steps=2",
    "run.log_every=1",
    "evaluation.every=4",
    "checkpoint.every=4",
    "checkpoint.keep_last=9",
)


@pytest.fixture(scope="module")
def recipe_path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reasoning")
    prepare_reasoning_corpus(folder / "corpus", ReasoningSettings(n_examples=dict.fromkeys(SPLITS[:2], 42)))
    (folder / "recipe.toml").write_text('kind = "graph"\n[corpus]\npath = "corpus"\n')
    return folder / "recipe.toml"


@pytest.fixture(scope="module")
def undisturbed(recipe_path, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "undisturbed"
    train(load_recipe(recipe_path, "graph", SETTINGS), run, device="cpu")
    return run


def test_a_stopped_run_goes_on_as_if_it_had_not_with_search_negatives_and_dropout_in_mid_epoch(
    undisturbed, recipe_path, tmp_path, monkeypatch
):
    stop = StopRequests()
    with monkeypatch.context() as patch:
        stop_after(5, GraphQueryTask, patch, stop)
        first = train(load_recipe(recipe_path, "graph", SETTINGS), tmp_path / "run", device="cpu", stop=stop)
    assert (first["stopped_because"], first["steps"]) == ("preempted", 5)
    assert resume_run(tmp_path / "run", device="cpu")["stopped_because"] == "finished"
    assert differences(tmp_path / "run", undisturbed, 8) == []


def test_every_loss_is_recorded_and_the_checkpoint_keeps_the_temperatures(undisturbed):
    record = json.loads((undisturbed / "metrics.jsonl").read_text().splitlines()[-1])
    losses = {name for name in record if name.startswith("loss_")}
    assert len(losses) == 12
    state = load_checkpoint(undisturbed / "checkpoints" / "latest")
    assert state.config["kind"] == "graph-reasoner"
    evaluation = json.loads((undisturbed / "evaluations.jsonl").read_text().splitlines()[-1])
    assert evaluation["selection_score"] == pytest.approx(
        np.mean([evaluation[name] for name in ("hits_at_1", "path_f1", "status_macro_f1", "count_accuracy")])
    )


def step_over(recipe, corpus):
    """A step of training, as the engine makes it, of a model that is as it begins."""
    task = GraphQueryTask(recipe, corpus)
    cpu = torch.device("cpu")
    return TrainingStep(task, task.build_model(), recipe, cpu, ALONE, choose_precision("fp32", cpu, force=False)), task


def update(step, task, number):
    plan = task.plan(number)
    sums = step.accumulate(plan, [task.fetch(part) for part in plan.micro_batches], step=number).sum(dim=0)
    step.update(sums / torch.tensor([max(count, 1) for count in plan.counts.values()]), 1e-2, number)


@pytest.mark.parametrize("frozen", [True, False])
def test_optimizer_state_of_a_run_with_the_encoder_frozen_loads_where_it_is_trained_and_back(
    recipe_path, tmp_path, frozen
):
    def recipe(freeze):
        setting = f"optimizer.freeze_query_encoder={str(freeze).lower()}"
        return load_recipe(recipe_path, "graph", [*SETTINGS, "run.max_steps=3", setting])

    train(recipe(frozen), tmp_path / "run", device="cpu")
    saved = load_checkpoint(tmp_path / "run" / "checkpoints" / "latest").optimizer
    encoder = {"query_encoder.relations.weight", "query_encoder.modes.weight"}
    names = {name.rsplit(".", 1)[0] for name in saved}
    assert (encoder & names) == (set() if frozen else encoder)

    step, task = step_over(recipe(not frozen), open_graph_corpus(recipe_path.parent / "corpus"))
    load_optimizer_state(step.optimizer, step.parameters, saved)
    loaded = optimizer_state(step.optimizer, step.parameters)
    assert {name.rsplit(".", 1)[0] for name in loaded} == names - encoder
    assert all(torch.equal(tensor, saved[name]) for name, tensor in loaded.items())

    before = {name: tensor.detach().clone() for name, tensor in step.model.named_parameters()}
    update(step, task, 3)
    moved = {name for name, tensor in step.model.named_parameters() if not torch.equal(tensor, before[name])}
    assert "passing.update.outer.weight" in moved
    assert (encoder & moved) == (encoder if frozen else set())
    after = optimizer_state(step.optimizer, step.parameters)
    assert after["passing.update.outer.weight.step"] == saved["passing.update.outer.weight.step"] + 1
    assert all((f"{name}.step" in after) == frozen for name in encoder)


@pytest.mark.slow
def test_two_ranks_train_what_one_does(recipe_path, tmp_path):
    runs = [tmp_path / name for name in ("one", "two")]
    for run, ranks in zip(runs, ("1", "2"), strict=True):
        settings = [part for setting in SETTINGS for part in ("--set", setting)]
        command = [sys.executable, "-m", "strata_cli", "train-graph", "--recipe", str(recipe_path), "--out", str(run)]
        done = subprocess.run([*command, "--nproc", ranks, "--device", "cpu", *settings], cwd=ROOT, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
    one, two = ([json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()] for run in runs)
    for first, second in zip(one, two, strict=True):
        for name in first.keys() - {"timing"}:
            assert second[name] == pytest.approx(first[name], rel=1e-6, abs=1e-6), name
