"""The structured task: one global batch however it is cut, frozen what nothing reaches, data refused with numbers."""

import dataclasses
import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from strata_core.corpus.preparing.preparation import prepare_corpus
from strata_core.corpus.preparing.settings import PreparationSettings
from strata_core.corpus.reading import open_corpus
from strata_core.errors import RecipeError
from strata_core.memory_fit.prediction import predict_memory
from strata_core.tasks.sentence_structure.sentence_batches import SentenceBatches
from strata_core.tasks.sentence_structure.sentence_tensors import words_of
from strata_core.tasks.sentence_structure.task import StructuredTask
from strata_core.training.distributed import ALONE
from strata_core.training.precision import choose_precision
from strata_core.training.step import TrainingStep
from strata_core.training.task import EvaluationContext
from tests.strata_core.tasks.sentence_structure.treebank_corpus import (
    ALL_WEIGHTS,
    make_corpus,
    small_recipe,
    small_task,
)

CPU = torch.device("cpu")
NOTHING = ("objective.lm=0", "batch.sentences=12")
MEMORY = "model.predicate_memory.enabled=true"
SEGMENTATION = (
    "objective.segmentation=0.5",
    "batch.segments=4",
    "batch.segment_len=48",
    "model.segmenter.width=8",
    "model.segmenter.n_layers=2",
    "model.segmenter.buckets=64",
    "model.segmenter.dropout=0",
    "model.segmenter.feature_dropout=0",
)
MODES = {
    "ud": ALL_WEIGHTS[:3],
    "srl": ALL_WEIGHTS[3:6],
    "chart": ALL_WEIGHTS[6:],
    "reductions": (*ALL_WEIGHTS[6:], "objective.chart.scheme='reduce-count'"),
    "all": (*ALL_WEIGHTS, MEMORY),
    "sentences alone": (*ALL_WEIGHTS, "batch.sentences=12"),
    "parser": (*ALL_WEIGHTS, *NOTHING),
    "core roles alone": ("objective.srl.core_role=1.0", *NOTHING),
    "untied": (*ALL_WEIGHTS[:3], "model.tie_embeddings=false"),
    "causal heads": (*ALL_WEIGHTS, "model.heads.reads='causal'"),
    "no structure": (MEMORY,),
    "memory and text": (MEMORY, "batch.sentences=0"),
    "segmentation": (*ALL_WEIGHTS[:3], *SEGMENTATION, *NOTHING),
    "segmentation and text": (*SEGMENTATION, "batch.sentences=0"),
}


@pytest.fixture(scope="session")
def treebank(tmp_path_factory):
    return make_corpus(tmp_path_factory.mktemp("treebank"))


@pytest.fixture(scope="session")
def treebank_without_roles(tmp_path_factory):
    return make_corpus(tmp_path_factory.mktemp("treebank"), roles=False)


def context(limit=None):
    return EvaluationContext(
        device=CPU,
        ranks=ALONE,
        autocast=choose_precision("fp32", CPU, force=False).autocast(CPU),
        stop_requested=lambda: False,
        progress=lambda done, total: None,
    )


