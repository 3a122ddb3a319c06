"""The task of a knowledge graph on small corpora of triples."""

from __future__ import annotations

import dataclasses
import shutil
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch

from strata_core.corpus.graphs.corpus import open_graph_corpus
from strata_core.corpus.graphs.preparation import prepare_triples_corpus
from strata_core.errors import DataError, RecipeError, UsageError
from strata_core.inference.evaluation import evaluate_trained
from strata_core.launch.starting import resume_run, train
from strata_core.memory_fit.trace import trace_step
from strata_core.models.graphs.knowledge_graph_reasoner import WholeGraph
from strata_core.objectives.link_prediction import filtered_cross_entropy
from strata_core.recipes.loading import load_recipe
from strata_core.tasks.link_prediction.task import LinkPredictionTask
from strata_core.training.distributed import ALONE, Ranks
from strata_core.training.precision import choose_precision
from strata_core.training.step import TrainingStep
from strata_core.training.stop import StopRequests
from strata_core.training.task import EvaluationContext
from tests.drills.forking import differences
from tests.strata_core.training.test_engine import stop_after

CPU = torch.device("cpu")
RING = 17
"""Entities of a ring: `next` leads from each to the one after it, `skip` to the one after that."""


def ring_triples() -> dict[str, list[str]]:
    """All of `next`, most of `skip`; what is held out follows from the rest."""
    skip = [f"e{i}\tskip\te{(i + 2) % RING}" for i in range(RING)]
    near = [f"e{i}\tnext\te{(i + 1) % RING}" for i in range(RING)]
    return {"train": near + skip[:12], "valid": skip[12:14], "test": skip[14:]}


def write_corpus(folder: Path, triples: dict[str, list[str]]) -> Path:
    source = folder / "source"
    source.mkdir(parents=True)
    for split, lines in triples.items():
        (source / f"{split}.txt").write_text("".join(f"{line}\n" for line in lines))
    prepare_triples_corpus(source, folder / "corpus")
    return folder / "corpus"


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    return write_corpus(tmp_path, ring_triples())


def make_task(corpus: Path, *settings: str, dense: bool | None = None) -> LinkPredictionTask:
    """A task of few entities; `dense` chooses its layout."""
    overrides = (
        f"corpus.path={corpus}",
        "model.d_model=8",
        "model.message_rank=6",
        "model.dropout=0.0",
        "batch.batch_size=8",
        "batch.micro_batch_size=4",
        "run.seed=5",
        "optimizer.lr=0.01",
        *settings,
    )
    path = corpus.parent / "recipe.toml"
    path.write_text('kind = "graph"\n')
    task = LinkPredictionTask(load_recipe(path, "graph", overrides), open_graph_corpus(corpus))
    if dense is not None:
        task.is_dense = dense
    task.check()
    return task


def make_context(ranks: Ranks = ALONE) -> EvaluationContext:
    return EvaluationContext(CPU, ranks, nullcontext, lambda: False, lambda done, total: None)


def train_ring(task: LinkPredictionTask, steps: int) -> torch.nn.Module:
    model = task.build_model()
    recipe = task._recipe
    step = TrainingStep(task, model, recipe, CPU, ALONE, choose_precision("fp32", CPU, force=False))
    for number in range(steps):
        plan = task.plan(number)
        sums = step.accumulate(plan, [task.fetch(micro_batch) for micro_batch in plan.micro_batches], number)
        step.update((sums.sum(0) / plan.counts["answer"]).float(), recipe.optimizer.lr, number)
    return model.eval()


@pytest.mark.parametrize("dense", [True, False])
def test_a_rule_is_learned_and_applied_to_triples_never_seen(ring, dense):
    task = make_task(ring, dense=dense)
    model = train_ring(task, 50)
    with torch.no_grad():
        report = task.report(model, "test", make_context())
        assert task.evaluate(model, make_context())["mrr"] == 1.0
    assert report["queries"] == 2 * 3
    assert report["mrr"] == report["hits_at_1"] == 1.0
    assert [(row["relation"], row["queries"]) for row in report["by_relation"]] == [("skip", 6)]
    assert [(row["asked"], row["queries"]) for row in report["by_direction"]] == [("tail", 3), ("head", 3)]


