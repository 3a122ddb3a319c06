"""XPOS, features and lemmas: learned by heads of their own, left out where there are none, written by a prediction."""

import dataclasses
import json
import shutil

import pytest
import torch

from strata_core.corpus.treebanks.conllu import read_conllu
from strata_core.corpus.treebanks.lemma_rules import rule_of
from strata_core.errors import RecipeError
from strata_core.inference.evaluation import evaluate_trained
from strata_core.inference.prediction import predict_file
from strata_core.launch.starting import resume_run, train
from strata_core.memory_fit.prediction import predict_memory
from strata_core.models.structured_language_model import StructuredConfig
from strata_core.observer import Observer
from strata_core.tasks.sentence_structure.task import StructuredTask
from strata_core.training.checkpoint import load_checkpoint
from tests.strata_core.tasks.sentence_structure.treebank_corpus import (
    ALL_WEIGHTS,
    WORD_LABEL_WEIGHTS,
    make_corpus,
    small_recipe,
    small_task,
    tagged,
)

NOTHING = ("objective.lm=0.0", "batch.sentences=12")
PARSER = (*ALL_WEIGHTS[:3], *WORD_LABEL_WEIGHTS, *NOTHING)
LEAVE_OUT = "objective.unannotated='leave_out'"
CHECKPOINTS = ("checkpoint.every=30", "checkpoint.keep_last=9", "evaluation.every=30", "evaluation.metric='lemmas'")


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    return make_corpus(tmp_path_factory.mktemp("tagged"), change=tagged)


@pytest.fixture(scope="module")
def untagged(tmp_path_factory):
    return make_corpus(tmp_path_factory.mktemp("untagged"), roles=False)


@pytest.fixture(scope="module")
def run(treebank, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "tagged"
    train(small_recipe(treebank, *PARSER, *CHECKPOINTS, "run.max_steps=60"), folder, device="cpu")
    return folder


def weights(run, step):
    return load_checkpoint(run / "checkpoints" / f"step-{step:08d}").model


def test_each_kind_has_a_head_as_wide_as_its_labels_where_it_is_learned(treebank):
    labels = treebank.structure("train").labels
    model = small_task(treebank, *PARSER).build_model()
    sizes = {kind: head[1].out_features for kind, head in model.heads.word_labels.items()}
    assert sizes == {kind: len(labels.names(kind)) for kind in ("xpos", "feats", "lemma_rule")}
    assert all(parameter.requires_grad for parameter in model.heads.word_labels.parameters())
    assert not list(small_task(treebank, *ALL_WEIGHTS).build_model().heads.word_labels.parameters())


def test_weights_of_zero_change_nothing_in_the_config_or_the_first_weights(treebank):
    with_none, with_all = small_task(treebank, *ALL_WEIGHTS), small_task(treebank, *ALL_WEIGHTS, *WORD_LABEL_WEIGHTS)
    config = with_none.config()
    assert not [name for name in config["model"]["heads"] if name in ("n_xpos", "n_feats", "n_lemma_rules")]
    assert set(config["labels"]) == {"upos", "relation", "role"}
    assert StructuredConfig.from_dict(config["model"]).heads.n_word_labels == {}
    one, other = (dict(task.build_model().named_parameters()) for task in (with_none, with_all))
    assert all(torch.equal(value, other[name]) for name, value in one.items())
    assert {name.split(".")[2] for name in other.keys() - one.keys()} == {"xpos", "feats", "lemma_rule"}


def test_a_step_counts_the_labels_of_its_words(treebank):
    task = small_task(treebank, *PARSER)
    plan = task.plan(0)
    (part,) = plan.micro_batches
    batch = task.fetch(part)
    for kind, loss in {"xpos": "ud_xpos", "feats": "ud_feats", "lemma_rule": "ud_lemma"}.items():
        assert plan.counts[loss] == int((batch[kind] >= 0).sum()) == int(batch["real"].sum())
    numbers = part.sentences.numbers.tolist()
    first = treebank.structure("train").sentence(numbers[0])
    names = treebank.structure("train").labels.names("lemma_rule")
    rules = [names[number] for number in batch["lemma_rule"][0, : len(first.forms)].tolist()]
    assert rules == [rule_of(form, lemma) for form, lemma in zip(first.forms, first.lemmas, strict=True)]


def test_what_it_learns_is_measured_and_can_choose_the_best_checkpoint(run):
    report = evaluate_trained(run, device="cpu").to_json(confusion=True)["metrics"]
    assert report["lemmas"] > 0.8 and report["xpos"] > 0.8 and report["ufeats"] > 0.8
    assert report["alltags"] <= min(report["upos"], report["xpos"], report["ufeats"])
    assert {"xpos", "ufeats"} <= report["majority"].keys() and {"xpos", "feats"} <= report["confusion"].keys()
    best = [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]
    assert max(record["lemmas"] for record in best) == report["lemmas"]


def test_a_run_with_these_heads_resumes_to_the_bit_and_scores_the_same_alone(run, treebank, tmp_path):
    shutil.copytree(run, tmp_path / "again", symlinks=True)
    resume_run(tmp_path / "again", start_from="30", device="cpu")
    one, other = weights(run, 60), weights(tmp_path / "again", 60)
    assert one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())
    shutil.copytree(run / "checkpoints" / "step-00000060", tmp_path / "lone")
    lone = evaluate_trained(tmp_path / "lone", corpus=treebank.path, device="cpu").metrics
    inside = evaluate_trained(run, choose="60", device="cpu").metrics
    for name in ("xpos", "ufeats", "alltags", "lemmas"):
        assert lone[name] == pytest.approx(inside[name], rel=1e-5), name


