"""The task of reasoning over small graphs: plans, twins, cuts of a batch, what is frozen, what an evaluation says."""

import dataclasses

import numpy as np
import pytest
import torch

from strata_core.corpus.generators.reasoning import SPLITS, ReasoningSettings
from strata_core.corpus.graphs.corpus import open_graph_corpus
from strata_core.corpus.graphs.preparation import prepare_reasoning_corpus
from strata_core.errors import RecipeError
from strata_core.evaluation.reasoning import macro_f1
from strata_core.models.graphs.reasoning_batch import ReasoningBatch
from strata_core.recipes import load_recipe
from strata_core.recipes.graph import GRAPH_WEIGHTS
from strata_core.tasks.graph_queries.task import GraphQueryTask
from strata_core.training.distributed import ALONE
from strata_core.training.precision import choose_precision
from strata_core.training.step import TrainingStep
from strata_core.training.task import EvaluationContext

torch.set_num_threads(1)
CPU = torch.device("cpu")
ALL_ON = [f"objective.{name}=0.5" for name in GRAPH_WEIGHTS]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reasoning") / "corpus"
    prepare_reasoning_corpus(folder, ReasoningSettings(n_examples=dict.fromkeys(SPLITS[:3], 90)))
    return open_graph_corpus(folder)


@pytest.fixture
def make(corpus, tmp_path):
    def build(*settings):
        path = tmp_path / "recipe.toml"
        path.write_text(
            f'kind = "graph"\n[corpus]\npath = "{corpus.path}"\n'
            "[model]\nd_model = 16\nmessage_rank = 8\ndropout = 0.0\n"
            "[batch]\nbatch_size = 12\n[run]\nmax_steps = 20\n"
        )
        recipe = load_recipe(path, "graph", list(settings))
        return GraphQueryTask(recipe, corpus), recipe

    return build


def step_of(task, recipe):
    return TrainingStep(task, task.build_model(), recipe, CPU, ALONE, choose_precision("fp32", CPU, force=False))


def gradients(make, *settings):
    task, recipe = make(*settings)
    step = step_of(task, recipe)
    plan = task.plan(3)
    step.accumulate(plan, [task.fetch(part) for part in plan.micro_batches], step=3)
    return {name: parameter.grad.clone() for name, parameter in step.parameters.items()}


@pytest.mark.parametrize("policy", ["true", "false"])
def test_cutting_the_global_batch_otherwise_leaves_the_gradient(make, policy):
    settings = (*ALL_ON, f"objective.on_policy_selection={policy}", "objective.relation_samples=9")
    whole = gradients(make, *settings, "batch.micro_batch_size=12")
    for size in (3, 6):
        cut = gradients(make, *settings, f"batch.micro_batch_size={size}")
        for name in whole:
            torch.testing.assert_close(cut[name], whole[name], rtol=1e-4, atol=1e-6, msg=name)


def test_the_counts_of_a_plan_are_those_of_what_is_fetched(make):
    task, _ = make(*ALL_ON, "objective.relation_samples=9", "batch.micro_batch_size=6")
    plan = task.plan(1)
    assert list(plan.counts) == list(GRAPH_WEIGHTS)
    batches = [ReasoningBatch(**task.fetch(part)) for part in plan.micro_batches]
    found = {
        "answer": sum(len(b.answer_examples_A.unique()) for b in batches),
        "node": sum(len(b.node_types_M) for b in batches),
        "link": sum(len(b.links_L2) for b in batches),
        "next_hop": sum(len(b.hop_steps_I) for b in batches),
        "relation": sum(len(b.relation_edges_J) for b in batches),
        "path_selection": 12,
        "path_alignment": sum(int(b.path_supports_P.sum()) for b in batches),
        "verification": 12,
        "status": 12,
        "count": sum(int((b.numbers_B >= 0).sum()) for b in batches),
        "confidence": 12,
        "pair_margin": sum(len(b.pairs_Q2) for b in batches),
    }
    assert dict(plan.counts) == found