@pytest.mark.parametrize("dense", [True, False])
def test_a_micro_batch_has_none_of_the_edges_its_group_asks_about(ring, dense):
    task = make_task(ring, "batch.relation_group_size=8", dense=dense)
    n_edges = 0
    for step in range(6):
        for micro_batch in task.plan(step).micro_batches:
            batch = task.fetch(micro_batch)
            assert set(micro_batch.asked.tolist()) <= set(micro_batch.taken_out.tolist())
            asked = task.graph.edges[micro_batch.taken_out].tolist()
            if dense:
                of_relations = np.repeat(np.arange(4), np.diff(batch["relation_offsets"]))
                cells = batch["cells_by_relation"].tolist()
                there = {
                    (cell % RING, kind, cell // RING) for cell, kind in zip(cells, of_relations.tolist(), strict=True)
                }
            else:
                frontier = task.graph.frontier(
                    task.graph.edges[micro_batch.asked, 0],
                    task.config()["model"]["n_layers"],
                    task.graph.without(micro_batch.taken_out),
                )
                entities = np.concatenate(frontier.entities)
                links = torch.cat([batch[f"links_{layer}"] for layer in range(3)]).tolist()
                ends = torch.cat([batch[f"link_ends_{layer}"] for layer in range(3)]).tolist()
                leading = torch.cat([batch[f"destinations_{layer}"] for layer in range(3)]).tolist()
                n_starts = len(frontier.entities[0])
                there = {
                    (int(entities[source]), relation, int(entities[destination]))
                    for place, (source, relation) in enumerate(links, n_starts)
                    for destination in leading[ends[place - 1] : ends[place]]
                }
            for head, relation, tail in asked:
                inverse = relation + 2 if relation < 2 else relation - 2
                assert (head, relation, tail) not in there
                assert (tail, inverse, head) not in there
            n_edges += len(there)
    assert n_edges > 100


@pytest.mark.parametrize("dense", [True, False])
def test_ranks_are_those_of_a_slow_ranking_over_all_triples(ring, dense):
    task = make_task(ring, dense=dense)
    model = task.build_model().eval()
    triples = [line.split("\t") for lines in ring_triples().values() for line in lines]
    known = {tuple(triple) for triple in triples}
    entities, relations = task._corpus.names.entities, task._corpus.names.relations
    graph = WholeGraph(**{name: torch.from_numpy(part) for name, part in task.graph.by_cell_and_relation().items()})
    reciprocal = []
    with torch.no_grad():
        for head, relation, tail in [line.split("\t") for line in ring_triples()["test"]]:
            for forward in (True, False):
                start, answer = (head, tail) if forward else (tail, head)
                number = relations.index(relation) + (0 if forward else 2)
                starts = torch.tensor([entities.index(start)])
                scores = model.score_all(torch.tensor([number]), starts, graph, len(entities))[:, 0].tolist()
                mine = scores[entities.index(answer)]
                rank = 1.0
                for entity, score in zip(entities, scores, strict=True):
                    triple = (start, relation, entity) if forward else (entity, relation, start)
                    if triple not in known:
                        rank += 1.0 if score > mine + 1e-5 else 0.5 if abs(score - mine) <= 1e-5 else 0.0
                reciprocal.append(1 / rank)
        report = task.report(model, "test", make_context())

    assert report["mrr"] == pytest.approx(sum(reciprocal) / len(reciprocal), abs=1e-9)


@pytest.mark.parametrize("dense", [True, False])
def test_gradients_do_not_depend_on_how_a_group_is_cut(ring, dense):
    gradients = []
    for size in (8, 4, 2, 1):
        settings = (f"batch.micro_batch_size={size}", "batch.relation_group_size=8", "batch.batch_size=16")
        task = make_task(ring, *settings, dense=dense)
        model = task.build_model()
        step = TrainingStep(task, model, task._recipe, CPU, ALONE, choose_precision("fp32", CPU, force=False))
        plan = task.plan(3)
        assert len(plan.micro_batches) == 16 // size
        step.accumulate(plan, [task.fetch(micro_batch) for micro_batch in plan.micro_batches], 3)
        gradients.append({name: parameter.grad for name, parameter in model.named_parameters()})

    for other in gradients[1:]:
        for name, gradient in gradients[0].items():
            torch.testing.assert_close(other[name], gradient, rtol=1e-4, atol=1e-6, msg=name)


def test_both_layouts_have_the_same_losses(ring):
    losses = []
    for dense in (True, False):
        task = make_task(ring, dense=dense)
        model = task.build_model()
        batches = [task.fetch(micro_batch) for step in range(3) for micro_batch in task.plan(step).micro_batches]
        losses.append(torch.cat([filtered_cross_entropy(task._scores(model, batch)) for batch in batches]))
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-5, atol=1e-5)


def test_counts_are_the_queries_of_the_step_and_small_groups_leave_some_out(ring):
    task = make_task(ring, "batch.relation_group_size=8", "batch.batch_size=16")
    for step in range(5):
        plan = task.plan(step)
        batches = [task.fetch(micro_batch) for micro_batch in plan.micro_batches]
        assert len(batches) == 4
        assert plan.counts["answer"] == plan.samples == sum(len(batch["targets"]) for batch in batches)