def test_the_columns_of_a_prediction_score_as_the_evaluation_says(run, treebank, tmp_path):
    gold = [line.split("\t") for line in (treebank.path.parent / "in" / "x-dev.conllu").read_text().splitlines()[1:]]
    words = [cells if len(cells) < 10 else [*cells[:2], *"_____", *"___"] for cells in gold]
    (tmp_path / "x.conllu").write_text("".join("\t".join(cells[:10]) + "\n" for cells in words))
    text = predict_file(run, str(tmp_path / "x.conllu"), device="cpu").decode()
    found = [line.split("\t") for line in text.splitlines() if "\t" in line]
    gold = [cells for cells in gold if len(cells) > 1]
    scores = evaluate_trained(run, device="cpu").metrics
    for column, name in {2: "lemmas", 3: "upos", 4: "xpos", 5: "ufeats"}.items():
        right = [cells[column] == wanted[column] for cells, wanted in zip(found, gold, strict=True)]
        assert scores[name] == pytest.approx(sum(right) / len(right)), name
    right = [cells[3:6] == wanted[3:6] for cells, wanted in zip(found, gold, strict=True)]
    assert scores["alltags"] == pytest.approx(sum(right) / len(right))


def test_a_prediction_fills_what_the_model_learned(run, tmp_path):
    (tmp_path / "x.txt").write_text("The dogs\n")
    text = predict_file(run, str(tmp_path / "x.txt"), device="cpu")
    rows = [line.split("\t") for line in text.decode().splitlines() if "\t" in line]
    assert len(rows) == 2 and all("_" not in (cells[2], cells[4]) for cells in rows)
    assert {cells[5] for cells in rows} <= {"_", "Number=Plur"}


def test_a_file_whose_words_have_lemmas_and_features_keeps_them(run, treebank, tmp_path):
    text = (treebank.path.parent / "in" / "x-dev.conllu").read_text().replace("\tNumber=Plur\t", "\tMade=Up\t")
    (tmp_path / "x.conllu").write_text(text)
    found = predict_file(run, str(tmp_path / "x.conllu"), device="cpu").decode()
    columns = [line.split("\t")[2:6:3] for line in text.splitlines() if "\t" in line]
    assert [line.split("\t")[2:6:3] for line in found.splitlines() if "\t" in line] == columns


