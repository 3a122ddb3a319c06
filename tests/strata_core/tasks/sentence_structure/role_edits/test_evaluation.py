"""Answers to held-out role edits: the same on any number of ranks, and as the model gives them."""

import dataclasses

import numpy as np
import pytest
import torch

from strata_core.models.readback import graph_object_alone
from strata_core.models.structured_language_model import MemoryInput
from strata_core.tasks.sentence_structure.role_edits import source as role_edit_source
from strata_core.tasks.sentence_structure.role_edits.batches import Reading, graph_slots, pack_probes
from strata_core.tasks.sentence_structure.role_edits.evaluation import (
    LEARNED,
    answer_role_edits,
    measure_role_edits,
    report_role_edits,
    role_edit_arms,
)
from strata_core.tasks.sentence_structure.role_edits.source import held_out_role_edits
from strata_core.training.task import EvaluationStopped
from tests.strata_core.tasks.sentence_structure.role_edits.role_edit_corpus import make_role_edit_corpus
from tests.strata_core.tasks.sentence_structure.role_edits.test_losses import (
    EVERYTHING,
    GRAPH,
    GRAPH_LOSSES,
    LEARNED_LOSSES,
)
from tests.strata_core.tasks.sentence_structure.role_edits.test_losses import LEARNED as LEARNED_MEMORY
from tests.strata_core.tasks.sentence_structure.test_task import OtherRank, context, open_gates
from tests.strata_core.tasks.sentence_structure.treebank_corpus import small_recipe, small_task

ARMS = ("typed", "untyped", "random", LEARNED)


@pytest.fixture(scope="session")
def treebank(tmp_path_factory):
    return make_role_edit_corpus(tmp_path_factory.mktemp("held-out"))


@pytest.fixture(scope="session")
def model(treebank):
    return open_gates(small_task(treebank, *EVERYTHING).build_model()).eval()


def answers(corpus, model, arms=ARMS, at=None, limit=40):
    recipe = small_recipe(corpus, *EVERYTHING)
    edits = held_out_role_edits(corpus, "generated", "val", recipe.model.max_seq_len)
    return answer_role_edits(model, edits, arms, recipe.objective.role_edit, at or context(), limit=limit)


def test_answers_are_the_odds_of_each_example_by_itself(treebank, model):
    found = answers(treebank, model, limit=3)
    edits = held_out_role_edits(treebank, "generated", "val", 256)
    for number in range(3):
        for name, graph in (("original", "original"), ("edited", "edited"), ("placebo", "placebo")):
            reading = [Reading("probe", graph, "typed")]
            packed, places = pack_probes([edits[number]], reading)
            slots = graph_slots([edits[number]], reading, places, [0])
            memory = MemoryInput(slots=slots, readback=graph_object_alone(len(places)))
            with torch.no_grad():
                odds = packed.odds(model(packed.tokens_RL, memory=memory).states_BLD, model.output_weight)
            assert getattr(found["typed"], name)[number] == pytest.approx(odds.item(), abs=1e-4)


def test_an_edit_done_twice_does_nothing_and_untyped_graphs_hide_one(treebank, model):
    found = answers(treebank, model)
    for arm in ARMS:
        assert np.abs(found[arm].no_op - found[arm].original).max() < 1e-4
    assert np.abs(found["untyped"].edited - found["untyped"].original).max() < 1e-4
    assert np.abs(found["typed"].edited - found["typed"].original).max() > 1e-3
    assert np.abs(found[LEARNED].edited - found[LEARNED].original).max() > 1e-4
    assert found["typed"].context_movement.max() > 0


def test_two_ranks_answer_together_what_one_answers(treebank, model):
    parts = []
    for rank in (0, 1):
        ranks = OtherRank(rank)
        answers(treebank, model, at=dataclasses.replace(context(), ranks=ranks))
        parts.append(ranks.sums[0])
    whole = answers(treebank, model)
    together = (parts[0] + parts[1]).numpy()
    for place, arm in enumerate(ARMS):
        assert np.array_equal(together[place][0], whole[arm].original)
        assert np.array_equal(together[place][6], whole[arm].context_movement)


def test_a_stop_ends_it(treebank, model):
    with pytest.raises(EvaluationStopped):
        answers(treebank, model, at=dataclasses.replace(context(), stop_requested=lambda: True))


@pytest.mark.parametrize(
    ("settings", "arms"),
    [
        ((*GRAPH, *GRAPH_LOSSES), ["typed", "untyped", "random"]),
        ((*LEARNED_MEMORY, *LEARNED_LOSSES), [LEARNED]),
        (EVERYTHING, ["typed", "untyped", "random", LEARNED]),
    ],
)
def test_the_arms_follow_from_the_objectives(treebank, settings, arms):
    assert role_edit_arms(small_recipe(treebank, *settings)) == arms


def test_a_split_without_examples_has_no_table(treebank, model):
    recipe = small_recipe(treebank, *EVERYTHING, "objective.role_edit.source='treebank'")
    table = report_role_edits(model, recipe, treebank, "val", context())
    assert [row["examples"] for row in table["role_edits"]] == [4] * 4
    short = recipe.model_copy(update={"model": recipe.model.model_copy(update={"max_seq_len": 5})})
    assert report_role_edits(model, short, treebank, "val", context()) == {}


def test_held_out_edits_are_found_once_however_often_a_run_is_evaluated(treebank, model, monkeypatch):
    read = []
    original = role_edit_source.split_role_edits

    def noted(*given):
        read.append(given)
        return original(*given)

    monkeypatch.setattr(role_edit_source, "split_role_edits", noted)
    # A length of its own, so that no other test has asked for the set before.
    recipe = small_recipe(treebank, *EVERYTHING, "objective.role_edit.source='treebank'", "model.max_seq_len=259")
    first, second = (measure_role_edits(model, recipe, treebank, context()) for _ in range(2))
    assert first == second and len(read) == 1


def test_each_split_and_each_source_has_held_out_edits_of_its_own(treebank):
    val, train = (held_out_role_edits(treebank, "treebank", split, 256) for split in ("val", "train"))
    assert (val.n_examples, train.n_examples) == (4, 16)
    assert held_out_role_edits(treebank, "treebank", "val", 5).n_examples == 0
    assert held_out_role_edits(treebank, "generated", "val", 256).n_examples == 512