def test_twins_stay_together_and_every_example_is_seen_once_an_epoch(make, corpus):
    task, _ = make("batch.batch_size=15", "batch.micro_batch_size=3")
    twins = np.asarray(corpus.split("train").arrays["twins"])
    seen = []
    for step in range(6):
        for part in task.plan(step).micro_batches:
            seen += part.examples.tolist()
            for example in part.examples:
                assert twins[example] < 0 or twins[example] in part.examples
    assert sorted(seen) == list(range(90))
    assert seen != list(range(90))


def test_a_micro_batch_that_would_part_twins_is_refused_and_without_the_margin_it_is_not(make):
    task, _ = make("batch.batch_size=8")
    with pytest.raises(RecipeError, match="parts twins"):
        task.check()
    free, _ = make("batch.batch_size=8", "objective.pair_margin=0")
    free.check()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("batch.batch_size=300",), "has 90 examples"),
        (("objective.on_policy_selection=true", "objective.next_hop=0"), "nothing teaches the search"),
    ],
)
def test_what_cannot_be_trained_is_refused(make, settings, message):
    task, _ = make(*settings)
    with pytest.raises(RecipeError, match=message):
        task.check()


@pytest.mark.parametrize("name", GRAPH_WEIGHTS)
def test_a_weight_of_zero_leaves_its_loss_and_the_parameters_it_alone_reaches_out(make, name):
    # The pair margin compares what verification teaches, and is refused without it.
    absent = {name, "pair_margin"} if name == "verification" else {name}
    task, _ = make(*(f"objective.{other}={int(other not in absent)}" for other in GRAPH_WEIGHTS))
    assert not absent & (task.loss_weights.keys() | task.plan(0).counts.keys())
    model = task.build_model()
    sums = task.loss_sums(model, task.fetch(task.plan(0).micro_batches[0]))
    assert list(sums) == [other for other in GRAPH_WEIGHTS if other not in absent]
    sum(sums.values()).backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.requires_grad == (parameter.grad is not None), parameter_name


@pytest.mark.parametrize("name", [name for name in GRAPH_WEIGHTS if name != "pair_margin"])
def test_a_loss_alone_reaches_exactly_the_parameters_that_are_left_to_train(make, name):
    task, _ = make(*(f"objective.{other}={int(other == name)}" for other in GRAPH_WEIGHTS))
    model = task.build_model()
    trained = {parameter_name for parameter_name, parameter in model.named_parameters() if parameter.requires_grad}
    assert trained
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    task.loss_sums(model, task.fetch(task.plan(0).micro_batches[0]))[name].backward()
    assert {other for other, parameter in model.named_parameters() if parameter.grad is not None} == trained


def test_a_frozen_query_encoder_takes_no_gradient_and_its_rate_can_be_scaled(make):
    task, recipe = make("optimizer.freeze_query_encoder=true", "optimizer.query_encoder_lr_scale=0.25")
    assert task.rate_factors == {"query_encoder.": 0.25}
    step = step_of(task, recipe)
    assert not any(name.startswith("query_encoder.") for name in step.parameters)
    assert any(name.startswith("passing.") for name in step.parameters)


def test_the_same_place_in_a_run_draws_the_same_negatives_and_another_draws_others(make):
    task, _ = make(*ALL_ON)
    part = task.plan(2).micro_batches[0]
    first, again = (task.fetch(part)["links_L2"] for _ in range(2))
    assert torch.equal(first, again)
    later = task.fetch(dataclasses.replace(part, step=3))["links_L2"]
    assert not torch.equal(first, later)
    edges = set(map(tuple, task.fetch(part)["edges_F3"][:, [0, 2]].tolist()))
    exists = task.fetch(part)["link_exists_L"].tolist()
    assert all((tuple(link) in edges) == real for link, real in zip(first.tolist(), exists, strict=True))


def test_numbers_above_max_count_count_as_it(make):
    task, _ = make(*ALL_ON, "objective.max_count=2")
    model = task.build_model()
    assert model.config.largest_number == 2
    assert torch.isfinite(task.loss_sums(model, task.fetch(task.plan(0).micro_batches[0]))["count"])


