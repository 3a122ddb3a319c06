"""Graphs of annotated sentences in a batch, and how strongly each pass reads the memories."""

import numpy as np
import pytest
import torch

from strata_core.corpus.treebanks.structure_reading import SentenceArrays
from strata_core.tasks.sentence_structure.sentence_graphs import (
    READBACK,
    SentenceGraphs,
    sentence_edges,
    slot_tensors,
    slot_type_labels,
    slots_of,
)
from tests.strata_core.tasks.sentence_structure.role_edits.role_edit_corpus import make_role_edit_corpus
from tests.strata_core.tasks.sentence_structure.test_task import context, open_gates
from tests.strata_core.tasks.sentence_structure.treebank_corpus import ALL_WEIGHTS, small_recipe, small_task

GRAPHS = ("model.graph_object_memory.enabled=true", "model.graph_object_memory.intervention='typed'")
LEARNED = "model.predicate_memory.enabled=true"
ANNEAL = "model.graph_object_memory.anneal_final_learned_weight=0.25"


@pytest.fixture(scope="session")
def treebank(tmp_path_factory):
    return make_role_edit_corpus(tmp_path_factory.mktemp("graphs"))


def arrays(arguments, spans) -> SentenceArrays:
    words = len(spans)
    return SentenceArrays(
        tokens=np.arange(max(stop for _, stop in spans), dtype=np.uint32),
        token_spans=np.array(spans, dtype=np.int32),
        upos=np.zeros(words, dtype=np.int32),
        heads=np.zeros(words, dtype=np.int32),
        relations=np.zeros(words, dtype=np.int32),
        rolesets=np.full(words, -1, dtype=np.int32),
        arguments=np.array(arguments, dtype=np.int32).reshape(-1, 3),
        has_roles=True,
    )


SENTENCES = [
    arrays([(2, 1, 0), (2, 4, 3)], [(0, 1), (1, 4), (4, 5), (5, 7)]),
    arrays([], [(0, 2), (2, 3)]),
    arrays([(1, 2, 1)], [(0, 2), (2, 3)]),
]


def test_edges_go_from_predicates_to_arguments_with_types_counted_from_one():
    assert sentence_edges(SENTENCES[0]).tolist() == [[1, 0, 1], [1, 3, 4]]


def test_slots_stand_at_words_and_at_their_last_tokens():
    batch = slot_tensors(SENTENCES, "typed", [0, 0, 0])
    words, tokens = slots_of(batch, full=True), slots_of(batch, full=False)
    assert words.source_BS.tolist() == [[1, 1], [0, 0], [0, 0]]
    assert words.target_BS.tolist() == [[0, 3], [0, 0], [1, 0]]
    assert tokens.source_BS[0].tolist() == [3, 3] and tokens.target_BS[0].tolist() == [0, 6]
    assert (tokens.source_BS[2, 0].item(), tokens.target_BS[2, 0].item()) == (1, 2)
    assert words.type_BS.tolist() == [[1, 4], [0, 0], [2, 0]]
    assert words.readable_BS.tolist() == [[True, True], [False, False], [True, False]]


@pytest.mark.parametrize("intervention", ["none", "typed", "untyped", "random"])
def test_every_intervention_has_the_same_tensors(intervention):
    batch, typed = slot_tensors(SENTENCES, intervention, [1, 2, 3]), slot_tensors(SENTENCES, "typed", [1, 2, 3])
    assert {name: value.shape for name, value in batch.items()} == {name: v.shape for name, v in typed.items()}
    assert batch["slot_readable"].any().item() == (intervention != "none")


def test_a_slot_is_to_be_told_as_what_it_holds_and_padding_as_nothing():
    assert slot_type_labels(slot_tensors(SENTENCES, "typed", [0] * 3)).tolist() == [[1, 4], [-1, -1], [2, -1]]
    assert slot_type_labels(slot_tensors(SENTENCES, "untyped", [0] * 3)).tolist() == [[0, 0], [-1, -1], [0, -1]]
    assert (slot_type_labels(slot_tensors(SENTENCES, "none", [0] * 3)) == -1).all()


def mixtures(corpus, *settings):
    """At the first, the middle and the last of 11 steps."""
    task = small_task(corpus, *ALL_WEIGHTS, *GRAPHS, LEARNED, "run.max_steps=11", *settings)
    found = [task.fetch(task.plan(step).micro_batches[0])[READBACK].tolist() for step in (0, 5, 10)]
    return [pytest.approx(mixture) for mixture in found]


def test_the_batch_of_a_step_brings_the_mixture_of_the_anneal(treebank):
    assert mixtures(treebank, ANNEAL) == [[1.0, 0.0], [0.625, 0.375], [0.25, 0.75]]
    assert mixtures(treebank) == [[1.0, 1.0]] * 3
    fixed = "model.graph_object_memory.learned_weight=0.4"
    assert mixtures(treebank, ANNEAL, fixed) == [[0.4, 0.6]] * 3
    ends = "model.graph_object_memory.anneal_steps=6"
    assert mixtures(treebank, ANNEAL, ends) == [[1.0, 0.0], [0.25, 0.75], [0.25, 0.75]]


