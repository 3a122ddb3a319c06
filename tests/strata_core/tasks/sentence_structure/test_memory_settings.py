"""What a recipe says of the two memories is what its model is built with."""

import pytest

from tests.strata_core.tasks.sentence_structure.treebank_corpus import ALL_WEIGHTS, make_corpus, small_task

BOTH = ("model.predicate_memory.enabled=true", "model.graph_object_memory.enabled=true")


@pytest.fixture(scope="session")
def treebank(tmp_path_factory):
    return make_corpus(tmp_path_factory.mktemp("memories"))


def built(corpus, *settings):
    return small_task(corpus, *ALL_WEIGHTS, *BOTH, *settings).build_model()


def test_each_gate_starts_where_the_recipe_says(treebank):
    settings = "model.predicate_memory.initial_gate=0.25", "model.graph_object_memory.initial_gate=0.5"
    model = built(treebank, *settings)
    assert (model.predicate_memory.gate.item(), model.graph_object_memory.gate.item()) == (0.25, 0.5)
    closed = built(treebank)
    assert (closed.predicate_memory.gate.item(), closed.graph_object_memory.gate.item()) == (0.0, 0.0)


def test_the_widths_of_the_predicate_memory_reach_the_model(treebank):
    model = built(treebank, "model.predicate_memory.channel_width=6", "model.predicate_memory.role_width=10")
    shapes = {name: tuple(value.shape) for name, value in model.predicate_memory.named_parameters()}
    # A channel for each of ARG0, ARG1, ARG2 and OTHER; d_model is 16.
    assert shapes["query.weight"] == shapes["key.weight"] == shapes["value.weight"] == (4 * 6, 16)
    assert shapes["output.weight"] == (16, 4 * 6)
    assert shapes["predicate_side.weight"] == shapes["argument_side.weight"] == (10, 16)


@pytest.mark.parametrize("heads", [2, 8])
def test_the_heads_that_read_the_graph_object_reach_the_model(treebank, heads):
    model = built(treebank, f"model.graph_object_memory.n_heads={heads}")
    assert model.graph_object_memory.n_heads == heads
    assert model.config.graph_object_memory.n_heads == heads
