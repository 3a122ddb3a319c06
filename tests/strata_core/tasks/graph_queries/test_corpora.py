"""Corpora that the task of reasoning over small graphs refuses, and what it makes of twins in its validation split."""

import pytest
import torch

from strata_core.corpus.graphs.corpus import open_graph_corpus
from strata_core.corpus.graphs.example import Branch, Mode, Query, Status
from strata_core.corpus.graphs.layout import GRAPHS_FOLDER
from strata_core.corpus.graphs.output import finish_corpus
from strata_core.corpus.graphs.writing import write_examples
from strata_core.errors import DataError, RecipeError
from strata_core.models.graphs.graph_reasoner import GraphReasoner
from strata_core.recipes import load_recipe
from strata_core.tasks.graph_queries.task import GraphQueryTask
from strata_core.training.distributed import ALONE
from strata_core.training.precision import choose_precision
from strata_core.training.task import EvaluationContext
from tests.strata_core.corpus.graphs.helpers import KIN, grandchild

torch.set_num_threads(1)
CPU = torch.device("cpu")


def entity(name, **changes):
    return grandchild(name, **changes)


def count(name):
    return grandchild(name, query=Query(Mode.COUNT, (Branch(0, (0, 0)),)), number=1)


def relation(name):
    return grandchild(name, query=Query(Mode.RELATION, (Branch(0),), end=2), answers=(), target=0, paths=())


def lacking(name, twin):
    return grandchild(name, status=Status.NOT_ENOUGH_INFO, answers=(), paths=(), twin=twin)


@pytest.fixture
def task_of(tmp_path):
    """Makes a task of a recipe with some settings over a corpus of a training and a validation split."""

    def make(train, val, *settings):
        folder = tmp_path / "corpus"
        for split, examples in (("train", train), ("val", val)):
            write_examples(folder / GRAPHS_FOLDER / split, examples, KIN)
        finish_corpus(folder, folder, "graphs", ("train", "val"), KIN)
        recipe = tmp_path / "recipe.toml"
        recipe.write_text(
            f'kind = "graph"\n[corpus]\npath = "{folder}"\n[model]\nd_model = 8\n[batch]\nbatch_size = 2\n'
            "[run]\nmax_steps = 2\n[optimizer]\nwarmup_steps = 1\n[evaluation]\nevery = 1\n"
        )
        return GraphQueryTask(load_recipe(recipe, "graph", list(settings)), open_graph_corpus(folder))

    return make


def context():
    autocast = choose_precision("fp32", CPU, force=False).autocast(CPU)
    return EvaluationContext(CPU, ALONE, autocast, lambda: False, lambda done, of: None)


@pytest.mark.parametrize("metric", ["mrr", "hits_at_1", "hits_at_3", "hits_at_10"])
def test_a_metric_of_ranks_needs_answers_to_rank_among_the_examples_that_are_read(task_of, metric):
    train, setting = [entity("a"), entity("b")], f"evaluation.metric={metric}"
    counts = [count("c"), count("d"), lacking("e", None)]
    with pytest.raises(RecipeError, match=rf"'{metric}', and of the 3 validation examples .* 1 ask for nodes, none"):
        task_of(train, counts, setting).check()


def test_a_metric_is_looked_for_in_the_batches_that_are_read_alone(task_of):
    train, val = [entity("a"), entity("b")], [count("c"), count("d"), entity("e")]
    settings = ("evaluation.metric=mrr", "batch.micro_batch_size=2")
    with pytest.raises(RecipeError, match=r"of the 2 validation examples .* 0 ask for nodes"):
        task_of(train, val, *settings, "evaluation.batches=1").check()


def test_one_example_that_a_metric_can_be_computed_on_is_enough(task_of):
    train, val = [entity("a"), entity("b")], [entity("c", status=Status.UNKNOWN), count("d")]
    task = task_of(train, val, "evaluation.metric=mrr")
    task.check()
    assert {"mrr", "accuracy"} <= task.evaluate(task.build_model().eval(), context()).keys()


def test_accuracy_needs_a_known_status(task_of):
    train, val = [entity("a"), entity("b")], [entity(name, status=Status.UNKNOWN) for name in "cd"]
    task = task_of(train, val, "evaluation.metric=accuracy")
    with pytest.raises(RecipeError, match=r"'accuracy', and of the 2 validation examples .* 0 have a known status"):
        task.check()
    assert "accuracy" not in task.evaluate(task.build_model().eval(), context())


def test_without_an_evaluation_no_metric_is_asked_for(task_of):
    task_of([entity("a"), entity("b")], [count("c")], "evaluation.metric=mrr", "evaluation.every=0").check()


@pytest.mark.parametrize("split", ["train", "val"])
def test_a_query_for_a_label_among_others_is_refused_by_the_id_of_its_example(task_of, split):
    splits = {"train": [entity("a"), entity("b")], "val": [entity("c")]}
    splits[split] += [relation("kin-7"), relation("kin-8")]
    with pytest.raises(
        DataError, match=rf"2 of the \d examples in split {split}, kin-7 the first of them, ask for the label"
    ):
        task_of(splits["train"], splits["val"]).check()


@pytest.mark.parametrize(
    ("asked", "settings", "refused"),
    [((), (), True), ((), ("objective.answer=0",), False), (("c",), (), False)],
    ids=["nothing asked", "no answers wanted", "one asks"],
)
def test_examples_that_ask_nothing_teach_no_answers(task_of, asked, settings, refused):
    silent = {"query": Query(Mode.NOTHING, ()), "answers": (), "paths": (), "status": Status.UNKNOWN}
    examples = [grandchild(name, **silent) for name in "ab"] + [entity(name) for name in asked]
    task = task_of(examples, [grandchild("d", **silent)], "evaluation.metric=loss", *settings)
    if not refused:
        task.check()
        return
    with pytest.raises(
        RecipeError, match=r"answer has weight 1, but none of the 2 training examples of .* asks anything"
    ):
        task.check()


def test_the_mean_over_pairs_is_over_those_in_one_micro_batch(task_of):
    train = [entity("a"), lacking("b", 0)]
    # Of the pairs (1, 0), (3, 0) and (4, 0) only the first stands in one micro-batch of two.
    val = [entity("c"), lacking("d", 0), entity("e"), lacking("f", 0), lacking("g", 0)]
    task = task_of(train, val, "batch.micro_batch_size=2")
    model = task.build_model().eval()
    # Without the support head's say all scores are alike, and every pair that is compared lacks the whole margin of 1.
    with torch.no_grad():
        for parameter in model.status_head.support.parameters():
            parameter.zero_()
    assert task.report(model, "val", context())["losses"]["pair_margin"] == pytest.approx(1.0)


def test_an_evaluation_walks_and_selects_once_for_each_batch(task_of, monkeypatch):
    calls = {"walk": 0, "select": 0}

    def counted(name):
        original = getattr(GraphReasoner, name)

        def count_and_call(*arguments):
            calls[name] += 1
            return original(*arguments)

        return count_and_call

    for name in calls:
        monkeypatch.setattr(GraphReasoner, name, counted(name))
    task = task_of([entity("a"), lacking("b", 0)], [entity(name) for name in "cdef"], "batch.micro_batch_size=2")
    task.evaluate(task.build_model().eval(), context())
    assert calls == {"walk": 2, "select": 2}
