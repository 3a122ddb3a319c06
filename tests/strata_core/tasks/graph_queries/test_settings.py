"""Settings of a reasoner's recipe, each by what it changes in the model or in the corpus."""

import numpy as np
import pytest
import torch

from strata_core.corpus.generators.reasoning import SPLITS, ReasoningSettings
from strata_core.corpus.graphs.corpus import open_graph_corpus
from strata_core.corpus.graphs.preparation import prepare_reasoning_corpus
from strata_core.models.graphs.reasoning_batch import ReasoningBatch
from strata_core.recipes import load_recipe
from strata_core.tasks.data import open_data
from strata_core.tasks.graph_queries.task import GraphQueryTask

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reasoning") / "corpus"
    prepare_reasoning_corpus(folder, ReasoningSettings(n_examples=dict.fromkeys(SPLITS[:2], 24)))
    return open_graph_corpus(folder)


@pytest.fixture
def made(corpus, tmp_path):
    """The model of a recipe with some settings, and its first batch."""

    def build(*settings):
        path = tmp_path / "recipe.toml"
        path.write_text(
            f'kind = "graph"\n[corpus]\npath = "{corpus.path}"\n'
            "[model]\nd_model = 16\n[batch]\nbatch_size = 6\n[run]\nmax_steps = 2\n[optimizer]\nwarmup_steps = 1\n"
        )
        task = GraphQueryTask(load_recipe(path, "graph", list(settings)), corpus)
        return task.build_model(), ReasoningBatch(**task.fetch(task.plan(0).micro_batches[0]))

    return build


@torch.no_grad()
def test_the_message_rank_is_the_width_in_which_steps_and_relations_meet(made):
    model, batch = made("model.message_rank=5")
    assert model.walk(batch).mapped_TSK.shape[-1] == 5
    # out((1 + query_map q) * r) is linear in each of the two, so the weights of all pairs have the rank of the width.
    queries, relations = torch.randn(40, 1, 16), model.passing.weights.relations.weight
    weights = model.passing.weights(model.passing.weights.map_query(queries), relations)
    assert torch.linalg.matrix_rank(weights[..., 0].double(), rtol=1e-5) == 5


@torch.no_grad()
def test_each_head_of_gates_lets_its_part_of_a_state_through_by_one_number(made):
    model, batch = made("model.message=gate", "model.n_heads=8")
    weights = model.passing.weights
    mapped = model.walk(batch).mapped_TSK[0, :1]
    gates = weights(mapped, weights.relations.weight[:1])
    assert gates.shape == (1, 8)
    through = weights.apply_to(torch.ones(1, 16), gates).reshape(8, 2)
    assert torch.equal(through[:, 0], through[:, 1])
    assert len(set(through[:, 0].tolist())) == 8
    assert through.min() > 0 and through.max() < 1


@torch.no_grad()
def test_dropout_leaves_out_its_share_of_messages_in_training_alone(made):
    model, batch = made("model.dropout=0.25")
    kept = model.passing.dropout(torch.ones(100_000))
    assert (kept == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert kept.max().item() == pytest.approx(1 / 0.75)
    assert not torch.equal(model.answers(model.walk(batch)), model.answers(model.walk(batch)))
    model.eval()
    assert torch.equal(model.answers(model.walk(batch)), model.answers(model.walk(batch)))
    without, _ = made("model.dropout=0")
    assert torch.equal(without.answers(without.walk(batch)), without.answers(without.walk(batch)))


@torch.no_grad()
def test_the_mlp_link_head_reads_product_and_absolute_difference_of_two_states(made):
    model, batch = made("model.link_head=mlp", "model.dropout=0")
    states = model.node_states(batch)
    first, second = (states[batch.links_L2[:, column]] for column in (0, 1))
    features = torch.cat([first * second, (first - second).abs()], dim=-1)
    expected = model.link_head.perceptron(features)[:, 0]
    torch.testing.assert_close(model.links(states, batch), expected)
    cosine, _ = made("model.link_head=cosine", "model.link_scale=0.5", "model.dropout=0")
    assert cosine.links(states, batch).abs().max() <= 0.5 + 1e-6


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)])
def test_the_share_of_doubtful_examples_of_the_sample_is_the_recipes(tmp_path, monkeypatch, share, expected):
    monkeypatch.setenv("STRATA_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "recipe.toml"
    path.write_text(
        'kind = "graph"\n[corpus]\nsample = "synthetic-reasoning"\nsample_examples = 150\nsample_eval_examples = 3\n'
        f"sample_doubtful_share = {share}\n[batch]\nbatch_size = 6\n[run]\nmax_steps = 2\n"
        "[optimizer]\nwarmup_steps = 1\n"
    )
    examples = open_data(load_recipe(path, "graph", [])).split("train")
    # The three examples of a group share a graph, and it is the graph that is doubtful.
    doubtful = np.array([_is_doubtful(examples.example(number)) for number in range(0, 150, 3)])
    # 50 groups: the deviation of the share is 0.07 at most.
    assert doubtful.mean() == pytest.approx(expected, abs=0.25)
    assert expected not in (0.0, 1.0) or doubtful.mean() == expected


def _is_doubtful(example):
    return 0 < example.supported_probability < 1
