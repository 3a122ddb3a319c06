"""The objectives over role edits and graph objects in a step: each knob does what it says."""

import dataclasses

import numpy as np
import pytest
import torch

from strata_core.corpus.generators.role_edit_texts import role_edit_text
from strata_core.corpus.preparing.preparation import prepare_corpus
from strata_core.corpus.preparing.settings import PreparationSettings
from strata_core.corpus.reading import open_corpus
from strata_core.corpus.treebanks.conllu_writing import write_conllu
from strata_core.errors import RecipeError
from strata_core.models.structured_language_model import GRAPH_OBJECT_PREFIX, MemoryInput
from strata_core.tasks.sentence_structure.role_edits.batches import Reading, core_overrides, pack_probes
from strata_core.tasks.sentence_structure.role_edits.source import held_out_role_edits, training_role_edits
from strata_core.training.distributed import ALONE
from strata_core.training.precision import choose_precision
from strata_core.training.step import TrainingStep
from tests.strata_core.tasks.sentence_structure.role_edits.role_edit_corpus import make_role_edit_corpus, two_events
from tests.strata_core.tasks.sentence_structure.test_task import context, gradients, open_gates
from tests.strata_core.tasks.sentence_structure.treebank_corpus import small_recipe, small_task

CPU = torch.device("cpu")
GRAPH = ("model.graph_object_memory.enabled=true", "model.graph_object_memory.intervention='typed'")
LEARNED = ("model.predicate_memory.enabled=true",)
GRAPH_LOSSES = (
    "objective.graph_object.aux=0.2",
    "objective.graph_object.role_edit=1.0",
    "objective.graph_object.role_edit_stability=0.7",
    "objective.graph_object.role_edit_untyped_null=0.5",
    "objective.graph_object.role_edit_random_null=0.3",
)
LEARNED_LOSSES = (
    "objective.role_edit.follow=1.0",
    "objective.role_edit.specificity=0.5",
    "objective.role_edit.scope=0.3",
)
EDITS = "objective.role_edit.batch_size=3"
WIDE = "objective.role_edit.margin=50.0"
EVERYTHING = (*GRAPH, *LEARNED, *GRAPH_LOSSES, *LEARNED_LOSSES, EDITS)


@pytest.fixture(scope="session")
def treebank(tmp_path_factory):
    return make_role_edit_corpus(tmp_path_factory.mktemp("role-edits"))


def losses(task, model, step=0):
    with torch.no_grad():
        found = task.loss_sums(model, task.fetch(task.plan(step).micro_batches[0]))
    return {name: value.item() for name, value in found.items()}


def ready(corpus, *settings):
    task = small_task(corpus, *settings)
    return task, open_gates(task.build_model()).eval()


@pytest.mark.parametrize("micro_batch_size", [6, 3])
def test_gradients_do_not_depend_on_how_role_edits_are_cut(treebank, micro_batch_size):
    whole = gradients(treebank, *EVERYTHING)
    cut = gradients(treebank, *EVERYTHING, f"batch.micro_batch_size={micro_batch_size}")
    assert whole.keys() == cut.keys()
    for name, gradient in whole.items():
        torch.testing.assert_close(cut[name], gradient, rtol=0, atol=1e-6, msg=name)
    assert whole["graph_object_memory.value.weight"].abs().max() > 1e-3
    assert whole["predicate_memory.value.weight"].abs().max() > 1e-3


def test_counts_are_examples_and_tokens_of_their_contexts(treebank):
    task = small_task(treebank, *EVERYTHING, "batch.micro_batch_size=6")
    plan = task.plan(2)
    batches = [task.fetch(part) for part in plan.micro_batches]
    assert [len(part.role_edits) for part in plan.micro_batches] == [2, 1]
    names = ("graph_object_role_edit", "graph_object_role_edit_stability", "role_edit_follow", "role_edit_specificity")
    assert {plan.counts[name] for name in names} == {3}
    assert plan.counts["role_edit_scope"] == sum(int((b["role_edit_learned.context_EN"] >= 0).sum()) for b in batches)
    assert plan.counts["graph_object_aux"] == sum(int(b["slot_readable"].sum()) for b in batches)


def test_steps_go_through_the_generated_set_without_repeating(treebank):
    task = small_task(treebank, *EVERYTHING)
    seen = [n for step in range(5) for part in task.plan(step).micro_batches for n in part.role_edits.tolist()]
    assert seen == list(range(15))
    other = small_task(treebank, *EVERYTHING, "run.seed=8")
    name = "role_edit_graph.tokens_RL"
    first, second = (each.fetch(each.plan(0).micro_batches[0])[name] for each in (task, other))
    assert first.shape != second.shape or not torch.equal(first, second)