@dataclasses.dataclass(frozen=True)
class AddingRanks(Ranks):
    """A rank whose sum adds what the ranks before it had."""

    others: list = dataclasses.field(default_factory=list)

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        self.others.append(tensor.clone())
        return torch.stack(self.others).sum(0)


def test_an_evaluation_is_the_same_on_three_ranks(ring):
    task = make_task(ring, "batch.micro_batch_size=1", "batch.batch_size=1")
    model = task.build_model().eval()
    parts: list = []
    with torch.no_grad():
        alone = task.evaluate(model, make_context())
        for rank in (2, 1, 0):
            with np.errstate(divide="ignore"):
                together = task.evaluate(model, make_context(AddingRanks(rank=rank, world_size=3, others=parts)))
    assert together == alone


def test_a_limited_evaluation_asks_about_the_same_triples_every_time(ring):
    task = make_task(ring, "evaluation.batches=1", "batch.micro_batch_size=1", "batch.batch_size=1")
    model = task.build_model().eval()
    seen: list[int] = []
    context = dataclasses.replace(make_context(), progress=lambda done, total: seen.append(total))
    with torch.no_grad():
        assert task.evaluate(model, context) == task.evaluate(model, context)
    assert set(seen) == {2}


@pytest.mark.parametrize("dense", [True, False])
def test_entities_relations_and_triples_that_training_knows_or_not_are_counted(tmp_path, dense):
    triples = ring_triples()
    triples["train"] += triples["train"][:3]
    triples["test"] = ["e0\tnext\te1", "e0\tnew\te5", "stranger\tskip\te2", "stranger\tskip\tother"]
    task = make_task(write_corpus(tmp_path, triples), dense=dense)
    with torch.no_grad():
        report = task.report(task.build_model().eval(), "test", make_context())
    assert len(task.graph.edges) == 2 * 29
    assert report["queries"] == 8
    assert report["unseen_entities"]["queries"] == 4
    assert report["unseen_relations"]["queries"] == 2
    assert report["known_from_training"]["queries"] == 2
    assert 0 < report["unseen_entities"]["mrr"] < 1


def test_entities_that_score_alike_share_the_middle_rank(tmp_path):
    triples = ring_triples() | {"test": ["stranger\tskip\tother"]}
    task = make_task(write_corpus(tmp_path, triples), dense=False)
    with torch.no_grad():
        ranks, _ = task._rank(task.build_model().eval(), task._queries["test"], make_context())
    for rank in ranks.tolist():
        assert rank in ((RING + 2) / 2, (RING + 2) / 2 + 0.5, (RING + 2) / 2 + 1)


def test_scores_that_are_not_numbers_have_no_rank(ring):
    task = make_task(ring)
    model = task.build_model().eval()
    with torch.no_grad():
        model.start.weight.fill_(torch.nan)
        assert np.isnan(task.evaluate(model, make_context())["mrr"])


@pytest.mark.parametrize("dense", [True, False])
def test_memory_is_predicted_on_fake_tensors_from_the_costliest_groups(ring, dense):
    task = make_task(ring, dense=dense)
    worst = max(sum(t.nbytes for t in task.fetch(part).values()) for part in task.worst_step().micro_batches)
    for step in range(10):
        for part in task.plan(step).micro_batches:
            assert sum(tensor.nbytes for tensor in task.fetch(part).values()) <= worst
    precision = choose_precision("fp32", CPU, force=False)
    memory = trace_step(task, task._recipe, device=CPU, precision=precision, world_size=1, granule_bytes=1)
    assert not memory.on_real_tensors


def test_settings_that_do_not_fit_are_refused(ring):
    with pytest.raises(RecipeError, match="relation_group_size 6 is not a multiple"):
        make_task(ring, "batch.relation_group_size=6")
    with pytest.raises(RecipeError, match=r"objective\.answer"):
        make_task(ring, "objective.answer=0")
    task = make_task(ring)
    with pytest.raises(DataError, match="'dev'"):
        task.report(task.build_model(), "dev", make_context())


@pytest.mark.parametrize(
    "setting",
    [
        "optimizer.freeze_query_encoder=true",
        "optimizer.query_encoder_lr_scale=0.5",
        "objective.on_policy_selection=true",
    ],
)
def test_settings_of_the_reasoner_are_refused_by_name(ring, setting):
    with pytest.raises(RecipeError) as caught:
        make_task(ring, setting)
    (problem,) = caught.value.problems
    assert problem.startswith(f"{setting.partition('=')[0]} is ")