def open_gates(model):
    """So that a wrong mask or a lost memory shows."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("gate"):
                parameter.fill_(0.7)
    return model


def gradients(corpus, *settings, place=0, dtype=torch.float64):
    task = small_task(corpus, *settings)
    recipe = small_recipe(corpus, *settings)
    model = open_gates(task.build_model()).to(dtype)
    step = TrainingStep(task, model, recipe, CPU, ALONE, choose_precision("fp32", CPU, force=False))
    plan = task.plan(place)
    step.accumulate(plan, [task.fetch(part) for part in plan.micro_batches], step=place)
    return {name: parameter.grad for name, parameter in step.parameters.items()}


@pytest.mark.parametrize("micro_batch_size", [6, 3])
@pytest.mark.parametrize("mode", ["all", "reductions", "parser", "segmentation"])
def test_gradients_do_not_depend_on_how_the_batch_is_cut(treebank, mode, micro_batch_size):
    whole = gradients(treebank, *MODES[mode])
    cut = gradients(treebank, *MODES[mode], f"batch.micro_batch_size={micro_batch_size}")
    assert whole.keys() == cut.keys()
    for name, gradient in whole.items():
        torch.testing.assert_close(cut[name], gradient, rtol=0, atol=1e-6, msg=name)
    assert max(gradient.abs().max() for gradient in whole.values()) > 1e-2


def test_a_step_with_fewer_sentences_than_micro_batches_has_the_gradients_of_its_sentences(treebank):
    settings = (*ALL_WEIGHTS, "batch.batch_size=8", "batch.micro_batch_size=8", "batch.sentences=4")
    task = small_task(treebank, *settings, "batch.micro_batch_size=2")
    assert any(not part.sentences.learn for place in range(8) for part in task.plan(place).micro_batches)
    place = next(at for at in range(8) if any(not part.sentences.learn for part in task.plan(at).micro_batches))
    whole = gradients(treebank, *settings, place=place)
    cut = gradients(treebank, *settings, "batch.micro_batch_size=2", place=place)
    for name, gradient in whole.items():
        torch.testing.assert_close(cut[name], gradient, rtol=0, atol=1e-6, msg=name)


@pytest.mark.parametrize("mode", MODES)
def test_exactly_what_an_objective_reaches_is_trained(treebank, mode):
    found = gradients(treebank, *MODES[mode], dtype=torch.float32)
    task = small_task(treebank, *MODES[mode])
    model = task.build_model()
    assert found.keys() == {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert all(gradient is not None for gradient in found.values())
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    losses = task.loss_sums(model, task.fetch(task.plan(0).micro_batches[0]))
    torch.stack(list(losses.values())).sum().backward()
    assert {name for name, parameter in model.named_parameters() if parameter.grad is not None} == found.keys()


def test_a_micro_batch_without_any_predicate_reaches_the_same_parameters(treebank):
    task = small_task(treebank, *ALL_WEIGHTS)
    model = task.build_model()
    part = task.plan(0).micro_batches[0]
    stand_in = dataclasses.replace(part, sentences=part.sentences._replace(learn=False))
    losses = task.loss_sums(model, task.fetch(stand_in))
    assert all(loss.item() == 0 for name, loss in losses.items() if name != "lm")
    torch.stack(list(losses.values())).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters() if parameter.requires_grad)


def test_the_counts_of_a_plan_are_what_its_batches_hold(treebank):
    task = small_task(treebank, *ALL_WEIGHTS, "objective.srl.none_weight=0.25", "batch.micro_batch_size=6")
    plan = task.plan(1)
    batches = [task.fetch(part) for part in plan.micro_batches]

    def count(test):
        return sum(int(test(batch).sum()) for batch in batches)

    assert plan.counts["lm"] == count(lambda b: b["labels"] != -100) + count(lambda b: b["sentence_labels"] != -100)
    assert plan.counts["ud_arc"] == count(lambda b: b["heads"] >= 0)
    assert plan.counts["ud_relation"] == count(lambda b: b["relations"] >= 0)
    assert plan.counts["node_type"] == count(lambda b: b["node_types"] >= 0)
    assert plan.counts["chart_type"] == count(lambda b: b["chart_items"] >= 0)
    assert plan.counts["srl_predicate"] == count(lambda b: b["predicate_labels"] >= 0)
    roles, nones = count(lambda b: b["roles"] > 0), count(lambda b: b["roles"] == 0)
    assert plan.counts["srl_role"] == roles + 0.25 * nones
    core = [treebank.structure("train").labels.number("role", name) + 1 for name in ("ARG0", "ARG1")]
    assert plan.counts["srl_core_role"] == count(lambda b: torch.isin(b["roles"], torch.tensor(core)))
    assert plan.tokens == count(lambda b: b["labels"] != -100) + sum(
        len(treebank.structure("train").arrays(number).tokens)
        for part in plan.micro_batches
        for number in part.sentences.numbers.tolist()
    )
    assert plan.samples == 4 + sum(len(part.sentences.numbers) for part in plan.micro_batches)


def test_the_none_weight_weighs_pairs_without_a_role(treebank):
    """Against a plain weighted cross-entropy of one sentence."""
    task = small_task(treebank, *ALL_WEIGHTS, "objective.srl.none_weight=0.3")
    model = task.build_model().eval()
    batch = task.fetch(task.plan(0).micro_batches[0])
    loss = task.loss_sums(model, batch)["srl_role"]
    scores = model.heads.roles(model.full_pass(words_of(batch)).states_BLD, batch["predicates"])
    expected = 0.0
    for pair, role in zip(scores.flatten(0, 1), batch["roles"].flatten().tolist(), strict=True):
        if role >= 0:
            expected += (0.3 if role == 0 else 1.0) * -F.log_softmax(pair, dim=0)[role].item()
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_a_sentence_longer_than_the_limit_is_left_out_and_counted(treebank):
    tokens = treebank.structure("train").token_counts
    limit = int(np.median(tokens))
    task = small_task(treebank, *ALL_WEIGHTS, f"batch.max_sentence_len={limit}")
    seen = {n for step in range(40) for part in task.plan(step).micro_batches for n in part.sentences.numbers.tolist()}
    assert seen == set(np.flatnonzero(tokens <= limit).tolist())
    assert f"{int((tokens > limit).sum())} left out, longer than {limit} tokens" in task.facts()["annotated"]


@pytest.mark.parametrize("mode", ["all", "parser", "causal heads"])
def test_no_micro_batch_pads_to_more_than_those_of_the_worst_step(treebank, mode):
    task = small_task(treebank, *MODES[mode], "batch.micro_batch_size=6")

    def positions(part):
        batch = task.fetch(part)
        shapes = [batch[name].shape for name in ("sentence_tokens", "heads") if name in batch]
        return [sum(rows * longest**power for rows, longest in shapes) for power in (1, 2)]

    worst = task.worst_step().micro_batches
    assert len(worst) == 2
    most = np.max([positions(part) for step in range(30) for part in task.plan(step).micro_batches], axis=0)
    assert all((most <= positions(part)).all() for part in worst)


def test_sentences_are_as_long_as_what_reads_them_pads(treebank):
    reader = treebank.structure("train")
    assert (reader.token_counts > reader.word_counts).any()
    for mode, size, lengths, unit in (
        ("parser", 12, reader.word_counts, "words"),
        ("causal heads", 8, np.maximum(reader.token_counts, reader.word_counts), "tokens"),
    ):
        task = small_task(treebank, *MODES[mode])
        expected = SentenceBatches(lengths, np.arange(len(reader)), sentences_per_batch=size, seed=7)
        for step in range(12):
            assert task.plan(step).micro_batches[0].sentences.numbers.tolist() == expected.batch(step).tolist()
        assert f"about equally many {unit}" in task.facts()["annotated"]


def test_a_graph_object_that_nothing_reads_is_not_trained(treebank):
    settings = ("model.graph_object_memory.enabled=true", "objective.ud.arc=1")
    for intervention, trained in (("none", False), ("typed", True)):
        model = small_task(
            treebank, *settings, f"model.graph_object_memory.intervention={intervention!r}"
        ).build_model()
        gates = {name: each.requires_grad for name, each in model.named_parameters() if "graph_object" in name}
        assert gates and {wanted for name, wanted in gates.items() if "type_head" not in name} == {trained}


def test_chart_items_need_sentences_with_whole_trees(tmp_path):
    corpus = make_corpus(tmp_path, val=0)
    text = (tmp_path / "in" / "x-train.conllu").read_text()
    lines = [line.split("\t") for line in text.splitlines()]
    broken = ["\t".join([*line[:6], "_", "_", *line[8:]]) if line[0] == "1" else "\t".join(line) for line in lines]
    headless = tmp_path / "headless" / "in" / "x-train.conllu"
    headless.parent.mkdir(parents=True)
    headless.write_text("\n".join(broken) + "\n")
    settings = PreparationSettings(vocab_size=300, workers=1, backend="tokenizers")
    prepare_corpus([headless], tmp_path / "headless" / "corpus", settings)
    small_task(corpus, *MODES["chart"]).check()
    with pytest.raises(RecipeError, match=r"chart_type has weight 0.6, but 0 of the 48 .* head for every word"):
        small_task(open_corpus(tmp_path / "headless" / "corpus"), *MODES["chart"]).check()


@pytest.mark.parametrize("mode", ["all", "parser", "reductions", "segmentation"])
def test_its_memory_is_predicted_without_values(treebank, mode):
    recipe = small_recipe(treebank, *MODES[mode], "evaluation.every=5", "evaluation.metric='structure'")
    plan = predict_memory(
        lambda changed: StructuredTask(changed, treebank), recipe, device_type="cpu", device_memory_bytes=1 << 40
    )
    assert plan.fits
    assert not any("real tensors" in note for note in plan.notes)
    model = small_task(treebank, *MODES[mode]).build_model()
    assert plan.parts["weights"] == sum(parameter.nbytes for parameter in model.parameters())


def test_causal_losses_see_nothing_of_the_trees(treebank):
    """The next-token loss of sentences is the same whatever their heads and roles say."""
    task = small_task(treebank, *ALL_WEIGHTS, MEMORY)
    model = open_gates(task.build_model()).eval()
    batch = task.fetch(task.plan(0).micro_batches[0])
    before = task.loss_sums(model, batch)
    batch["heads"] = batch["heads"].flip(0)
    batch["roles"] = batch["roles"].flip(0)
    after = task.loss_sums(model, batch)
    assert torch.equal(before["lm"], after["lm"])
    assert not torch.equal(before["ud_arc"], after["ud_arc"])


def test_causal_heads_know_nothing_of_a_later_word(treebank):
    task = small_task(treebank, *ALL_WEIGHTS, "model.heads.reads='causal'", MEMORY)
    model = open_gates(task.build_model()).eval()
    batch = task.fetch(task.plan(0).micro_batches[0])
    word = int(batch["real"][0].sum()) - 2
    changed = dict(batch, sentence_tokens=batch["sentence_tokens"].clone())
    changed["sentence_tokens"][0, int(batch["last_token"][0, word]) + 1 :] += 1
    before, after = (task._passes(model, one).words_BWD for one in (batch, changed))
    assert torch.equal(before[0, : word + 1], after[0, : word + 1])
    assert not torch.equal(before[0, word + 1], after[0, word + 1])
    full = small_task(treebank, *ALL_WEIGHTS)
    assert "word_features" in full.fetch(full.plan(0).micro_batches[0]) and "word_features" not in batch


def test_reductions_are_read_off_the_causal_pass_and_eisner_items_off_the_full_one(treebank):
    for scheme, n_items, same in (("reduce-count", 5, True), ("eisner", 12, False)):
        task = small_task(treebank, *ALL_WEIGHTS, f"objective.chart.scheme={scheme!r}")
        model = task.build_model().eval()
        assert model.config.heads.n_chart_items == n_items
        batch = task.fetch(task.plan(0).micro_batches[0])
        changed = dict(batch, word_features=batch["word_features"].flip(0))
        before, after = (task.loss_sums(model, one)["chart_type"] for one in (batch, changed))
        assert torch.equal(before, after) == same


def test_word_dropout_and_head_dropout_reach_the_model(treebank):
    settings = ("model.word_dropout=0.3", "model.heads.dropout=0.2", "model.memory_layer=2")
    model = small_task(treebank, *ALL_WEIGHTS, *settings).build_model()
    assert model.words.word_dropout == 0.3
    assert model.heads.arcs.dependent.dropout.p == 0.2
    assert model.config.memory_layer == 2


def test_widths_and_buckets_reach_the_model(treebank):
    settings = ("model.heads.arc_width=9", "model.heads.relation_width=7", "model.heads.role_width=5")
    model = small_task(treebank, *ALL_WEIGHTS, *settings, "model.word_features.buckets=70").build_model()
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    assert shapes["heads.arcs.score.weight"][-1] == 10
    assert shapes["heads.relations.score.weight"][-1] == 8
    assert shapes["heads.roles.score.weight"][-1] == 6
    assert shapes["words.features.weight"][0] == 70


def test_an_evaluation_measures_what_is_learned_and_nothing_else(treebank):
    model = small_task(treebank, *MODES["all"]).build_model().eval()
    everything = small_task(treebank, *MODES["all"]).evaluate(model, context())
    assert set(everything) == {
        *("loss", "perplexity", "bits_per_byte", "uas", "las", "las_full_relations", "upos", "predicate_f1"),
        *("role_f1", "role_f1_predicted", "chart", "structure"),
    }
    assert set(small_task(treebank, *MODES["ud"]).evaluate(model, context())) == {
        *("loss", "perplexity", "bits_per_byte", "uas", "las", "las_full_relations", "upos", "structure")
    }
    assert set(small_task(treebank, *MODES["parser"]).evaluate(model, context())) >= {"uas", "structure"}


class OtherRank:
    """One of two ranks; sums are kept for the test to add."""

    def __init__(self, rank):
        self.rank, self.world_size, self.is_first, self.sums = rank, 2, rank == 0, []

    def sum(self, tensor):
        self.sums.append(tensor.clone())
        return tensor


def test_two_ranks_count_together_what_one_counts(treebank):
    task = small_task(treebank, *MODES["parser"])
    model = task.build_model().eval()
    kept = []
    for rank in (0, 1):
        ranks = OtherRank(rank)
        task.evaluate(model, dataclasses.replace(context(), ranks=ranks))
        kept.append(ranks.sums[0])

    class Alone(OtherRank):
        world_size = 1

    alone = Alone(0)
    alone.world_size = 1
    task.evaluate(model, dataclasses.replace(context(), ranks=alone))
    assert torch.equal(kept[0] + kept[1], alone.sums[0])


def test_a_report_has_baselines_and_confusions(treebank):
    task = small_task(treebank, *MODES["all"])
    found = task.report(task.build_model().eval(), "val", context())
    json.dumps(found)
    reader = treebank.structure("val")
    arrays = [reader.arrays(number) for number in range(len(reader))]
    left = sum(int((a.heads == np.arange(len(a.heads))).sum()) for a in arrays) / sum(len(a.heads) for a in arrays)
    assert found["majority"]["uas"] == pytest.approx(left)
    assert set(found["confusion"]) == {"relation", "upos", "role", "chart"}
    assert found["confusion"]["upos"][0].keys() == {"gold", "predicted", "times"}


def test_the_config_names_the_labels_in_the_order_of_their_numbers(treebank):
    task = small_task(treebank, *MODES["all"])
    reader = treebank.structure("train")
    config = json.loads(json.dumps(task.config()))
    assert config["labels"] == {kind: list(reader.labels.names(kind)) for kind in ("upos", "relation", "role")}


def test_a_corpus_without_sentences_is_refused(byte_corpus, tiny_recipe):
    recipe = tiny_recipe("batch.sentences=2", "objective.ud.arc=1.0")
    with pytest.raises(RecipeError, match=r"batch.sentences is 2, but .* 'text' and has 0 annotated sentences"):
        StructuredTask(recipe, open_corpus(byte_corpus))


def test_a_treebank_without_roles_is_refused_for_roles(treebank_without_roles):
    small_task(treebank_without_roles, *MODES["ud"]).check()
    with pytest.raises(RecipeError, match=r"srl_predicate has weight 0.5, but 0 of the 48 sentences .* predicates"):
        small_task(treebank_without_roles, *MODES["srl"]).check()


def test_too_few_sentences_for_a_step_are_refused_with_the_numbers(treebank):
    settings = ("batch.batch_size=104", "batch.micro_batch_size=104", "batch.sentences=100")
    with pytest.raises(RecipeError, match=r"48 annotated sentences, 48 of them .* takes batch.sentences 100"):
        small_task(treebank, *ALL_WEIGHTS, *settings).check()


def test_an_evaluation_without_validation_sentences_is_refused(tmp_path):
    corpus = make_corpus(tmp_path, val=0)
    with pytest.raises(RecipeError, match=r"evaluation.every is 3, but .* 0 annotated sentences"):
        small_task(corpus, *MODES["parser"], "evaluation.every=3", "evaluation.metric='uas'").check()
