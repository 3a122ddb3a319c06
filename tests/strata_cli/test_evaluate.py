"""`strata evaluate` and `strata predict` as a shell sees them."""

import io
import json
import os
import sys

import pytest

from strata_cli import main
from strata_cli.display.evaluation_tables import write_evaluation
from strata_core.launch.starting import train
from strata_core.recipes import load_recipe
from tests.strata_core.conftest import TINY
from tests.strata_core.tasks.sentence_structure.treebank_corpus import ALL_WEIGHTS, make_corpus, small_recipe


@pytest.fixture(scope="module")
def run(byte_corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluated")
    (folder / "tiny.toml").write_text(f"[corpus]\npath = {str(byte_corpus)!r}\n")
    recipe = load_recipe(folder / "tiny.toml", "lm", [*TINY, "run.max_steps=3"])
    train(recipe, folder / "run", device="cpu")
    return str(folder / "run")


@pytest.fixture(scope="module")
def structured_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("structured")
    train(small_recipe(make_corpus(folder, train=24), *ALL_WEIGHTS, "run.max_steps=3"), folder / "run", device="cpu")
    return str(folder / "run")


def test_json_is_one_object_and_everything_else_goes_to_stderr(run, capsys):
    assert main.run(["evaluate", run, "--json", "--device", "cpu"]) == 0
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert {"path", "checkpoint", "step", "corpus", "split", "metrics"} <= told.keys()
    assert (told["step"], told["split"]) == (3, "val")
    assert f"taking the latest checkpoint of {run}" in captured.err
    assert main.run(["evaluate", run, "--json", "--device", "cpu", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_without_a_terminal_figures_are_aligned_lines(run, capsys):
    assert main.run(["evaluate", run, "--split", "train", "--device", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(run) and ", step 3 on train of " in lines[0]
    assert [line.rsplit("  ", 1)[0].strip() for line in lines[1:]] == [
        "loss",
        "perplexity",
        "bits per byte",
        "tokens",
        "bytes",
        "documents",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--split", "dev"], 2, "hint: it has train, val"),
        (["--from", "9"], 2, "hint: it has steps 3"),
        (["--from", "newest"], 2, "--from newest: must be latest, best or the number of a step"),
        (["--from", "newest"], 2, "hint: the folders in checkpoints of the run have the numbers of its steps"),
        (["--from", "best"], 2, "has no checkpoint best"),
        (["--corpus", "absent"], 2, "absent: there is no such corpus"),
        (["--device", "tpu"], 2, "'tpu' is not one of"),
    ],
)
def test_what_cannot_be_evaluated_is_a_usage_error_with_a_hint(run, arguments, code, said, capsys):
    assert main.run(["evaluate", run, *arguments]) == code
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


def test_a_damaged_checkpoint_is_bad_data(byte_corpus, tmp_path, capsys):
    (tmp_path / "tiny.toml").write_text(f"[corpus]\npath = {str(byte_corpus)!r}\n")
    train(load_recipe(tmp_path / "tiny.toml", "lm", [*TINY, "run.max_steps=3"]), tmp_path / "run", device="cpu")
    weights = tmp_path / "run" / "checkpoints" / "latest" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\1")
    assert main.run(["evaluate", str(tmp_path / "run"), "--from", "3", "--device", "cpu"]) == 5
    assert "model.safetensors has SHA-256" in capsys.readouterr().err


def test_a_path_that_is_not_there_is_refused_before_torch_is_loaded(strata, tmp_path):
    (tmp_path / "torch.py").write_text("raise SystemExit('torch was imported')")
    for command in (["evaluate", "absent"], ["predict", "absent", "x.txt"]):
        result = strata(*command)
        assert (result.returncode, result.stdout) == (2, b"")
        assert b"absent: no such file or directory" in result.stderr


def test_nested_figures_become_tables_of_their_own(capsys):
    rows = [{"gold": "NOUN", "predicted": "VERB", "times": 1234}]
    metrics = {
        "loss": 1.5,
        "none": None,
        "by_hops": {"1": {"examples": 3, "f1": 0.5}, "2": {"examples": 4}},
        "confusion": {"upos": rows},
    }
    write_evaluation({"checkpoint": "c", "step": 1000, "split": "val", "corpus": "d", "metrics": metrics})
    assert capsys.readouterr().out.splitlines() == [
        "c, step 1,000 on val of d",
        "loss  1.5000",
        "none  -",
        "",
        "by hops",
        "   examples      f1",
        "1         3  0.5000",
        "2         4",
        "",
        "confusion: upos",
        "gold  predicted  times",
        "NOUN  VERB       1,234",
    ]


def test_tables_without_figures_are_left_out(capsys):
    metrics = {
        "mrr": 0.0,
        "unseen_entities": {"queries": 0},
        "calibration": {},
        "tests": [],
        "confusion": {"upos": [], "role": {}},
        "by_hops": {"1": {}, "2": {"f1": 0.0}},
        "known": {"queries": 0, "mrr": 0.0},
    }
    write_evaluation({"checkpoint": "c", "step": 1, "split": "val", "corpus": "d", "metrics": metrics})
    assert capsys.readouterr().out.splitlines() == [
        "c, step 1 on val of d",
        "mrr  0.0000",
        "",
        "by hops",
        "       f1",
        "2  0.0000",
        "",
        "known",
        "queries  0",
        "mrr      0.0000",
    ]


def test_predictions_are_utf8_on_standard_output_whatever_its_encoding(structured_run, tmp_path, monkeypatch, capsys):
    (tmp_path / "x.txt").write_text("the café barks\n", encoding="utf-8")
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii", errors="backslashreplace"))
    assert main.run(["predict", structured_run, str(tmp_path / "x.txt"), "--device", "cpu"]) == 0
    assert "2\tcafé\t" in written.getvalue().decode("utf-8")
    assert written.getvalue().endswith(b"\n\n")
    assert "annotating: done, 3 words" in capsys.readouterr().err


def test_a_prediction_goes_to_a_new_file_and_nowhere_else(structured_run, tmp_path, capsys):
    (tmp_path / "x.txt").write_text("the dog barks\n")
    out = tmp_path / "out.conllu"
    arguments = ["predict", structured_run, str(tmp_path / "x.txt"), "--out", str(out), "--device", "cpu"]
    assert main.run(arguments) == 0
    assert capsys.readouterr().out == ""
    before = out.read_bytes()
    assert before.startswith(b"# newdoc")
    assert main.run(arguments) == 6
    assert out.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["out.conllu", "x.txt"]
    assert main.run([*arguments[:4], str(out.with_suffix(".conllup")), "--device", "cpu"]) == 0
    assert out.with_suffix(".conllup").read_bytes().startswith(b"# global.columns = ID FORM")
    assert main.run([*arguments[:4], str(tmp_path / "no" / "out")]) == 2


def test_a_file_without_sentences_makes_an_empty_one(structured_run, tmp_path, capsys):
    (tmp_path / "x.txt").write_text("\n \n")
    out = tmp_path / "out.conllu"
    assert main.run(["predict", structured_run, str(tmp_path / "x.txt"), "--out", str(out), "--device", "cpu"]) == 0
    assert out.read_bytes() == b""
    assert f"{tmp_path / 'x.txt'}: there is no sentence in it; the result is empty" in capsys.readouterr().err


def test_bad_input_leaves_no_file(structured_run, tmp_path, capsys):
    (tmp_path / "x.conllu").write_text("1\tonly two\n\n")
    out = tmp_path / "out.conllu"
    assert main.run(["predict", structured_run, str(tmp_path / "x.conllu"), "--out", str(out), "--device", "cpu"]) == 5
    assert f"{tmp_path / 'x.conllu'}:1: column-count" in capsys.readouterr().err
    assert not out.exists()


def test_a_model_of_text_alone_says_what_predict_is_for(run, tmp_path, capsys):
    (tmp_path / "x.txt").write_text("the dog\n")
    assert main.run(["predict", run, str(tmp_path / "x.txt"), "--device", "cpu"]) == 2
    assert "hint: strata predict is for models trained with structure" in capsys.readouterr().err
