"""The recipe of a graph-reasoning run."""

import re

import pytest

from strata_core.errors import RecipeError
from strata_core.recipes import dump_recipe, load_any_recipe, load_recipe, load_training_recipe
from strata_core.recipes.graph import GRAPH_WEIGHTS

KNOBS = {
    "batch_size x gradient_accumulation": ("batch.batch_size", 64),
    "backward_chunk_size": ("batch.micro_batch_size", 64),
    "query_encoder_lr_scale": ("optimizer.query_encoder_lr_scale", 1.0),
    "freeze_query_encoder": ("optimizer.freeze_query_encoder", False),
    "link_head": ("model.link_head", "cosine"),
    "scale of the cosine": ("model.link_scale", 2.0),
    "max_count": ("objective.max_count", 16),
    "pair margin": ("objective.pair_margin_size", 1.0),
    "on_policy_selection": ("objective.on_policy_selection", False),
    "skip_grad_norm": ("optimizer.skip_grad_norm", None),
    "evaluation_every": ("evaluation.every", 0),
    "patience": ("evaluation.patience", 0),
    "betas": ("optimizer.beta2", 0.95),
}
"""Of the reference loop, where each is and what it is where a recipe says nothing."""


@pytest.fixture
def recipe(write):
    return write('kind = "graph"\n[corpus]\nsample = "synthetic-reasoning"\n')


def problems(path, *overrides):
    with pytest.raises(RecipeError) as caught:
        load_recipe(path, "graph", overrides)
    return caught.value.problems


@pytest.mark.parametrize("knob", KNOBS)
def test_every_knob_has_its_place_and_default(recipe, knob):
    key, default = KNOBS[knob]
    value = load_recipe(recipe, "graph")
    for name in key.split("."):
        value = getattr(value, name)
    assert value == default


def test_the_rate_ends_at_a_tenth_of_its_peak_and_the_warm_up_may_be_a_share(recipe):
    optimizer = load_recipe(recipe, "graph", ["run.max_steps=200", "optimizer.warmup_ratio=0.1"]).optimizer
    assert optimizer.min_lr == pytest.approx(optimizer.lr / 10)
    assert (optimizer.warmup_steps, optimizer.schedule_steps) == (20, 200)


@pytest.mark.parametrize("weight", GRAPH_WEIGHTS)
def test_a_negative_weight_is_refused_by_name(recipe, weight):
    (problem,) = problems(recipe, f"objective.{weight}=-0.1")
    assert problem.startswith(f"--set objective.{weight}=-0.1: must be greater than or equal to 0")


@pytest.mark.parametrize(
    ("setting", "rule"),
    [
        ("model.d_model=0", "greater than or equal to 2"),
        ("model.dropout=1.0", "less than 1"),
        ("model.link_scale=0.0", "greater than 0"),
        ("model.link_head=dot", "'cosine' or 'mlp'"),
        ("model.message=sum", "'distmult' or 'gate'"),
        ("model={n_heads=3, message='gate'}", "n_heads 3 does not divide d_model 64"),
        ("objective.pair_margin_size=0.0", "greater than 0"),
        ("objective.max_count=0", "greater than or equal to 1"),
        ("objective.relation_samples=-1", "greater than or equal to 0"),
        ("objective.verification=0.0", "pair_margin 0.2 needs verification above 0"),
        ("optimizer.query_encoder_lr_scale=0.0", "greater than 0"),
        ("optimizer.freeze_query_encoder=1", "boolean"),
        ("batch.micro_batch_size=7", "micro_batch_size 7 does not divide batch_size 64"),
        ("evaluation.patience=2", "needs evaluation.every"),
        ("evaluation.metric=bits_per_byte", "'selection_score'"),
        ("memory.recompute=blocks", "not offered for graphs"),
        ("distributed.use_fsdp=true", "data parallelism replicates the full state on each rank"),
        ("corpus.sample_longest_hops=9", "less than or equal to 8"),
        ("corpus.sample=python-topics", "samples: synthetic-reasoning"),
        ("backward_chunk_size=4", "it is called batch.micro_batch_size"),
        ("batch.gradient_accumulation=4", "it follows from batch.batch_size and batch.micro_batch_size"),
        ("batched_forward=false", "forward passes are always batched"),
        ("objective.pat=0.1", "it is called objective.path_alignment"),
        ("lambda_ud_arc=0.1", "unknown key$"),
        ("model.seq_len=4", "unknown key"),
    ],
)
def test_what_cannot_be_is_refused_by_name(recipe, setting, rule):
    (problem,) = problems(recipe, setting)
    assert problem.startswith(f"--set {setting}: ") and re.search(rule, problem), problem


def test_learning_nothing_is_refused(recipe):
    nothing = [f"objective.{weight}=0.0" for weight in GRAPH_WEIGHTS]
    assert problems(recipe, *nothing)[0].endswith("every objective has the weight 0")


def test_a_recipe_for_data_of_ones_own_need_not_say_where_they_lie(write):
    assert load_recipe(write('kind = "graph"\n'), "graph").corpus.path is None


def test_a_path_takes_the_place_of_a_sample(recipe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    corpus = load_recipe(recipe, "graph", ["corpus.path=kg"]).corpus
    assert (corpus.path, corpus.sample) == (tmp_path / "kg", None)


def test_the_kind_is_told_by_the_recipe_and_the_wrong_command_names_the_right_one(recipe, write):
    assert load_any_recipe(recipe).kind == load_training_recipe(recipe).kind == "graph"
    with pytest.raises(RecipeError) as caught:
        load_recipe(recipe, "lm")
    assert caught.value.hint == f"use `strata train-graph --recipe {recipe}`"
    with pytest.raises(RecipeError, match="this takes recipes of kind 'graph'"):
        load_training_recipe(write('kind = "lm"\n', "lm.toml"), kind="graph")


def test_the_resolved_recipe_loads_to_an_equal_one(recipe, write):
    loaded = load_recipe(recipe, "graph", ["optimizer.warmup_ratio=0.05", "objective.node=0"])
    assert load_training_recipe(write(dump_recipe(loaded), "resolved.toml")) == loaded
