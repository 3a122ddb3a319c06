"""A checkpoint taken out of its run: evaluated on a corpus named by hand, it has the figures that it has inside."""

import math
import shutil
from pathlib import Path

import pytest
import torch

from strata_core.inference.evaluation import evaluate_trained
from strata_core.launch.starting import train
from strata_core.recipes import load_recipe
from strata_core.recipes.names import list_recipes
from tests.strata_core.tasks.sentence_structure.role_edits.role_edit_corpus import make_role_edit_corpus
from tests.strata_core.tasks.sentence_structure.role_edits.test_losses import EVERYTHING
from tests.strata_core.tasks.sentence_structure.treebank_corpus import ALL_WEIGHTS, small_recipe

torch.set_num_threads(1)

TWINS = [name for name in list_recipes() if name.startswith("lm/synthetic/")]

TINY = (
    "model.d_model=16",
    "model.n_heads=2",
    "model.heads.arc_width=8",
    "model.word_features.buckets=64",
    "batch.seq_len=96",
    "batch.num_workers=0",
    "run.max_steps=3",
    "run.precision='fp32'",
    "evaluation.every=0",
    "checkpoint.every=0",
)
"""Windows as long as the longest sentence: without its run, a checkpoint reads text in windows of model.max_seq_len."""

ONE_LENGTH = "batch.seq_len=64", "batch.max_sentence_len=64"

GRAPHS_OF_CHANCE = (
    *ALL_WEIGHTS,
    *EVERYTHING,
    "model.graph_object_memory.intervention='random'",
    "model.graph_object_memory.initial_gate=2.0",
    "model.predicate_memory.initial_gate=2.0",
    "objective.role_edit.bias_value=1.5",
    "objective.role_edit.override_scope='role_only'",
    "objective.role_edit.source='treebank'",
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return make_role_edit_corpus(tmp_path_factory.mktemp("rebuilt"))


def figures(value, name="") -> dict:
    """All numbers and names in a report by where they stand."""
    if isinstance(value, dict):
        return {key: leaf for part, inner in value.items() for key, leaf in figures(inner, f"{name}.{part}").items()}
    if isinstance(value, list):
        return figures(dict(enumerate(value)), name)
    return {name: value}


def check_lone_checkpoint(run: Path, corpus: Path, folder: Path) -> dict:
    """Compares the figures outside the run with those inside, which it returns."""
    shutil.copytree((run / "checkpoints" / "latest").resolve(), folder / "lone")
    lone = figures(evaluate_trained(folder / "lone", corpus=corpus, device="cpu").metrics)
    inside = figures(evaluate_trained(run, choose="latest", device="cpu").metrics)
    assert lone.keys() == inside.keys()
    for name, figure in inside.items():
        same = pytest.approx(figure, rel=1e-4, abs=1e-6) if isinstance(figure, float) else figure
        assert lone[name] == same, name
    return inside


@pytest.mark.parametrize("name", TWINS)
def test_a_lone_checkpoint_of_each_synthetic_twin_scores_what_it_scores_in_its_run(name, corpus, tmp_path):
    recipe = load_recipe(name, "lm", [f"corpus.path={corpus.path}", *TINY])
    train(recipe, tmp_path / "run", device="cpu")
    inside = check_lone_checkpoint(tmp_path / "run", corpus.path, tmp_path)
    assert math.isfinite(inside[".loss"])


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(GRAPHS_OF_CHANCE, id="added"),
        pytest.param((*GRAPHS_OF_CHANCE, "model.graph_object_memory.learned_weight=0.4"), id="mixed"),
        pytest.param((*GRAPHS_OF_CHANCE, "model.graph_object_memory.anneal_final_learned_weight=0.25"), id="annealed"),
        pytest.param((), id="text of annotated sentences"),
    ],
)
def test_a_lone_checkpoint_is_read_as_its_recipe_says(settings, corpus, tmp_path):
    train(small_recipe(corpus, *settings, *ONE_LENGTH, "run.max_steps=8"), tmp_path / "run", device="cpu")
    check_lone_checkpoint(tmp_path / "run", corpus.path, tmp_path)


def test_a_lone_checkpoint_with_a_memory_is_evaluated_on_plain_text(tiny_recipe, byte_corpus, tmp_path):
    train(tiny_recipe("model.predicate_memory.enabled=true"), tmp_path / "run", device="cpu")
    check_lone_checkpoint(tmp_path / "run", byte_corpus, tmp_path)