def test_an_evaluation_reads_as_the_end_of_the_anneal_whatever_the_length_of_the_run(treebank):
    settings = (*GRAPHS, LEARNED, ANNEAL, "objective.ud.arc=1.0", "model.graph_object_memory.anneal_steps=30")
    for steps in (11, 60):
        graphs = SentenceGraphs(small_recipe(treebank, *settings, f"run.max_steps={steps}"))
        assert graphs.tensors(SENTENCES, [0, 1, 2], step=None)[READBACK].tolist() == [0.25, 0.75]


def loss(corpus, *settings, change=(), step=0, training=False):
    task = small_task(corpus, *ALL_WEIGHTS, *GRAPHS, LEARNED, *settings)
    model = open_gates(task.build_model()).train(training)
    with torch.no_grad():
        for name, value in change:
            model.get_parameter(name).fill_(value)
        torch.manual_seed(5)
        found = task.loss_sums(model, task.fetch(task.plan(step).micro_batches[0]))
    return {name: value.item() for name, value in found.items()}


FULL_PASS = ("ud_arc", "ud_relation", "node_type", "srl_role", "chart_type")


def test_the_full_pass_mixes_and_the_causal_pass_reads_all(treebank):
    """With learned weight 0 the full pass is blind to the learned memory, with 1 to the object; the LM never is."""
    alone = "model.graph_object_memory.learned_weight=0.0"
    plain, other = loss(treebank, alone), loss(treebank, alone, change=[("predicate_memory.gate", -0.5)])
    assert all(plain[name] == other[name] for name in FULL_PASS)
    assert plain["lm"] != other["lm"]
    learned = "model.graph_object_memory.learned_weight=1.0"
    plain, other = loss(treebank, learned), loss(treebank, learned, change=[("graph_object_memory.gate", -0.5)])
    assert all(plain[name] == other[name] for name in FULL_PASS)
    assert plain["lm"] != other["lm"]


def test_dropout_of_the_learned_memory_strikes_annotated_rows_of_the_full_pass_in_training_alone(treebank):
    often = "model.graph_object_memory.predicate_memory_dropout=0.9"
    plain, dropped = loss(treebank, training=True), loss(treebank, often, training=True)
    assert plain["lm"] == dropped["lm"]
    assert all(plain[name] != dropped[name] for name in FULL_PASS)
    assert loss(treebank) == loss(treebank, often)


def test_types_are_learned_from_the_ends_where_the_objective_asks(treebank):
    task = small_task(treebank, *ALL_WEIGHTS, *GRAPHS, "objective.graph_object.aux=0.5")
    model = open_gates(task.build_model())
    plan = task.plan(0)
    batch = task.fetch(plan.micro_batches[0])
    assert plan.counts["graph_object_aux"] == int(batch["slot_readable"].sum())
    found = task.loss_sums(model, batch)["graph_object_aux"] / plan.counts["graph_object_aux"]
    n_types = len(treebank.structure("train").labels.names("role")) + 1
    assert model.graph_object_memory.type_head.out_features == n_types
    assert found.item() == pytest.approx(np.log(n_types), rel=0.2)


@pytest.mark.parametrize("intervention", ["none", "untyped", "random"])
def test_what_the_object_holds_goes_by_the_recipe(treebank, intervention):
    changed = loss(treebank, f"model.graph_object_memory.intervention='{intervention}'")
    typed = loss(treebank)
    assert changed["lm"] != typed["lm"] and changed["srl_role"] != typed["srl_role"]


def test_a_report_has_the_interventions_of_the_causal_pass(treebank):
    task = small_task(treebank, *GRAPHS, "objective.lm=1.0")
    found = task.report(open_gates(task.build_model()).eval(), "val", context())
    losses = {row["graph"]: row["loss"] for row in found["interventions"]}
    assert list(losses) == ["none", "typed", "untyped", "random"]
    assert len(set(losses.values())) == 4
    closed = task.report(task.build_model().eval(), "val", context())
    assert len({row["loss"] for row in closed["interventions"]}) == 1
    assert all(row["difference"] == 0 for row in closed["intervention_differences"])


def test_causal_losses_before_an_edge_are_bit_equal_whatever_it_says(treebank):
    task = small_task(treebank, *ALL_WEIGHTS, *GRAPHS, LEARNED)
    model = open_gates(task.build_model()).eval()
    batch = task.fetch(task.plan(0).micro_batches[0])
    slots = slots_of(batch, full=False)
    later = torch.maximum(slots.source_BS, slots.target_BS)
    row = int(slots.readable_BS.sum(dim=1).argmax())
    slot = int(later[row].masked_fill(~slots.readable_BS[row], -1).argmax())

    def states():
        memory = task._sentences.graphs.memory_input(batch, full=False, training=False)
        return model(batch["sentence_tokens"], memory=memory).states_BLD[row]

    before = states()
    batch["slot_types"][row, slot] = 0
    after = states()
    edge = int(later[row, slot])
    assert torch.equal(before[:edge], after[:edge])
    assert not torch.equal(before[edge], after[edge])
