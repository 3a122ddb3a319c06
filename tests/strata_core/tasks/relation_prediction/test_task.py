"""The task on CLUTRR-like corpora of a group: relations are the numbers modulo 3, composed by adding them."""

from __future__ import annotations

import dataclasses
import itertools
import json
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from strata_core.corpus.graphs.corpus import GraphCorpus, open_graph_corpus
from strata_core.corpus.graphs.preparation import prepare_clutrr_corpus
from strata_core.errors import DataError, RecipeError, UsageError
from strata_core.inference.evaluation import evaluate_trained
from strata_core.launch.starting import train
from strata_core.models.graphs.path_composition import CELLS
from strata_core.recipes import load_recipe
from strata_core.tasks.relation_prediction.task import RelationPredictionTask
from strata_core.training.distributed import ALONE, Ranks
from strata_core.training.task import EvaluationContext

NAMES = ("zero", "one", "two")


def chain(identifier: str, numbers: tuple[int, ...], target: str | None = None) -> dict:
    edges = [[place, NAMES[number], place + 1] for place, number in enumerate(numbers)]
    target = target or NAMES[sum(numbers) % 3]
    return {"id": identifier, "hops": len(numbers), "edges": edges, "query": [0, len(numbers)], "target": target}


def write_corpus(folder: Path, files: dict[str, list[dict]]) -> GraphCorpus:
    raw = folder / "raw"
    raw.mkdir(parents=True)
    for name, records in files.items():
        (raw / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    prepare_clutrr_corpus(raw, folder / "corpus", val_fraction=0.2)
    return open_graph_corpus(folder / "corpus")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> GraphCorpus:
    train = [
        chain(f"{length}-{copy}-{numbers}", numbers)
        for length in (2, 3)
        for copy in range(3)
        for numbers in itertools.product(range(3), repeat=length)
    ]
    # Its simple paths are two: from 0 straight to 2, and over 1.
    returning = {
        "id": "returning",
        "hops": 4,
        "edges": [[0, "one", 1], [1, "one", 2], [2, "one", 0], [0, "two", 2]],
        "query": [0, 2],
        "target": "two",
    }
    tests = {
        f"test_{length}": [chain(f"t{length}-{number}", ((1, 2, 0, 2, 1, 1, 2) * 2)[number : number + length])]
        for number, length in enumerate((4, 5, 6, 7))
    }
    train += [returning, chain("longer", (1,) * 9)]
    return write_corpus(tmp_path_factory.mktemp("group"), {"train": train, **tests})


def task_of(corpus: GraphCorpus, *overrides: str) -> RelationPredictionTask:
    settings = ["model.d_model=16", "batch.batch_size=16", "run.max_steps=200", "model.dropout=0.0"]
    path = f"corpus.path={corpus.path}"
    return RelationPredictionTask(load_recipe("graph/clutrr", "graph", [path, *settings, *overrides]), corpus)


def context(ranks: Ranks = ALONE) -> EvaluationContext:
    return EvaluationContext(torch.device("cpu"), ranks, nullcontext, lambda: False, lambda done, total: None)


def gradients(task: RelationPredictionTask, step: int) -> tuple[dict[str, float], torch.Tensor]:
    model = task.build_model().double()
    sums = dict.fromkeys(task.loss_weights, 0.0)
    for micro_batch in task.plan(step).micro_batches:
        batch = task.fetch(micro_batch)
        batch["path_weights"] = batch["path_weights"].double()
        losses = task.loss_sums(model, batch)
        sum(losses.values()).backward()
        for name, loss in losses.items():
            sums[name] += loss.item()
    return sums, torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


@pytest.mark.parametrize("micro_batch_size", [1, 4])
def test_the_gradient_of_a_batch_does_not_depend_on_how_it_is_cut(corpus, micro_batch_size):
    settings = "objective.composition_augmentation=2"
    whole_sums, whole = gradients(task_of(corpus, settings), step=3)
    cut_sums, cut = gradients(task_of(corpus, settings, f"batch.micro_batch_size={micro_batch_size}"), step=3)
    assert cut_sums == pytest.approx(whole_sums, rel=1e-5)
    torch.testing.assert_close(cut, whole, rtol=1e-5, atol=1e-5)


def test_what_a_step_reads_is_a_function_of_seed_and_step(corpus):
    def read(step: int, *overrides: str):
        task = task_of(corpus, "objective.composition_augmentation=2", *overrides)
        return task.fetch(task.plan(step).micro_batches[0])

    again = read(4)
    assert all(torch.equal(tensor, again[name]) for name, tensor in read(4).items())
    for other in (read(5), read(4, "run.seed=9")):
        assert not torch.equal(other["relations"], again["relations"])


def test_simple_paths_vote_with_equal_weights(corpus):
    task = task_of(corpus, "objective.random_chains=0")
    micro_batch = dataclasses.replace(task.plan(0).micro_batches[0], examples=example_numbers(corpus, "returning"))
    batch = task.fetch(micro_batch)
    two, one = corpus.names.relations.index("two"), corpus.names.relations.index("one")
    assert batch["relations"].tolist() == [two, one, one]
    assert batch["path_weights"].tolist() == [0.5, 0.5]
    assert batch["path_examples"].tolist() == [0, 0]


def example_numbers(corpus: GraphCorpus, *identifiers: str):
    reader = corpus.split("train")
    return torch.tensor(
        [number for number in range(len(reader)) if reader.example(number).id in identifiers], dtype=torch.int64
    ).numpy()


def test_fewer_paths_are_read_where_asked(corpus):
    task = task_of(corpus, "objective.random_chains=0", "model.max_paths=1")
    micro_batch = dataclasses.replace(task.plan(0).micro_batches[0], examples=example_numbers(corpus, "returning"))
    assert task.fetch(micro_batch)["relations"].tolist() == [corpus.names.relations.index("two")]


def test_the_given_walk_is_read_where_asked(corpus):
    task = task_of(corpus, "objective.random_chains=0", "model.paths='given'")
    micro_batch = dataclasses.replace(task.plan(0).micro_batches[0], examples=example_numbers(corpus, "returning"))
    walk = [corpus.names.relations.index(name) for name in ("one", "one", "one", "two")]
    assert task.fetch(micro_batch)["relations"].tolist() == walk


def test_an_example_beyond_the_longest_path_has_a_vector_of_its_own(corpus):
    task = task_of(corpus, "objective.random_chains=0", "model.longest_path=8")
    micro_batch = dataclasses.replace(task.plan(0).micro_batches[0], examples=example_numbers(corpus, "longer"))
    batch = task.fetch(micro_batch)
    assert batch["relations"].tolist() == [3]
    assert task.build_model().relations.weight.shape[0] == 4


def test_a_longest_path_of_one_edge_is_trained_and_evaluated_on(corpus):
    task = task_of(corpus, "objective.random_chains=0", "model.longest_path=1")
    model = task.build_model().eval()
    micro_batch = dataclasses.replace(task.plan(0).micro_batches[0], examples=example_numbers(corpus, "returning"))
    batch = task.fetch(micro_batch)
    assert batch["relations"].tolist() == [corpus.names.relations.index("two")]
    losses = task.loss_sums(model, batch)
    with torch.no_grad():
        assert losses["associativity"] == 0
        report = task.report(model, "train", context())
    assert report["without_path"] == report["examples"] - 1


def test_random_chains_stand_behind_the_paths(corpus):
    without, with_chains = (task_of(corpus, f"objective.random_chains={number}") for number in (0, 2))
    plain, batch = (task.fetch(task.plan(0).micro_batches[0]) for task in (without, with_chains))
    n_leaves = len(plain["relations"])
    assert torch.equal(batch["relations"][:n_leaves], plain["relations"])
    assert len(batch["roots"]) == len(plain["roots"]) + 16 * 2 * 2
    assert 3 * 32 <= len(batch["relations"]) - n_leaves <= 4 * 32
    assert len(batch["path_examples"]) == len(plain["path_examples"])


def test_objectives_of_weight_zero_are_left_out(corpus):
    task = task_of(corpus, "objective.associativity=0.0", "objective.closure=0.0")
    assert dict(task.loss_weights) == {"answer": 1.0}
    assert list(task.loss_sums(task.build_model(), task.fetch(task.plan(0).micro_batches[0]))) == ["answer"]
    assert set(task.plan(0).counts) == {"answer"}


def test_augmentation_lengthens_what_is_trained_on(corpus):
    def longest(task: RelationPredictionTask) -> int:
        batches = [task.fetch(task.plan(step).micro_batches[0]) for step in range(6)]
        return max(len(batch["relations"]) for batch in batches)

    plain = task_of(corpus, "objective.random_chains=0")
    lengthened = task_of(corpus, "objective.random_chains=0", "objective.composition_augmentation=3")
    assert longest(lengthened) > longest(plain)
    assert "9 two-hop paths" in lengthened.facts()["augmentation"]
    assert "augmentation" not in plain.facts()


def test_only_training_proves_anything(tmp_path):
    train = [chain(f"{number}", (1, 1)) for number in range(30)] + [chain("all", (0, 1, 2))]
    corpus = write_corpus(tmp_path, {"train": train, "test_2": [chain("t", (0, 2)), chain("u", (2, 0))]})
    task = task_of(corpus, "objective.composition_augmentation=3")
    assert task.facts()["augmentation"].startswith("1 two-hop path")


def test_the_worst_step_holds_at_least_what_any_step_holds(corpus):
    task = task_of(corpus, "objective.composition_augmentation=2", "objective.random_chains=0")
    worst = task.fetch(task.worst_step().micro_batches[0])
    for step in range(20):
        assert len(task.fetch(task.plan(step).micro_batches[0])["relations"]) <= len(worst["relations"])


@dataclasses.dataclass(frozen=True)
class Recorded(Ranks):
    """One of two ranks; what it would add up is kept."""

    kept: list = dataclasses.field(default_factory=list)

    def sum(self, tensor):
        self.kept.append(tensor.clone())
        return tensor


def test_ranks_judge_every_example_once(corpus):
    task = task_of(corpus, "batch.micro_batch_size=4")
    model = task.build_model().eval()
    parts = []
    for rank in range(2):
        ranks = Recorded(rank=rank, world_size=2)
        with torch.no_grad():
            task.evaluate(model, context(ranks))
        parts += ranks.kept
    alone = Recorded(rank=0, world_size=1)
    with torch.no_grad():
        task.evaluate(model, context(alone))
    assert torch.equal(parts[0] + parts[1], alone.kept[0])
    assert not ((parts[0] != 0) & (parts[1] != 0)).any()


def test_an_evaluation_does_not_depend_on_its_batches(corpus):
    model = task_of(corpus).build_model().eval()
    with torch.no_grad():
        large, small = (
            task_of(corpus, f"batch.micro_batch_size={size}").evaluate(model, context()) for size in (16, 1)
        )
    assert small == pytest.approx(large, rel=1e-5)


def test_more_bracketings_change_what_an_evaluation_finds(corpus):
    model = task_of(corpus).build_model().eval()
    with torch.no_grad():
        one, many = (
            task_of(corpus, f"evaluation.bracketings={number}").evaluate(model, context()) for number in (1, 9)
        )
    assert one["loss"] != many["loss"]


def trained(task: RelationPredictionTask, n_steps: int):
    model, rate = task.build_model().train(), 1e-2
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(n_steps):
        optimizer.param_groups[0]["lr"] = rate * min(1, (step + 1) / 20) * (1 - step / n_steps)
        plan = task.plan(step)
        sums = task.loss_sums(model, task.fetch(plan.micro_batches[0]))
        sum(task.loss_weights[name] * value / plan.counts[name] for name, value in sums.items()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return model.eval()


@pytest.mark.parametrize("cell", ["bilinear", "mlp"])
def test_learns_a_composition_table_and_goes_on_to_longer_paths(corpus, cell):
    task = task_of(corpus, f"model.composition='{cell}'", "model.d_model=32")
    model = trained(task, n_steps=80)
    with torch.no_grad():
        assert task.evaluate(model, context())["accuracy"] == 1.0
        report = task.report(model, "test-07", context())
    assert report["mean_accuracy_5_to_10_hops"] == 1.0
    assert [row["split"] for row in report["tests"]] == ["test-04", "test-05", "test-06", "test-07"]
    assert report["by_hops"] == [{"hops": 7, "examples": 1, "accuracy": 1.0}]
    assert report["without_path"] == 0
    assert report["composition_augmentation"] == 0


def test_a_gated_cell_learns_the_table_of_two_hops(corpus):
    task = task_of(corpus, "model.composition='gru'", "model.d_model=32", "objective.associativity=0.0")
    model = trained(task, n_steps=100)
    with torch.no_grad():
        two_hops, *_ = task.report(model, "train", context())["by_hops"]
    assert two_hops["hops"] == 2
    assert two_hops["accuracy"] == 1.0


@pytest.mark.parametrize("cell", list(CELLS))
def test_the_cell_that_the_recipe_names_composes(corpus, cell):
    model = task_of(corpus, f"model.composition='{cell}'").build_model()
    assert type(model.cell) is CELLS[cell]


def test_a_report_judges_each_test_once(corpus, monkeypatch):
    task, judge, judged = task_of(corpus), RelationPredictionTask._judge, []

    def counted(self, model, split, *args, **settings):
        judged.append(split)
        return judge(self, model, split, *args, **settings)

    monkeypatch.setattr(RelationPredictionTask, "_judge", counted)
    with torch.no_grad():
        report = task.report(task.build_model().eval(), "test-05", context())
    assert sorted(judged) == [row["split"] for row in report["tests"]]
    assert report["tests"][1]["accuracy"] == report["accuracy"]


def test_the_tests_of_a_corpus_are_evaluated_together_under_the_name_they_share(tmp_path):
    numbers = (1, 2, 0, 2, 1, 1, 2) * 2
    corpus = write_corpus(
        tmp_path,
        {
            "train": [
                chain(f"{copy}-{pair}", pair) for copy in range(3) for pair in itertools.product(range(3), repeat=2)
            ],
            "test_4": [chain(f"four-{place}", numbers[place : place + 4]) for place in range(3)],
            "test_6": [chain("six", numbers[:6])],
        },
    )
    settings = (
        "model.d_model=8",
        "batch.batch_size=4",
        "run.max_steps=3",
        "optimizer.warmup_steps=1",
        "evaluation.every=0",
    )
    recipe = load_recipe("graph/clutrr", "graph", [f"corpus.path={corpus.path}", *settings])
    train(recipe, tmp_path / "run", device="cpu")
    four, six, both = (
        evaluate_trained(tmp_path / "run", split=split, device="cpu").metrics
        for split in ("test-04", "test-06", "test")
    )
    assert (four["examples"], six["examples"], both["examples"]) == (3, 1, 4)
    assert both["accuracy"] == pytest.approx((3 * four["accuracy"] + six["accuracy"]) / 4)
    assert both["loss"] == pytest.approx((3 * four["loss"] + six["loss"]) / 4)
    assert both["by_hops"] == [*four["by_hops"], *six["by_hops"]]
    assert both["tests"] == four["tests"] == six["tests"]
    assert both["mean_accuracy_5_to_10_hops"] == six["accuracy"]


def test_a_split_that_no_test_shares_its_name_with_is_refused(corpus):
    task = task_of(corpus)
    with pytest.raises(UsageError, match="no split 'tests'"):
        task.report(task.build_model().eval(), "tests", context())


def test_a_checkpoint_outside_its_run_is_judged_as_inside(corpus, tmp_path):
    settings = (
        "model.paths='given'",
        "model.longest_path=12",
        "model.max_paths=2",
        "objective.composition_augmentation=1",
        "evaluation.bracketings=3",
        "run.max_steps=2",
        "optimizer.warmup_steps=1",
        "evaluation.every=0",
        "batch.num_workers=0",
    )
    train(task_of(corpus, *settings)._recipe, tmp_path / "run", device="cpu")
    shutil.copytree((tmp_path / "run" / "checkpoints" / "latest").resolve(), tmp_path / "lone")
    inside = evaluate_trained(tmp_path / "run", choose="latest", split="train", device="cpu").metrics
    outside = evaluate_trained(tmp_path / "lone", corpus=corpus.path, split="train", device="cpu").metrics
    assert outside.pop("loss") == pytest.approx(inside.pop("loss"), rel=1e-6)
    assert outside == inside


def test_a_task_whose_answers_are_not_learned_is_refused(corpus):
    with pytest.raises(RecipeError, match=r"objective\.answer is 0"):
        task_of(corpus, "objective.answer=0").check()


@pytest.mark.parametrize(
    "setting",
    [
        "optimizer.freeze_query_encoder=true",
        "optimizer.query_encoder_lr_scale=0.5",
        "objective.on_policy_selection=true",
    ],
)
def test_settings_of_the_reasoner_are_refused_by_name(corpus, setting):
    with pytest.raises(RecipeError) as caught:
        task_of(corpus, setting).check()
    (problem,) = caught.value.problems
    assert problem.startswith(f"{setting.partition('=')[0]} is ")
    task_of(corpus).check()


def test_too_little_data_is_refused(corpus, tmp_path):
    with pytest.raises(RecipeError, match=r"one step takes batch\.batch_size 4096"):
        task_of(corpus, "batch.batch_size=4096").check()
    small = write_corpus(tmp_path, {"train": [chain("b", (1, 1))]})
    with pytest.raises(RecipeError, match="no validation split"):
        task_of(small, "batch.batch_size=1").check()


def test_a_corpus_that_asks_for_something_else_is_refused(corpus, monkeypatch):
    reader = corpus.split("train")
    reader.arrays = {**reader.arrays, "modes": reader.arrays["modes"] * 0}
    monkeypatch.setattr(GraphCorpus, "split", lambda self, name: reader)
    with pytest.raises(DataError, match="asks for something else"):
        task_of(corpus)