def scores_on_a_chain(corpus: Path, *settings: str) -> tuple[list[float], float]:
    """Of e0 to e6 for what `next` leads to from e0 in a chain of them, and of an entity that nothing reaches."""
    task = make_task(corpus, *settings)
    model = task.build_model().eval()
    graph = WholeGraph(**{name: torch.from_numpy(part) for name, part in task.graph.by_cell_and_relation().items()})
    names = task._corpus.names.entities
    relation, start = torch.tensor([0]), torch.tensor([names.index("e0")])
    with torch.no_grad():
        scores = model.score_all(relation, start, graph, len(names))[:, 0].tolist()
        return [scores[names.index(f"e{i}")] for i in range(7)], model.score.of_zero(model.queries(relation)[0]).item()


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    lines = [f"e{i}\tnext\te{i + 1}" for i in range(6)]
    return write_corpus(tmp_path, {"train": lines, "valid": lines[:1], "test": lines[:1]})


@pytest.mark.parametrize("n_layers", [1, 2, 4])
def test_messages_go_as_far_as_there_are_layers(chain, n_layers):
    scores, of_unreached = scores_on_a_chain(chain, f"model.n_layers={n_layers}")
    assert [score == pytest.approx(of_unreached, abs=1e-7) for score in scores] == [i > n_layers for i in range(7)]


def test_messages_far_smaller_than_the_root_of_message_norm_eps_do_not_count(chain):
    counting, _ = scores_on_a_chain(chain)
    scores, of_unreached = scores_on_a_chain(chain, "model.message_norm_eps=1e12")
    assert scores[1:] == pytest.approx([of_unreached] * 6, abs=1e-4)
    assert max(abs(score - of_unreached) for score in counting[1:]) > 1e-2


@pytest.mark.parametrize(("probability", "varies"), [(0.0, False), (0.5, True)])
def test_weights_of_messages_are_dropped_where_the_recipe_says_so(ring, probability, varies):
    task = make_task(ring, f"model.message_dropout={probability}")
    model, batch = task.build_model().train(), task.fetch(task.plan(0).micro_batches[0])
    losses = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        losses.append(task.loss_sums(model, batch)["answer"].item())
    assert (losses[0] != losses[1]) == varies


def test_a_checkpoint_outside_its_run_is_judged_as_inside_and_on_its_own_graph_alone(ring, tmp_path):
    shape = ("model.message_dropout=0.25", "model.message_norm_eps=0.5")
    task = make_task(ring, *shape, "run.max_steps=2", "optimizer.warmup_steps=1", "batch.num_workers=0")
    train(task._recipe, tmp_path / "run", device="cpu")
    shutil.copytree((tmp_path / "run" / "checkpoints" / "latest").resolve(), tmp_path / "lone")
    inside = evaluate_trained(tmp_path / "run", choose="latest", split="test", device="cpu").metrics
    assert evaluate_trained(tmp_path / "lone", corpus=ring, split="test", device="cpu").metrics == inside

    for old, new, fault in (("skip", "leap", "relations"), ("e3", "f3", "entities.sha256")):
        renamed = {split: [line.replace(old, new) for line in lines] for split, lines in ring_triples().items()}
        other = write_corpus(tmp_path / new, renamed)
        with pytest.raises(UsageError) as caught:
            evaluate_trained(tmp_path / "run", corpus=other, split="test", device="cpu")
        assert [problem.partition(":")[0] for problem in caught.value.problems] == [fault]


def test_an_evaluation_without_validation_triples_is_refused(tmp_path):
    corpus = write_corpus(tmp_path, ring_triples() | {"valid": []})
    with pytest.raises(RecipeError, match="no validation triples"):
        make_task(corpus, "evaluation.every=5")
    make_task(corpus)


def test_a_stopped_run_goes_on_as_if_it_had_not_and_is_evaluated(ring, tmp_path, monkeypatch):
    settings = ("model.dropout=0.2", "run.max_steps=6", "optimizer.warmup_steps=1", "evaluation.every=3")
    recipe = make_task(ring, *settings, "batch.num_workers=0", "checkpoint.every=3")._recipe
    train(recipe, tmp_path / "undisturbed", device="cpu")
    stop = StopRequests()
    with monkeypatch.context() as patch:
        stop_after(4, LinkPredictionTask, patch, stop)
        train(recipe, tmp_path / "run", device="cpu", stop=stop)
    resume_run(tmp_path / "run", device="cpu")

    assert differences(tmp_path / "run", tmp_path / "undisturbed", 6) == []
    report = evaluate_trained(tmp_path / "run", split="test", device="cpu")
    assert report.kind == "knowledge-graph"
    assert report.metrics["queries"] == 6