@pytest.mark.parametrize("mode", ["graph", "learned", "everything"])
def test_exactly_what_role_edits_reach_is_trained(treebank, mode):
    settings = {
        "graph": (*GRAPH, *GRAPH_LOSSES[1:], "batch.sentences=0", "model.max_seq_len=256"),
        "learned": (*LEARNED, *LEARNED_LOSSES),
        "everything": EVERYTHING,
    }[mode]
    task, model = ready(treebank, *settings)
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    found = task.loss_sums(model, task.fetch(task.plan(0).micro_batches[0]))
    torch.stack(list(found.values())).sum().backward()
    assert {name for name, parameter in model.named_parameters() if parameter.grad is not None} == trained


def test_a_micro_batch_without_role_edits_reaches_the_same_parameters(treebank):
    task, model = ready(treebank, *EVERYTHING)
    part = dataclasses.replace(task.plan(0).micro_batches[0], role_edits=np.zeros(0, dtype=np.int64))
    found = task.loss_sums(model, task.fetch(part))
    assert all(found[name].item() == 0 for name in found if "role_edit" in name)
    torch.stack(list(found.values())).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters() if parameter.requires_grad)


def test_with_closed_gates_edits_have_no_effect_and_following_costs_twice_the_margin(treebank):
    task = small_task(treebank, *EVERYTHING, WIDE)
    found = losses(task, task.build_model().eval())
    assert found["graph_object_role_edit"] == pytest.approx(3 * 2 * 50.0, rel=1e-5)
    assert found["role_edit_follow"] == pytest.approx(3 * 2 * 50.0, rel=1e-5)
    for name in ("graph_object_role_edit_untyped_null", "graph_object_role_edit_random_null", "role_edit_specificity"):
        assert found[name] == pytest.approx(0, abs=1e-4)
    assert found["role_edit_scope"] == 0


def test_untyped_graphs_hide_the_edit_and_random_ones_do_not(treebank):
    found = losses(*ready(treebank, *EVERYTHING))
    assert found["graph_object_role_edit_untyped_null"] == pytest.approx(0, abs=1e-4)
    assert found["graph_object_role_edit_random_null"] > 1e-3


@pytest.mark.parametrize("intervention", ["untyped", "random"])
def test_what_must_follow_is_read_from_the_object_as_the_recipe_has_it(treebank, intervention):
    found = losses(*ready(treebank, *EVERYTHING, WIDE, f"model.graph_object_memory.intervention='{intervention}'"))
    typed = losses(*ready(treebank, *EVERYTHING, WIDE))
    assert found["graph_object_role_edit"] != pytest.approx(typed["graph_object_role_edit"])
    if intervention == "untyped":
        assert found["graph_object_role_edit"] == pytest.approx(3 * 2 * 50.0, rel=1e-5)


def test_edits_of_the_object_are_scored_with_the_learned_memory_off(treebank):
    task, model = ready(treebank, *EVERYTHING)
    before = losses(task, model)
    with torch.no_grad():
        model.predicate_memory.gate.fill_(-0.4)
    after = losses(task, model)
    graph = {name for name in before if name.startswith("graph_object_role_edit")}
    assert {name for name in before if after[name] == before[name]} >= graph
    assert after["role_edit_follow"] != before["role_edit_follow"]


def test_edits_through_the_learned_memory_do_not_read_the_object(treebank):
    task, model = ready(treebank, *EVERYTHING)
    before = losses(task, model)
    with torch.no_grad():
        model.graph_object_memory.gate.fill_(-0.4)
    after = losses(task, model)
    learned = ("role_edit_follow", "role_edit_specificity", "role_edit_scope")
    assert all(after[name] == before[name] for name in learned)
    assert after["graph_object_role_edit"] != before["graph_object_role_edit"]


def test_the_size_and_the_scope_of_the_bias_reach_the_model(treebank):
    def follow(*settings):
        return losses(*ready(treebank, *EVERYTHING, *settings))["role_edit_follow"]

    off = follow("objective.role_edit.bias_value=0.0", WIDE)
    assert off == pytest.approx(3 * 2 * 50.0, rel=1e-5)
    small, large = (follow(f"objective.role_edit.bias_value={size}") for size in (1.0, 6.0))
    assert small != pytest.approx(large)
    legacy, role_only = (follow(f"objective.role_edit.override_scope='{s}'") for s in ("legacy", "role_only"))
    assert legacy != pytest.approx(role_only)


def test_movement_within_the_tolerance_costs_nothing(treebank):
    def scope(tolerance):
        found = losses(*ready(treebank, *EVERYTHING, f"objective.role_edit.scope_tolerance={tolerance}"))
        return found["role_edit_scope"]

    assert scope(0.0) > 0
    assert scope(0.0) > scope(1e-3) > scope(100.0) == 0


