"""Evaluation of a trained model on a split: the figures, which corpora it takes, and what it says of others."""

import json
import math
import shutil

import numpy as np
import pytest
import torch

from strata_core.corpus.format import CorpusInfo
from strata_core.errors import UsageError
from strata_core.inference.evaluation import evaluate_trained
from strata_core.launch.starting import train
from tests.strata_core.conftest import TINY, made_up_documents, write_byte_corpus
from tests.strata_core.tasks.language_model.numpy_language_model import NumpyLanguageModel
from tests.strata_core.tasks.sentence_structure.treebank_corpus import ALL_WEIGHTS, make_corpus, small_recipe

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def run(byte_corpus, tmp_path_factory):
    from strata_core.recipes import load_recipe

    folder = tmp_path_factory.mktemp("evaluated")
    (folder / "tiny.toml").write_text(f"[corpus]\npath = {str(byte_corpus)!r}\n")
    recipe = load_recipe(folder / "tiny.toml", "lm", [*TINY, "evaluation.every=4", "evaluation.batches=1"])
    train(recipe, folder / "run", device="cpu")
    return folder / "run"


@pytest.fixture(scope="module")
def structured_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("structured")
    corpus = make_corpus(folder)
    train(small_recipe(corpus, *ALL_WEIGHTS), folder / "run", device="cpu")
    return folder / "run"


@pytest.mark.parametrize("split", ["val", "train"])
def test_a_language_model_scores_what_an_independent_model_scores(run, byte_corpus, split):
    report = evaluate_trained(run, choose="latest", split=split, device="cpu")
    info = CorpusInfo.read(byte_corpus).splits[split]
    shards = [np.fromfile(byte_corpus / f"{shard.name}.bin", dtype="<u2") for shard in info.shards]
    tokens = np.concatenate(shards).astype(np.int64)
    model = NumpyLanguageModel((run / "checkpoints" / "latest").resolve())
    windows = [tokens[start : start + 33] for start in range(0, len(tokens) - 1, 32)]
    loss = sum(model.nats(window[:-1], window[1:]) for window in windows) / (len(tokens) - 1)
    bits_per_byte = loss / math.log(2) * len(tokens) / info.bytes
    assert report.metrics["loss"] == pytest.approx(loss, rel=1e-6)
    assert report.metrics["bits_per_byte"] == pytest.approx(bits_per_byte, rel=1e-6)
    assert report.metrics["tokens"] == info.tokens - 1
    assert (report.metrics["bytes"], report.metrics["documents"]) == (info.bytes, info.documents)


def test_a_report_says_what_was_evaluated_on_what(run, byte_corpus):
    told = evaluate_trained(run, device="cpu").to_json()
    assert {"path", "checkpoint", "step", "corpus", "split", "metrics"} <= told.keys()
    assert (told["path"], told["split"], told["kind"], told["device"]) == (str(run), "val", "lm", "cpu")
    manifest = json.loads((run / "manifest.json").read_text())
    assert told["corpus_digest"] == manifest["record"]["corpus_digest"]
    assert told["checkpoint"].endswith(f"step-{told['step']:08d}")
    assert json.loads(json.dumps(told)) == told


def test_a_checkpoint_without_its_run_scores_the_same(run, byte_corpus, tmp_path):
    shutil.copytree(run / "checkpoints" / "step-00000012", tmp_path / "lone")
    with pytest.raises(UsageError) as caught:
        evaluate_trained(tmp_path / "lone", device="cpu")
    assert caught.value.hint == "name one with --corpus"
    lone = evaluate_trained(tmp_path / "lone", corpus=byte_corpus, device="cpu")
    assert lone.metrics["loss"] == pytest.approx(evaluate_trained(run, choose="12", device="cpu").metrics["loss"])


def test_a_structured_checkpoint_without_its_run_scores_the_same(structured_run, tmp_path):
    shutil.copytree(structured_run / "checkpoints" / "step-00000012", tmp_path / "lone")
    corpus = structured_run.parent / "corpus"
    lone = evaluate_trained(tmp_path / "lone", corpus=corpus, device="cpu").metrics
    inside = evaluate_trained(structured_run, device="cpu").metrics
    for name in ("uas", "las", "upos", "predicate_f1", "role_f1", "chart"):
        assert lone[name] == pytest.approx(inside[name], rel=1e-5), name


