"""Rules over settings of structure supervision: refused by name, and only where broken."""

import pytest

from strata_core.errors import RecipeError
from strata_core.recipes import load_recipe

SENTENCES = ("batch.batch_size=16", "batch.sentences=8")


def load(*settings):
    return load_recipe("lm/small", "lm", ["batch.micro_batch_size=", *settings])


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        (("objective.lm=0",), "the weights of all objectives are 0"),
        (("objective.ud.arc=1",), "objective.ud.arc is above 0 and batch.sentences is 0"),
        (("batch.sentences=17",), "batch.sentences 17 is above batch.batch_size 16"),
        (
            ("batch.sentences=7", "batch.micro_batch_size=8"),
            "leaves 9 windows, which 2 micro-batches of 8 cannot share equally",
        ),
        (("objective.lm=0", "objective.ud.arc=1", "batch.sentences=8"), "so windows of text serve nothing"),
        (
            (*SENTENCES, "model.max_seq_len=256", "batch.max_sentence_len=257"),
            "batch.max_sentence_len 257 is above model.max_seq_len 256",
        ),
        (("model.memory_layer=9",), "memory_layer 9 is above n_layers 8"),
        (
            ("model.graph_object_memory.enabled=true", "model.graph_object_memory.n_heads=3"),
            "n_heads 3 does not divide d_model 256",
        ),
        (("objective.role_edit.follow=1",), "model.predicate_memory.enabled is false"),
        (("objective.graph_object.role_edit=1",), "needs model.graph_object_memory.enabled = true"),
        (("model.graph_object_memory.intervention='typed'",), "needs model.graph_object_memory.enabled = true"),
        (
            ("model.graph_object_memory.enabled=true", "objective.graph_object.role_edit=1"),
            "model.graph_object_memory.intervention 'none' reads nothing",
        ),
        (("evaluation.metric='las'", *SENTENCES, "objective.ud.arc=1"), "needs objective.ud.relation above 0"),
        (
            ("objective.lm=0", "objective.ud.arc=1", "batch.sentences=16"),
            "evaluation.metric 'loss' needs objective.lm above 0",
        ),
        (("evaluation.metric='structure'",), "needs an objective over annotated sentences"),
        (
            ("evaluation.metric='structure'", *SENTENCES, "objective.ud.arc=1", "objective.srl.core_role=1"),
            "'structure' needs an objective over annotated sentences of which it is made",
        ),
        (("evaluation.metric='role_edit_direction'",), "needs an objective over role edits"),
        (
            ("model.graph_object_memory.enabled=true", "model.graph_object_memory.train_alone=true"),
            "train_alone is true, but nothing reads graphs: batch.sentences is 0, intervention 'none'",
        ),
        (
            (*SENTENCES, "model.graph_object_memory.enabled=true", "model.graph_object_memory.train_alone=true"),
            "train_alone is true, but nothing reads graphs: batch.sentences is 8, intervention 'none'",
        ),
        *(
            (
                (f"model.{there}.enabled=true", f"model.graph_object_memory.{setting}"),
                f"model.{lacking}.enabled is false",
            )
            for there, lacking in (
                ("predicate_memory", "graph_object_memory"),
                ("graph_object_memory", "predicate_memory"),
            )
            for setting in ("learned_weight=0.5", "anneal_final_learned_weight=0.5", "predicate_memory_dropout=0.5")
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, fault):
    with pytest.raises(RecipeError) as raised:
        load(*settings)
    assert any(fault in problem for problem in raised.value.problems), raised.value.problems


@pytest.mark.parametrize(
    "key",
    [
        *("objective.ud.arc", "objective.ud.relation", "objective.ud.node_type"),
        *("objective.srl.predicate", "objective.srl.role", "objective.srl.none_weight", "objective.srl.core_role"),
        *("objective.chart.type", "objective.role_edit.margin", "objective.graph_object.aux"),
        *("model.word_dropout", "model.heads.dropout", "batch.sentences", "batch.max_sentence_len"),
    ],
)
def test_a_negative_value_is_refused_by_name(key):
    with pytest.raises(RecipeError) as raised:
        load(f"{key}=-1")
    assert any(f"{key} = -1" in problem or f"{key}=-1" in problem for problem in raised.value.problems)


def test_a_model_with_sentences_takes_the_longest_of_both():
    assert load(*SENTENCES, "batch.max_sentence_len=300").model.max_seq_len == 300
    assert load(*SENTENCES, "batch.max_sentence_len=100").model.max_seq_len == 256
    assert load("batch.max_sentence_len=300").model.max_seq_len == 256


def test_memories_stand_in_the_middle_by_default():
    assert load("model.n_layers=7").model.memory_layer == 3


def test_pure_text_stays_pure():
    assert not load().is_structured
    assert load(*SENTENCES).is_structured
    assert load("model.predicate_memory.enabled=true").is_structured


def test_the_reference_weights_are_those_of_the_recipes():
    ud, srl, chart = (load_recipe(f"lm/{name}").objective for name in ("ud", "srl", "chart"))
    assert (ud.ud.arc, ud.ud.relation, ud.ud.node_type) == (0.1, 0.1, 0.05)
    assert (srl.srl.predicate, srl.srl.role, srl.srl.none_weight) == (0.1, 0.1, 0.2)
    assert (chart.chart.type, chart.chart.scheme) == (0.05, "eisner")