def test_specificity_is_the_movement_under_an_edit_of_the_other_predicate(treebank):
    task, model = ready(treebank, *EVERYTHING)
    found = losses(task, model)["role_edit_specificity"]
    recipe = small_recipe(treebank, *EVERYTHING)
    edits = training_role_edits(treebank, "generated", recipe.run.seed, 256)
    expected = 0.0
    for number in range(3):
        odds = []
        for graph in ("original", "placebo"):
            given = [edits[number]], [Reading("probe", graph)]
            packed, places = pack_probes(*given)
            override = core_overrides(*given, places, packed.tokens_RL.shape[1], recipe.objective.role_edit)
            with torch.no_grad():
                states = model(packed.tokens_RL, memory=MemoryInput(override=override)).states_BLD
                odds.append(packed.odds(states, model.output_weight).item())
        expected += abs(odds[1] - odds[0])
    assert found == pytest.approx(expected, rel=1e-2)


def test_parameters_outside_the_object_are_bit_equal_after_training_it_alone(treebank):
    settings = (*EVERYTHING, "model.graph_object_memory.train_alone=true")
    task, recipe = small_task(treebank, *settings), small_recipe(treebank, *settings)
    model = open_gates(task.build_model())
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    step = TrainingStep(task, model, recipe, CPU, ALONE, choose_precision("fp32", CPU, force=False))
    for number in range(3):
        plan = task.plan(number)
        sums = step.accumulate(plan, [task.fetch(part) for part in plan.micro_batches], step=number)
        step.update(sums[0], 0.01, number)
    changed = {name for name, parameter in model.named_parameters() if not torch.equal(parameter, before[name])}
    assert changed == {name for name in before if name.startswith(GRAPH_OBJECT_PREFIX)}


def test_an_evaluation_measures_each_arm_on_held_out_edits(treebank):
    task, model = ready(treebank, *GRAPH, *GRAPH_LOSSES[1:], "objective.lm=1.0")
    found = task.evaluate(model, context())
    assert found["role_edit_direction_untyped"] == 0.5
    names = ("direction", "flip_rate", "stability", "direction_random")
    assert {f"role_edit_{name}" for name in names} <= set(found)
    assert 0 <= found["role_edit_direction"] <= 1


def test_edits_of_a_treebank_come_from_its_own_sentences(treebank):
    edits = training_role_edits(treebank, "treebank", 7, 256)
    # Four sentences with two predicates each, asked for either role.
    assert edits.n_examples == 4 * 2 * 2
    found = {edits.read(number).context.forms for number in range(16)}
    assert found == {two_events(first).forms for first in range(4)}
    assert held_out_role_edits(treebank, "treebank", "val", 256).n_examples == 1 * 2 * 2
    with pytest.raises(RecipeError, match=r"none of its 94 .* make a role edit of at most 5 tokens"):
        training_role_edits(treebank, "treebank", 7, 5)


def test_a_run_on_treebank_edits_sees_each_once_in_an_epoch(treebank):
    settings = ("objective.role_edit.source='treebank'", "objective.role_edit.batch_size=8")
    task = small_task(treebank, *EVERYTHING, *settings)
    seen = [n for step in range(2) for part in task.plan(step).micro_batches for n in part.role_edits.tolist()]
    assert sorted(seen) == list(range(16)) and seen != list(range(16))


def test_generated_edits_too_long_for_the_model_are_refused_with_the_numbers(treebank):
    settings = (*EVERYTHING, "model.max_seq_len=20", "batch.max_sentence_len=20")
    with pytest.raises(RecipeError, match=r"role edits may take \d+ tokens; the model takes 20"):
        small_task(treebank, *settings).check()


def test_each_micro_batch_of_the_worst_step_has_the_largest_share_of_the_longest_role_edits(treebank):
    settings = ("objective.role_edit.batch_size=7", "batch.sentences=6", "batch.micro_batch_size=4")
    task = small_task(treebank, *EVERYTHING, *settings)

    def cells(part):
        batch = task.fetch(part)
        return batch["role_edit_graph.tokens_RL"].numel(), batch["role_edit_learned.tokens_RL"].numel()

    worst = task.worst_step().micro_batches
    assert [len(part.role_edits) for part in worst] == [3] * len(worst)
    most = np.max([cells(part) for step in range(12) for part in task.plan(step).micro_batches], axis=0)
    assert all((cells(part) >= most).all() for part in worst)


def test_a_metric_of_role_edits_needs_some_that_are_held_out(tmp_path):
    inputs = [tmp_path / "x-train.conllu", tmp_path / "x-dev.conllu"]
    for path, sentences in zip(
        inputs, ([two_events(first) for first in range(6)] * 8, [role_edit_text(3, 1)]), strict=True
    ):
        path.write_text("".join(write_conllu(sentences, roles=True)))
    prepare_corpus(inputs, tmp_path / "corpus", PreparationSettings(vocab_size=300, workers=1, backend="tokenizers"))
    corpus = open_corpus(tmp_path / "corpus")
    settings = ("objective.role_edit.source='treebank'", "batch.sentences=2", "evaluation.every=3")
    small_task(corpus, *EVERYTHING, *settings).check()
    with pytest.raises(RecipeError, match=r"none of the 1 annotated validation sentences .* makes a role edit"):
        small_task(corpus, *EVERYTHING, *settings, "evaluation.metric='role_edit_direction'").check()