def test_the_confusion_table_is_there_on_request(structured_run):
    report = evaluate_trained(structured_run, device="cpu")
    assert "confusion" not in report.to_json()["metrics"]
    assert report.to_json(confusion=True)["metrics"]["confusion"]


def test_an_unknown_or_empty_split_is_refused_with_those_there_are(run, tmp_path):
    with pytest.raises(UsageError) as caught:
        evaluate_trained(run, split="dev", device="cpu")
    assert caught.value.hint == "it has train, val"
    empty = write_byte_corpus(tmp_path / "empty", {"train": made_up_documents(3, seed=1)})
    with pytest.raises(UsageError, match=r"'val' of .* is empty"):
        evaluate_trained(run, corpus=empty, device="cpu")


def test_a_corpus_named_by_hand_may_be_another_one_of_the_same_tokens(run, tmp_path):
    other = write_byte_corpus(tmp_path / "other", {"train": [], "val": made_up_documents(3, seed=9)})
    assert evaluate_trained(run, corpus=other, device="cpu").corpus == str(other)


def test_a_corpus_that_changed_since_training_is_not_taken_silently(byte_corpus, tmp_path):
    from strata_core.recipes import load_recipe

    documents = {"train": made_up_documents(24, seed=1), "val": made_up_documents(3, seed=2)}
    corpus = write_byte_corpus(tmp_path / "corpus", documents)
    (tmp_path / "tiny.toml").write_text(f"[corpus]\npath = {str(corpus)!r}\n")
    train(load_recipe(tmp_path / "tiny.toml", "lm", [*TINY, "run.max_steps=3"]), tmp_path / "run", device="cpu")
    shutil.rmtree(corpus)
    write_byte_corpus(corpus, documents | {"val": made_up_documents(4, seed=2)})
    with pytest.raises(UsageError, match="was trained on"):
        evaluate_trained(tmp_path / "run", device="cpu")
    assert evaluate_trained(tmp_path / "run", corpus=corpus, device="cpu").step == 3


def test_another_tokenizer_is_refused_with_both_sizes(run, structured_run):
    with pytest.raises(UsageError) as caught:
        evaluate_trained(run, corpus=structured_run.parent / "corpus", device="cpu")
    entries = json.loads((structured_run.parent / "corpus" / "tokenizer.json").read_text())["model"]["vocab"]
    assert f"{len(entries):,} entries" in caught.value.message


def test_another_vocabulary_is_refused_with_both_numbers(run, byte_corpus, tmp_path):
    shutil.copytree(byte_corpus, tmp_path / "larger")
    text = (tmp_path / "larger" / "corpus.json").read_text()
    (tmp_path / "larger" / "corpus.json").write_text(text.replace('"vocab_size": 257', '"vocab_size": 300'))
    with pytest.raises(UsageError) as caught:
        evaluate_trained(run, corpus=tmp_path / "larger", device="cpu")
    assert caught.value.problems == ("model.vocab_size: 300 here, 257 in the checkpoint",)


def test_other_label_sets_are_refused_with_the_numbers(structured_run, tmp_path):
    corpus = structured_run.parent / "corpus"
    shutil.copytree(corpus, tmp_path / "other")
    for name in ("corpus.json", "structure/labels.json"):
        text = (tmp_path / "other" / name).read_text()
        (tmp_path / "other" / name).write_text(text.replace('"NOUN"', '"N"'))
    with pytest.raises(UsageError) as caught:
        evaluate_trained(structured_run, corpus=tmp_path / "other", device="cpu")
    count = len(json.loads((corpus / "structure" / "labels.json").read_text())["labels"]["upos"])
    assert caught.value.problems == (
        f"labels.upos: {count} here, {count} in the checkpoint; only the corpus has N; only the checkpoint has NOUN",
    )
