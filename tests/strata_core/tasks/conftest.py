"""Runs of a few steps, one of each kind that predicts."""

from __future__ import annotations

import pytest
import torch

from strata_core.corpus.generators.reasoning import ReasoningSettings
from strata_core.corpus.graphs.preparation import prepare_reasoning_corpus
from strata_core.launch.starting import train
from strata_core.recipes import load_recipe
from tests.strata_core.tasks.sentence_structure.treebank_corpus import ALL_WEIGHTS, make_corpus, small_recipe

torch.set_num_threads(1)

GRAPH = """kind = "graph"
[model]
d_model = 16
message_rank = 8
[batch]
batch_size = 12
num_workers = 0
[run]
max_steps = 4
[optimizer]
warmup_steps = 2
"""


@pytest.fixture(scope="session")
def structured_run(tmp_path_factory):
    """A run over a treebank in ../corpus."""
    folder = tmp_path_factory.mktemp("structured")
    train(small_recipe(make_corpus(folder), *ALL_WEIGHTS), folder / "run", device="cpu")
    return folder / "run"


@pytest.fixture(scope="session")
def graph_run(tmp_path_factory):
    """A run over generated graphs in ../corpus."""
    folder = tmp_path_factory.mktemp("graphs")
    prepare_reasoning_corpus(folder / "corpus", ReasoningSettings(n_examples={"train": 60, "val": 30}))
    (folder / "recipe.toml").write_text(f"{GRAPH}[corpus]\npath = {str(folder / 'corpus')!r}\n")
    train(load_recipe(folder / "recipe.toml", "graph"), folder / "run", device="cpu")
    return folder / "run"
