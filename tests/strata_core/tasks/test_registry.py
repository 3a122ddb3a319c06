"""Which task serves which corpus."""

import json

import pytest

from strata_core.corpus.graphs.corpus import open_graph_corpus
from strata_core.corpus.graphs.inputs import CLUTRR, GRAPHS, TRIPLES, GraphInput
from strata_core.corpus.graphs.preparation import GraphSettings, prepare_graph_sample, prepare_graphs
from strata_core.errors import RecipeError
from strata_core.recipes import load_recipe
from strata_core.tasks.data import open_data
from strata_core.tasks.registry import make_task
from tests.strata_core.corpus.graphs.test_clutrr import CHAIN
from tests.strata_core.corpus.graphs.test_jsonl_preparation import KIN, changed, write
from tests.strata_core.corpus.graphs.test_triples import NAMED, folder_of

RELATED = changed("r", query={"mode": "relation", "branches": [{"start": 0}], "end": 2}, target="aunt", answers=[])


def recipe_of(tmp_path, *overrides):
    path = tmp_path / "r.toml"
    path.write_text('kind = "graph"\n')
    return load_recipe(path, "graph", overrides)


def source_of(tmp_path, format):
    if format == TRIPLES:
        return GraphInput(TRIPLES, folder_of(tmp_path / "in", NAMED))
    if format == CLUTRR:
        return GraphInput(CLUTRR, write(tmp_path / "in" / "train.jsonl", CHAIN).parent)
    return GraphInput(GRAPHS, write(tmp_path / "in" / "train.jsonl", RELATED if format == "related" else KIN))


@pytest.mark.parametrize(
    ("format", "kind"),
    [
        (TRIPLES, "knowledge-graph"),
        (CLUTRR, "path-composition"),
        ("related", "path-composition"),
        (GRAPHS, "graph-reasoner"),
    ],
)
def test_the_task_goes_by_what_the_corpus_asks_for(tmp_path, format, kind):
    settings = GraphSettings(val_fraction=0.0)
    made = prepare_graphs(source_of(tmp_path, format), tmp_path / "corpus", settings)
    assert make_task(recipe_of(tmp_path), open_graph_corpus(made.path)).kind == kind


def test_a_metric_that_the_corpus_does_not_give_is_refused_with_those_it_gives(tmp_path):
    made = prepare_graphs(source_of(tmp_path, CLUTRR), tmp_path / "corpus", GraphSettings(val_fraction=0.0))
    with pytest.raises(RecipeError, match=r"evaluation\.metric is 'mrr'") as refused:
        make_task(recipe_of(tmp_path, "evaluation.metric=mrr"), open_graph_corpus(made.path))
    assert "accuracy" in refused.value.hint


def test_a_sample_has_the_size_that_the_recipe_says(tmp_path, monkeypatch):
    monkeypatch.setenv("STRATA_CACHE", str(tmp_path / "cache"))
    sizes = ("corpus.sample_examples=6", "corpus.sample_eval_examples=3", "corpus.sample_longest_hops=2")
    data = open_data(recipe_of(tmp_path, "corpus.sample=synthetic-reasoning", "corpus.sample_seed=9", *sizes))
    info = json.loads((data.path / "corpus.json").read_text())
    assert (info["splits"]["train"]["examples"], info["splits"]["val"]["examples"]) == (6, 3)
    assert info["generator"]["seed"] == 9
    made = prepare_graph_sample(
        "synthetic-reasoning",
        tmp_path / "same",
        GraphSettings(sample_seed=9, sample_examples=6, sample_eval_examples=3, sample_longest_hops=2),
    )
    assert data.digest == made.digest


def test_a_recipe_without_a_corpus_is_refused(tmp_path):
    with pytest.raises(RecipeError, match="names no corpus"):
        open_data(recipe_of(tmp_path))