def test_the_pair_margin_size_is_how_far_twins_have_to_be_apart(make):
    def loss(size):
        task, _ = make(*ALL_ON, f"objective.pair_margin_size={size}")
        batch = task.fetch(task.plan(0).micro_batches[0])
        return task.loss_sums(task.build_model(), batch)["pair_margin"].item(), len(batch["pairs_Q2"])

    (near, pairs), (far, _) = loss(50.0), loss(60.0)
    assert far - near == pytest.approx(10.0 * pairs, rel=1e-4)


def test_relation_samples_bounds_the_edges_of_each_example(make):
    task, _ = make(*ALL_ON, "objective.relation_samples=4")
    batch = task.fetch(task.plan(0).micro_batches[0])
    owners = batch["edge_examples_F"][batch["relation_edges_J"]]
    assert torch.bincount(owners).tolist() == [4] * 12
    everything, _ = make(*ALL_ON, "objective.relation_samples=0")
    assert len(everything.fetch(everything.plan(0).micro_batches[0])["relation_edges_J"]) == len(batch["edges_F3"])


def test_the_worst_step_costs_no_less_than_any_other(make):
    task, _ = make(*ALL_ON, "batch.micro_batch_size=6")
    worst = [len(task.fetch(part)["branch_edges_E3"]) for part in task.worst_step().micro_batches]
    assert len(worst) == 2 and worst[0] == worst[1]
    for step in range(8):
        assert all(len(task.fetch(part)["branch_edges_E3"]) <= worst[0] for part in task.plan(step).micro_batches)


class OneOfTwo:
    """Ranks of a run of two, one after the other: the second adds what the first has left."""

    def __init__(self, rank, board):
        self.rank, self.world_size, self._board, self._place = rank, 2, board, 0

    def sum(self, tensor):
        self._board.setdefault(self._place, []).append(tensor)
        self._place += 1
        return sum(self._board[self._place - 1])


def context_for(ranks):
    precision = choose_precision("fp32", CPU, force=False)
    return EvaluationContext(CPU, ranks, precision.autocast(CPU), lambda: False, lambda done, of: None)


def test_an_evaluation_is_the_same_for_any_number_of_ranks_and_keeps_the_temperatures(make):
    task, _ = make(*ALL_ON, "batch.micro_batch_size=12")
    model = task.build_model().eval()
    alone = task.evaluate(model, context_for(ALONE))
    assert model.status_temperature != 1 and model.confidence_temperature != 1
    assert {"selection_score", "loss", "mrr", "hits_at_1", "path_f1", "status_macro_f1", "ece"} <= alone.keys()
    board = {}
    for rank in range(2):
        together = task.evaluate(task.build_model().eval(), context_for(OneOfTwo(rank, board)))
    assert together == pytest.approx(alone, rel=1e-6)


def test_a_report_breaks_down_by_hops_status_and_mode(make):
    task, _ = make()
    report = task.report(task.build_model().eval(), "test", context_for(ALONE))
    assert report["examples"] == 90
    assert [row["status"] for row in report["by_status"]] == ["supported", "refuted", "not_enough_info"]
    for table in ("by_hops", "by_status", "by_mode"):
        assert sum(row["examples"] for row in report[table]) == 90
    assert report["calibration_before"] == report["calibration"]


def test_macro_f1_is_the_mean_over_the_classes():
    # Class 0: precision 1/2, recall 1, F1 2/3; class 1: precision 1, recall 1/2, F1 2/3; class 2 does not occur.
    assert macro_f1(np.array([0, 1, 1]), np.array([0, 0, 1]), n_classes=3) == pytest.approx(2 / 3)


def test_training_lowers_the_loss(make):
    task, recipe = make("batch.batch_size=30", "model.d_model=32", "model.message=gate", "optimizer.lr=3e-3")
    step = step_of(task, recipe)
    totals = []
    for number in range(15):
        plan = task.plan(number)
        sums = step.accumulate(plan, [task.fetch(part) for part in plan.micro_batches], step=number).sum(dim=0)
        losses = sums / torch.tensor([max(count, 1) for count in plan.counts.values()])
        step.update(losses, 3e-3, number)
        totals.append(float(losses[list(plan.counts).index("answer")]))
    assert np.mean(totals[-3:]) < 0.9 * np.mean(totals[:3])
