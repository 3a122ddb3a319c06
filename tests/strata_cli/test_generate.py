"""`strata generate` as a shell sees it."""

import io
import json
import sys
from pathlib import Path

import pytest

from strata_cli import main
from strata_core.corpus.preparing.preparation import prepare_corpus
from strata_core.corpus.preparing.settings import PreparationSettings
from strata_core.launch.starting import train
from strata_core.recipes import load_recipe
from tests.strata_core.conftest import TINY, made_up_documents


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speaking")
    (folder / "text.txt").write_text("\n\n".join(made_up_documents(200, 1)))
    settings = PreparationSettings(vocab_size=300, val_fraction=0.2)
    prepare_corpus([folder / "text.txt"], folder / "corpus", settings)
    (folder / "tiny.toml").write_text(f"[corpus]\npath = {str(folder / 'corpus')!r}\n")
    train(load_recipe(folder / "tiny.toml", "lm", [*TINY, "run.max_steps=3"]), folder / "run", device="cpu")
    return str(folder / "run")


def told(capsys, *arguments):
    assert main.run(["generate", *arguments, "--device", "cpu"]) == 0
    return capsys.readouterr().out


def test_json_has_every_prompt_with_its_samples(run, capsys):
    arguments = [run, "the dog", "", "--json", "--samples", "2", "--max-new-tokens", "4"]
    shown = json.loads(told(capsys, *arguments))
    assert shown.keys() == {"prompts"}
    assert [one["prompt"] for one in shown["prompts"]] == ["the dog", ""]
    samples = [sample for one in shown["prompts"] for sample in one["samples"]]
    assert len(samples) == 4
    for sample in samples:
        assert sample.keys() == {"text", "token_ids", "token_log_probs", "stopped_because"}
        assert len(sample["token_ids"]) == len(sample["token_log_probs"]) <= 4


def test_text_is_the_prompt_and_what_json_gives_after_it(run, capsys):
    arguments = [run, "the dog", "--seed", "5", "--max-new-tokens", "6"]
    sample = json.loads(told(capsys, *arguments, "--json"))["prompts"][0]["samples"][0]
    assert told(capsys, *arguments) == f"the dog{sample['text']}\n"


def test_several_texts_are_told_apart(run, capsys):
    out = told(capsys, run, "a", "b", "--max-new-tokens", "1", "--greedy")
    assert out.startswith("--- prompt 1, sample 1\na") and "\n--- prompt 2, sample 1\nb" in out


def test_lines_of_standard_input_are_prompts(run, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("the dog\nder Fluß\n".encode())))
    shown = json.loads(told(capsys, run, "-", "--json", "--max-new-tokens", "1"))
    assert [one["prompt"] for one in shown["prompts"]] == ["the dog", "der Fluß"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["the dog " * 40], 2, "prompt 1 has"),
        (["--temperature", "0"], 2, "hint: --greedy for 0"),
        (["--top-p", "1.5"], 2, "--top-p 1.5: must be above 0 and at most 1"),
        (["--stop", ""], 2, "an empty string would stop everything"),
        (["-", "-"], 2, "standard input can be read once"),
        (["\udcff"], 2, "a prompt is not UTF-8"),
    ],
)
def test_what_cannot_be_continued_is_a_usage_error(run, arguments, code, said, capsys):
    assert main.run(["generate", run, "--quiet", *arguments]) == code
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


def test_standard_input_that_is_not_utf_8_is_bad_data(run, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"ab\xff")))
    assert main.run(["generate", run, "-", "--quiet"]) == 5
    assert "standard input is not UTF-8: byte 2" in capsys.readouterr().err


def test_a_suite_of_pairs_is_scored_and_compared(run, tmp_path, capsys):
    suite = tmp_path / "mine.tsv"
    suite.write_text("sentence_good\tsentence_bad\tphenomenon\nthe dog\tdog the\torder\na cat\ta cat\tsame\n")
    arguments = ["evaluate", run, "--suite", str(suite), "--device", "cpu", "--quiet"]
    assert main.run([*arguments, "--json", "--compare", run]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["pairs"], shown["ties"]) == (2, 1)
    assert shown["phenomena"]["same"] == {"accuracy": 0.5, "pairs": 1}
    assert shown["compare"]["difference"] == 0.0
    assert shown["compare"]["phenomena"].keys() == {"order", "same"}
    assert main.run(arguments) == 0
    assert "phenomena" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--suite", "blimp"], "--suite blimp needs --suite-path"),
        (["--suite", "absent"], "--suite absent: neither a suite nor a file"),
        (["--suite", "blimp", "--suite-path", "absent"], "no such file or directory"),
        (["--suite", "zorro", "--suite-path", ".", "--min-count", "2"], "--min-count and --count-corpus go together"),
        (["--compare", "x"], "need --suite"),
        (["--suite", "zorro", "--split", "train"], "are for evaluations on a split"),
    ],
)
def test_a_suite_that_cannot_be_scored_is_a_usage_error(run, arguments, said, capsys):
    assert main.run(["evaluate", run, "--quiet", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_pairs_are_kept_to_the_words_of_a_corpus(run, tmp_path, capsys):
    suite = tmp_path / "mine.jsonl"
    suite.write_text('{"sentence_good": "the dog", "sentence_bad": "xyzzy"}\n')
    corpus = str(Path(run).parent / "corpus")
    words = ["--min-count", "1", "--count-corpus", corpus]
    assert main.run(["evaluate", run, "--suite", str(suite), *words, "--json", "--quiet"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["pairs"], shown["left_out"], shown["accuracy"]) == (0, 1, None)
