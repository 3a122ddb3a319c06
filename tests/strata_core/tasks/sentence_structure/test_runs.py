"""Whole runs of structured models: resumed, on two ranks, warm-started, and learning what is there to learn."""

import json
import re
import shutil

import pytest
import torch

from strata_core.errors import DataError, RecipeError
from strata_core.launch.starting import resume_run, train
from strata_core.models.structured_language_model import GRAPH_OBJECT_PREFIX
from strata_core.recipes import load_recipe
from strata_core.replay.proof import replay
from strata_core.training.checkpoint import load_checkpoint
from tests.strata_core.tasks.sentence_structure.role_edits.role_edit_corpus import make_role_edit_corpus
from tests.strata_core.tasks.sentence_structure.role_edits.test_losses import EVERYTHING
from tests.strata_core.tasks.sentence_structure.treebank_corpus import ALL_WEIGHTS, make_corpus, small_recipe

MIXED = (
    *ALL_WEIGHTS,
    "model.predicate_memory.enabled=true",
    "model.dropout=0.1",
    "model.heads.dropout=0.1",
    "model.word_dropout=0.1",
    "batch.micro_batch_size=6",
    "checkpoint.every=5",
    "checkpoint.keep_last=9",
    "evaluation.every=6",
    "evaluation.metric='structure'",
)


@pytest.fixture(scope="session")
def treebank(tmp_path_factory):
    return make_corpus(tmp_path_factory.mktemp("treebank"))


def weights(run, step=12):
    return load_checkpoint(run / "checkpoints" / f"step-{step:08d}").model


def records(run, name="metrics.jsonl"):
    lines = [json.loads(line) for line in (run / name).read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "timing"} for line in lines]


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())


