"""Whole runs that learn to cut text: resumed, evaluated, loaded from a checkpoint alone, and absent where not asked."""

import json
import shutil

import pytest
import torch

from strata_core.errors import DataError, RecipeError
from strata_core.inference.evaluation import evaluate_trained
from strata_core.launch.starting import resume_run, train
from strata_core.replay.proof import replay
from strata_core.tasks.sentence_structure.segmentation.segmenter import load_segmenter, segmenter_of
from strata_core.training.checkpoint import load_checkpoint
from strata_core.training.trained import find_trained
from tests.strata_core.tasks.sentence_structure.test_task import SEGMENTATION
from tests.strata_core.tasks.sentence_structure.treebank_corpus import ALL_WEIGHTS, make_corpus, small_recipe

CPU = torch.device("cpu")
LEARNING = (
    *ALL_WEIGHTS[:3],
    *SEGMENTATION,
    "objective.lm=0",
    "batch.sentences=12",
    "batch.micro_batch_size=6",
    "batch.segment_len=256",
    "model.segmenter.feature_dropout=0.1",
    "model.segmenter.dropout=0.1",
    "model.segmenter.buckets=4096",
    "run.max_steps=40",
    "optimizer.lr=0.02",
    "checkpoint.every=20",
    "checkpoint.keep_last=9",
    "evaluation.every=40",
    "evaluation.metric='words_f1'",
)


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    return make_corpus(tmp_path_factory.mktemp("treebank"))


@pytest.fixture(scope="module")
def run(treebank, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    train(small_recipe(treebank, *LEARNING), folder, device="cpu")
    return folder


def weights(run, step):
    return load_checkpoint(run / "checkpoints" / f"step-{step:08d}").model


def records(run, name):
    lines = [json.loads(line) for line in (run / name).read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "timing"} for line in lines]


def test_cutting_is_learned_and_measured(run):
    losses = [record["loss_segmentation"] for record in records(run, "metrics.jsonl")]
    assert losses[-1] < 0.3 * losses[0]
    found = records(run, "evaluations.jsonl")[-1]
    assert 0.9 < found["tokens_f1"] <= 1 and 0.9 < found["words_f1"] <= 1 and 0.5 < found["sentences_f1"] <= 1


def test_a_resumed_run_ends_bit_equal_and_a_replay_is_equal(run, tmp_path):
    again = tmp_path / "again"
    shutil.copytree(run, again, symlinks=True)
    resume_run(again, start_from="20", device="cpu")
    one, other = weights(run, 40), weights(again, 40)
    assert one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())
    assert records(again, "metrics.jsonl") == records(run, "metrics.jsonl")
    assert replay(run, step=40).equal


def test_a_checkpoint_alone_cuts_texts_and_an_evaluation_scores_it(run, tmp_path):
    alone = tmp_path / "alone"
    shutil.copytree(run / "checkpoints" / "step-00000040", alone)
    segment = load_segmenter(find_trained(alone), CPU)
    text = "The doctor saw a nurse. The nurse smiled."
    (sentences,) = segment([text])
    spelt = [text[token.start : token.end] for sentence in sentences for token in sentence]
    assert "".join(spelt) == text.replace(" ", "")
    report = evaluate_trained(run, device="cpu").metrics
    last = records(run, "evaluations.jsonl")[-1]
    assert all(report[name] == last[name] for name in ("tokens_f1", "sentences_f1", "words_f1"))


def test_a_checkpoint_that_has_not_learned_it_has_no_segmenter(treebank, tmp_path):
    train(small_recipe(treebank, *ALL_WEIGHTS[:3], "run.max_steps=3"), tmp_path / "run", device="cpu")
    trained = find_trained(tmp_path / "run")
    assert load_segmenter(trained, CPU) is None
    assert "segmenter" not in trained.config["model"] and "segmentation" not in trained.config
    assert not any(name.startswith("segmenter.") for name in trained.checkpoint.model)


def test_the_other_losses_of_the_first_step_are_those_of_a_run_without_it(treebank, tmp_path):
    settings = (*ALL_WEIGHTS, "model.dropout=0.1", "run.max_steps=3", "batch.micro_batch_size=6")
    train(small_recipe(treebank, *settings), tmp_path / "without", device="cpu")
    train(small_recipe(treebank, *settings, *SEGMENTATION), tmp_path / "with", device="cpu")
    without, beside = (records(tmp_path / name, "metrics.jsonl")[0] for name in ("without", "with"))
    losses = {name for name in without if name.startswith("loss_")}
    assert losses and all(without[name] == beside[name] for name in losses)


def test_facts_that_are_not_understood_are_refused():
    for facts in (None, {}, {"multiword_tokens": [], "spaces_in_words": "no"}):
        with pytest.raises(DataError, match=r"x/config\.json: segmentation has no"):
            segmenter_of(torch.nn.Module(), facts, "x/config.json")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (("objective.segmentation=1.0",), "batch.segments is 0: no raw text is read"),
        (("batch.segments=4",), "objective.segmentation is 0, so that they serve nothing"),
        (
            ("objective.segmentation=1.0", "batch.segments=3", "batch.micro_batch_size=6"),
            "batch.segments 3 cannot be shared equally by 2 micro-batches",
        ),
        (("evaluation.every=1", "evaluation.metric='sentences_f1'"), "needs objective.segmentation above 0"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(treebank, settings, problem):
    with pytest.raises(RecipeError) as raised:
        small_recipe(treebank, *ALL_WEIGHTS[:3], *settings)
    assert problem in str(raised.value) + " ".join(raised.value.problems)