def test_windows_of_a_long_sentence_are_joined_with_their_lemmas(run, tmp_path):
    (tmp_path / "x.tok").write_text("dogs " * 300 + "\n")
    text = predict_file(run, str(tmp_path / "x.tok"), device="cpu")
    (sentence,) = read_conllu(text.splitlines(keepends=True), file="out", report=lambda finding: None)
    assert len(sentence.lemmas) == len(sentence.xpos) == 300 and None not in sentence.lemmas


def test_what_a_treebank_lacks_is_left_out_and_said_to_be_or_refused(untagged):
    task = small_task(untagged, *PARSER, *ALL_WEIGHTS[3:5], LEAVE_OUT)
    task.check()
    assert set(task.loss_weights) == {"ud_arc", "ud_relation", "node_type"}
    told = task.facts()["not learned"]
    for part in (
        "ud_lemma (no sentence has a lemma)",
        "ud_feats (no sentence has features)",
        "srl_predicate",
        "ud_xpos",
    ):
        assert part in told
    with pytest.raises(RecipeError, match=r"ud_xpos has weight 0.3, but 0 of the .* words .* have an XPOS"):
        small_task(untagged, *PARSER).check()


def test_nothing_left_to_learn_or_to_choose_by_is_refused(untagged):
    with pytest.raises(RecipeError, match=r"nothing is left to learn: no sentence in the training split of .* a lemma"):
        small_task(untagged, WORD_LABEL_WEIGHTS[2], LEAVE_OUT, *NOTHING)
    chosen = "evaluation.every=5", "evaluation.metric='ufeats'"
    with pytest.raises(RecipeError, match=r"metric is 'ufeats', but no .* has features, so that objective.ud.feats is"):
        small_task(untagged, *PARSER, LEAVE_OUT, *chosen)


def test_features_of_a_file_with_a_sentence_that_has_none(tmp_path):
    """A sentence whose words all have `_` says of them that they have no features where another has some."""

    def change(sentence):
        return dataclasses.replace(tagged(sentence), lemmas=None, xpos=None)

    reader = make_corpus(tmp_path, change=change, train=20).structure("train")
    found = [set(reader.arrays(number).word_labels["feats"].tolist()) for number in range(len(reader))]
    assert any(len(labels) == 1 for labels in found) and all(-1 not in labels for labels in found)


def test_its_memory_is_predicted_without_values(treebank):
    recipe = small_recipe(treebank, *PARSER)
    plan = predict_memory(
        lambda changed: StructuredTask(changed, treebank), recipe, device_type="cpu", device_memory_bytes=1 << 40
    )
    model = small_task(treebank, *PARSER).build_model()
    assert plan.fits and plan.parts["weights"] == sum(parameter.nbytes for parameter in model.parameters())


class Notices(Observer):
    """Keeps the notices."""

    def __init__(self):
        self.texts = []

    def notice(self, text):
        self.texts.append(text)


def test_a_warm_start_from_a_parser_without_these_heads_names_each(treebank, tmp_path):
    short = *NOTHING, *ALL_WEIGHTS[:3], "run.max_steps=3"
    train(small_recipe(treebank, *short), tmp_path / "before", device="cpu")
    notices, start = Notices(), f"run.warm_start={str(tmp_path / 'before')!r}"
    train(small_recipe(treebank, *short, *WORD_LABEL_WEIGHTS, start), tmp_path / "run", device="cpu", observer=notices)
    told = "\n".join(notices.texts)
    for kind in ("xpos", "feats", "lemma_rule"):
        assert f"heads.word_labels.{kind} is not in it: starts from its initial weights" in told
    assert "heads is" not in told