@pytest.fixture(scope="session")
def undisturbed(treebank, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "undisturbed"
    train(small_recipe(treebank, *MIXED), run, device="cpu")
    return run


def test_each_loss_is_recorded_by_name_and_sums_up_weighted(undisturbed, treebank):
    objective = small_recipe(treebank, *MIXED).objective
    for record in records(undisturbed):
        expected = (
            objective.lm * record["loss_lm"]
            + objective.ud.arc * record["loss_ud_arc"]
            + objective.ud.relation * record["loss_ud_relation"]
            + objective.ud.node_type * record["loss_node_type"]
            + objective.srl.predicate * record["loss_srl_predicate"]
            + objective.srl.role * record["loss_srl_role"]
            + objective.srl.core_role * record["loss_srl_core_role"]
            + objective.chart.type * record["loss_chart_type"]
        )
        assert record["loss"] == pytest.approx(expected, rel=1e-6)


def test_a_run_resumed_in_the_middle_ends_bit_equal(undisturbed, treebank, tmp_path):
    run = tmp_path / "resumed"
    shutil.copytree(undisturbed, run, symlinks=True)
    resume_run(run, start_from="5", device="cpu")
    assert same(weights(run), weights(undisturbed))
    assert records(run) == records(undisturbed)
    assert records(run, "evaluations.jsonl") == records(undisturbed, "evaluations.jsonl")


def test_what_no_objective_reaches_is_bit_equal_after_training(treebank, tmp_path):
    first = "objective.ud.node_type=1.0", "checkpoint.every=1", "checkpoint.keep_last=9"
    train(small_recipe(treebank, *first, "run.max_steps=3"), tmp_path / "run", device="cpu")
    early, late = weights(tmp_path / "run", 1), weights(tmp_path / "run", 3)
    still = {name for name in early if torch.equal(early[name], late[name])}
    heads = {name for name in early if name.startswith("heads.") and "node_types" not in name}
    assert still == heads
    optimizer = load_checkpoint(tmp_path / "run" / "checkpoints" / "step-00000003").optimizer
    assert not any(name.startswith(tuple(heads)) for name in optimizer)


def test_a_pure_language_model_is_gone_on_from(treebank, tmp_path):
    train(small_recipe(treebank, "batch.sentences=0", "run.max_steps=3"), tmp_path / "pure", device="cpu")
    still = "optimizer.lr=1e-30", "optimizer.min_lr=1e-31", "run.max_steps=3"
    start = f"run.warm_start={str(tmp_path / 'pure')!r}"
    train(small_recipe(treebank, *ALL_WEIGHTS, *still, start), tmp_path / "taught", device="cpu")
    pure, taught = weights(tmp_path / "pure", 3), weights(tmp_path / "taught", 3)
    assert all(torch.allclose(value, taught[name], atol=1e-12) for name, value in pure.items())
    back = f"run.warm_start={str(tmp_path / 'taught')!r}"
    train(small_recipe(treebank, "batch.sentences=0", *still, back), tmp_path / "back", device="cpu")
    again = weights(tmp_path / "back", 3)
    assert again.keys() == pure.keys()


def test_a_controller_changes_the_graph_object_memory_of_the_run_it_starts_from_and_nothing_else(tmp_path):
    corpus = make_role_edit_corpus(tmp_path)
    settings = *ALL_WEIGHTS, *EVERYTHING, "run.max_steps=3"
    train(small_recipe(corpus, *settings), tmp_path / "taught", device="cpu")
    start = "model.graph_object_memory.train_alone=true", f"run.warm_start={str(tmp_path / 'taught')!r}"
    train(small_recipe(corpus, *settings, *start), tmp_path / "controller", device="cpu")
    before, after = weights(tmp_path / "taught", 3), weights(tmp_path / "controller", 3)
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {name for name in before if name.startswith(GRAPH_OBJECT_PREFIX)}


def test_a_warm_start_with_other_labels_is_refused_with_the_numbers(undisturbed, treebank, tmp_path):
    other = make_corpus(tmp_path / "other", roles=False)
    settings = [setting for setting in MIXED if "srl" not in setting]
    recipe = small_recipe(other, *settings, f"run.warm_start={str(undisturbed)!r}")
    labels = treebank.structure("train").labels.names("role")
    with pytest.raises(RecipeError, match="other labels") as raised:
        train(recipe, tmp_path / "run", device="cpu")
    assert any(re.search(rf"\b0 .*, {len(labels)} in the checkpoint", line) for line in raised.value.problems)


def test_a_warm_start_of_another_width_is_refused(undisturbed, treebank, tmp_path):
    recipe = small_recipe(treebank, *MIXED, "model.d_model=20", f"run.warm_start={str(undisturbed)!r}")
    with pytest.raises(DataError, match="does not match the model"):
        train(recipe, tmp_path / "run", device="cpu")


def test_a_raised_number_of_steps_leaves_the_anneal_of_the_steps_before_as_it_was(treebank, tmp_path):
    graphs = "model.graph_object_memory"
    annealed = f"{graphs}.enabled=true", f"{graphs}.intervention='typed'", f"{graphs}.anneal_final_learned_weight=0.0"
    cadence = "run.max_steps=4", "checkpoint.every=2", "checkpoint.keep_last=9"
    run, again = tmp_path / "run", tmp_path / "again"
    recipe = small_recipe(treebank, *ALL_WEIGHTS, *annealed, "model.predicate_memory.enabled=true", *cadence)
    train(recipe, run, device="cpu")
    shutil.copytree(run, again, symlinks=True)
    resume_run(again, start_from="2", overrides=["run.max_steps=6"], device="cpu")
    assert records(again)[:4] == records(run)
    assert same(weights(again, 4), weights(run, 4))
    for step in (4, 6):
        assert replay(again, step=step).equal


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "metrics"),
    [
        ("ud", ("uas", "las", "upos")),
        ("srl", ("predicate_f1", "role_f1")),
        ("chart", ("chart",)),
        ("mixed", ("uas", "las", "upos", "predicate_f1", "role_f1", "chart")),
    ],
)
def test_a_synthetic_twin_learns_its_structure(name, metrics, tmp_path):
    train(load_recipe(f"lm/synthetic/{name}"), tmp_path / "run", device="cpu")
    best = records(tmp_path / "run", "evaluations.jsonl")[-1]
    assert all(best[metric] >= 0.99 for metric in metrics), best


@pytest.mark.slow
@pytest.mark.parametrize(("name", "controls"), [("graph-object", ("untyped", "random")), ("role-edit", ())])
def test_a_synthetic_twin_learns_to_follow_role_edits_and_its_controls_stay_at_chance(name, controls, tmp_path):
    train(load_recipe(f"lm/synthetic/{name}"), tmp_path / "run", device="cpu")
    last = records(tmp_path / "run", "evaluations.jsonl")[-1]
    assert last["role_edit_direction"] >= 0.95 and last["role_edit_stability"] >= 0.95, last
    # Three standard errors of a fair coin thrown once for each of the 128 examples that an evaluation asks.
    for control in controls:
        assert last[f"role_edit_direction_{control}"] == pytest.approx(0.5, abs=3 * 0.5 / 128**0.5), last
