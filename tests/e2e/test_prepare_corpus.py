"""`strata prepare-corpus` as a user runs it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.strata_core.corpus.helpers import SHARED, byte_tokenizer_json, documents_of, folder_bytes, write_jsonl
from tests.strata_core.corpus.treebanks.helpers import MIXED, rows

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "strata_cli", "prepare-corpus"]
TEXTS = [f"Document {number}: the ferry – naïve café – arrives at {number * 7}." for number in range(60)]
RESULT_KEYS = {"corpus_dir", "kind", "documents", "tokens", "vocab_size", "splits", "skipped"}


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    path = tmp_path / "bytes.json"
    path.write_text(json.dumps(byte_tokenizer_json()))
    return path


def run(*arguments: object, standard_input: bytes = b"", **changes: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **changes}
    command = [*COMMAND, *(os.fspath(one) if isinstance(one, os.PathLike) else str(one) for one in arguments)]
    return subprocess.run(command, input=standard_input, capture_output=True, env=environment, timeout=300)


def check_error(done: subprocess.CompletedProcess[bytes], code: int, *said: str) -> None:
    shown = done.stderr.decode()
    assert done.returncode == code, shown
    assert "Traceback" not in shown
    assert done.stdout == b""
    for words in said:
        assert words in shown


def test_the_result_is_one_json_object(tmp_path: Path, tokenizer: Path) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", [*TEXTS, ""])
    done = run(source, "--out", tmp_path / "out", "--tokenizer", tokenizer, "--val-fraction", 0.2, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result.keys() >= RESULT_KEYS
    assert result["corpus_dir"] == str(tmp_path / "out")
    assert (result["kind"], result["documents"], result["vocab_size"]) == ("text", 60, 257)
    assert result["tokens"] == sum(len(text.encode()) + 1 for text in TEXTS)
    assert result["skipped"] == {"empty": 1}
    assert result["understood"] == [{"kind": "jsonl", "files": [{"name": "in.jsonl", "split": None}]}]
    found = documents_of(tmp_path / "out")
    assert {name: split["documents"] for name, split in result["splits"].items()} == {
        name: len(texts) for name, texts in found.items()
    }
    assert sorted(found["train"] + found["val"]) == sorted(TEXTS)


def test_the_result_goes_to_standard_output_and_the_rest_to_standard_error(tmp_path: Path, tokenizer: Path) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", TEXTS)
    done = run(source, "--out", tmp_path / "out", "--tokenizer", tokenizer)
    assert "60 documents" in done.stdout.decode()
    assert "encoding: done" in done.stderr.decode()
    quiet = run(source, "--out", tmp_path / "quiet", "--tokenizer", tokenizer, "--quiet", "--val-fraction", 0)
    assert (quiet.stdout, quiet.stderr) == (b"", b"")
    assert folder_bytes(tmp_path / "quiet").keys() == folder_bytes(tmp_path / "out").keys()


def test_the_locale_does_not_matter(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", TEXTS)
    (tmp_path / "a.txt").write_bytes("café – naïve\n".encode())
    for name, locale in (("c", {"LC_ALL": "C", "PYTHONUTF8": "0"}), ("utf8", {"LC_ALL": "C.UTF-8"})):
        options = ["--vocab-size", 300, "--out", tmp_path / name]
        assert run(source, tmp_path / "a.txt", *options, **locale).returncode == 0
    assert folder_bytes(tmp_path / "c") == folder_bytes(tmp_path / "utf8")


def test_standard_input_is_an_input(tmp_path: Path, tokenizer: Path) -> None:
    options = ["--out", tmp_path / "out", "--tokenizer", tokenizer, "--val-fraction", 0]
    assert run("-", *options, standard_input=b"piped \xe2\x80\x93 text").returncode == 0
    assert documents_of(tmp_path / "out")["train"] == ["piped – text"]


def test_a_sample_needs_no_input(tmp_path: Path) -> None:
    done = run("--sample", "python-topics", "--vocab-size", 300, "--out", tmp_path / "out", "--json")
    assert json.loads(done.stdout)["documents"] > 50


@pytest.mark.parametrize(
    "name",
    [
        b"with space",
        "données 日本 \U0001f40e".encode(),
        b"[v1] run [/bold] [red]x",
        b"-dash",
        b"quote'\"$(touch CANARY)",
        b"new\nline",
        b"bad\xff",
        b"%s {0} \\n",
    ],
)
def test_a_folder_of_any_name_is_read_and_written(tmp_path: Path, tokenizer: Path, name: bytes) -> None:
    place = tmp_path / os.fsdecode(name)
    place.mkdir(parents=True)
    write_jsonl(place / "c.jsonl", TEXTS)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C", "PYTHONUTF8": "0"}
    options = [b"--tokenizer", os.fsencode(tokenizer), b"--out", os.path.join(name, b"out")]
    done = subprocess.run([*COMMAND, *options, b"--", name], capture_output=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    found = documents_of(place / "out")
    assert found["train"] + found["val"] == TEXTS
    assert not list(tmp_path.rglob("CANARY"))


def test_a_tilde_is_expanded(tmp_path: Path, tokenizer: Path) -> None:
    write_jsonl(tmp_path / "in.jsonl", TEXTS)
    done = run("~/in.jsonl", "--out", "~/out", "--tokenizer", "~/bytes.json", HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "corpus.json").is_file()


def test_faults_have_their_exit_codes_and_messages(tmp_path: Path, tokenizer: Path) -> None:
    options = ["--tokenizer", tokenizer, "--out", tmp_path / "out"]
    good = write_jsonl(tmp_path / "good.jsonl", TEXTS)
    (tmp_path / "bad.jsonl").write_bytes(b'{"text": "a"}\n{"body": 1}\n')
    check_error(run(tmp_path / "absent.txt", *options), 2, "absent.txt")
    check_error(run(*options), 2, "nothing to read")
    check_error(run(good, "--sample", "python-topics", *options), 2, "both inputs and a sample")
    check_error(run(good, "--vocab-size", 300, *options), 2, "--vocab-size out")
    check_error(run(tmp_path / "bad.jsonl", *options), 5, "bad.jsonl:2", "keys seen: body", "--on-error skip")
    check_error(run(good, "--tokenizer", good, "--out", tmp_path / "out"), 5, "good.jsonl")
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").write_text("mine")
    check_error(run(good, *options), 6, "out exists already")
    assert (tmp_path / "out").read_text() == "mine"


def test_a_file_size_limit_is_met_like_a_full_disk(tmp_path: Path, tokenizer: Path) -> None:
    script = tmp_path / "limited.sh"
    script.write_text('ulimit -f 128; trap "" XFSZ; exec "$@"\n')
    source = write_jsonl(tmp_path / "in.jsonl", ["x" * 1000] * 200)
    command = [*COMMAND, source, "--tokenizer", tokenizer, "--out", tmp_path / "out", "--val-fraction", "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["sh", script, *command], capture_output=True, env=environment)
    check_error(done, 5, "train-00000", "limit on file sizes")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bytes.json", "in.jsonl", "limited.sh"]
    assert subprocess.run(command, capture_output=True, env=environment).returncode == 0


def kill_when_written(command: list[object], partial: Path, pattern: str) -> None:
    """Starts the command and kills it, workers aside, as soon as a file of that pattern has content."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(list(map(str, command)), env={**os.environ, "PYTHONPATH": str(ROOT)}, **pipes)
    try:
        while not any(path.stat().st_size for path in partial.glob(pattern)):
            assert process.poll() is None, process.communicate()
            time.sleep(0.002)
        children = psutil.Process(process.pid).children()
        process.send_signal(signal.SIGKILL)
    finally:
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert partial.is_dir()
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []


def test_killed_in_the_middle_and_run_again_gives_the_same_bytes(tmp_path: Path, tokenizer: Path) -> None:
    texts = [f"{number} the ferry arrives {number * 7} " * 400 for number in range(700)]
    source = write_jsonl(tmp_path / "in.jsonl", texts)
    options: list[object] = ["--tokenizer", tokenizer, "--workers", 2, "--backend", "tokenizers"]
    assert run(source, *options, "--out", tmp_path / "undisturbed").returncode == 0
    kill_when_written([*COMMAND, source, *options, "--out", tmp_path / "out"], tmp_path / ".out.partial", "*.bin")
    assert not (tmp_path / "out").exists()
    assert run(source, *options, "--out", tmp_path / "out").returncode == 0
    assert folder_bytes(tmp_path / "out") == folder_bytes(tmp_path / "undisturbed")
    assert not (tmp_path / ".out.partial").exists()


def test_annotated_sentences_are_counted_in_the_result(tmp_path: Path, tokenizer: Path) -> None:
    treebank, roles = tmp_path / "t-train.conllu", tmp_path / "r.conllup"
    treebank.write_text(MIXED)
    (tmp_path / "t-dev.conllu").write_text(MIXED.replace("s1", "s3").replace("s2", "s4"))
    others = "".join(f"{word}\t_\t_\n" for word in range(2, 6))
    roles.write_text("# global.columns = ID UP:PRED UP:ARGHEADS\n# sent_id = s2\n1\tx.01\tA0:2\n" + others)
    options = ["--out", tmp_path / "out", "--tokenizer", tokenizer]
    done = run(treebank, tmp_path / "t-dev.conllu", "--roles", roles, *options, "--json")
    result = json.loads(done.stdout)
    assert result.keys() >= RESULT_KEYS
    counts = {"sentences": 4, "words": 22, "multiword_tokens": 4, "empty_nodes": 6, "predicates": 1, "arguments": 1}
    assert {name: result[name] for name in counts} == counts
    assert (result["kind"], result["documents"]) == ("annotated", 2)
    assert [result["splits"][split]["predicates"] for split in ("train", "val")] == [1, 0]
    assert result["labels"] == {"upos": 9, "relation": 7, "roleset": 1, "role": 1, "lemma_rule": 3}
    shown = run(treebank, "--out", tmp_path / "shown", "--tokenizer", tokenizer).stdout.decode()
    assert "2 annotated, 11 words, 2 multiword tokens, 3 empty nodes, 1 unannotated words" in shown


def test_faults_of_annotated_sentences_are_all_named_or_skipped(tmp_path: Path, tokenizer: Path) -> None:
    treebank = tmp_path / "t.conllu"
    treebank.write_text("# sent_id = x\n" + rows("1") + rows("0") + "# sent_id = y\n" + rows("0", "7"))
    options = ["--out", tmp_path / "out", "--tokenizer", tokenizer, "--val-fraction", 0]
    done = run(treebank, *options)
    check_error(done, 5, f"{treebank}:2 (sent_id x): own-head", f"{treebank}:8 (sent_id y): head-out-of-range")
    assert not (tmp_path / "out").exists()
    done = run(treebank, *options, "--on-error", "skip", "--json")
    result = json.loads(done.stdout)
    assert (result["sentences"], result["skipped"]) == (1, {"head-out-of-range": 1, "own-head": 1})


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("U04/trees", ["6 problems", "two_roots", "self_head", "cycle 3-4", "no root", "head 9 of 4 words", "head -1"]),
        ("U06/space_for_tab", ["space_for_tab.conllu:2", "9 columns, 10 expected"]),
        ("U06/eleven", ["eleven.conllu:2", "11 columns, 10 expected", "global.columns"]),
        ("U07/dup_sent_id", ["sent_id n1", "line 1 again at line 6"]),
        ("U07/bad_ids", ["b1", "word 3 is missing", "b2", "word 1 occurs twice", "b3", "range 2-1"]),
    ],
)
def test_broken_treebanks_of_the_cases_end_with_5(tmp_path: Path, tokenizer: Path, case: str, said: list[str]) -> None:
    path = SHARED / "cases" / f"{case}.conllu"
    if not path.exists():
        pytest.skip("the shared acceptance cases are not here")
    check_error(run(path, "--out", tmp_path / "out", "--tokenizer", tokenizer), 5, *said)
    assert not list(tmp_path.glob("*out*"))


def test_killed_among_annotated_sentences_and_run_again_gives_the_same_bytes(tmp_path: Path, tokenizer: Path) -> None:
    options: list[object] = ["--sample", "synthetic-treebank", "--sample-sentences", 1500, "--tokenizer", tokenizer]
    assert run(*options, "--out", tmp_path / "undisturbed").returncode == 0
    command = [*COMMAND, *options, "--out", tmp_path / "out"]
    kill_when_written(command, tmp_path / ".out.partial", "structure/train/*.bin")
    assert not (tmp_path / "out").exists()
    assert run(*options, "--out", tmp_path / "out").returncode == 0
    assert folder_bytes(tmp_path / "out") == folder_bytes(tmp_path / "undisturbed")


@pytest.mark.slow
def test_real_prose_killed_in_the_middle_and_run_again_gives_the_same_bytes(tmp_path: Path) -> None:
    data = SHARED / "data" / "text"
    if not data.is_dir():
        pytest.skip("the shared text is not here")
    options: list[object] = ["--vocab-size", 8192, "--workers", 2]
    assert run(data, *options, "--out", tmp_path / "undisturbed").returncode == 0
    kill_when_written([*COMMAND, data, *options, "--out", tmp_path / "out"], tmp_path / ".out.partial", "*.bin")
    assert run(data, *options, "--out", tmp_path / "out").returncode == 0
    assert folder_bytes(tmp_path / "out") == folder_bytes(tmp_path / "undisturbed")


INSTALLED = Path(sys.executable).with_name("strata")


@pytest.mark.skipif(not INSTALLED.exists(), reason="the strata command is not installed beside this interpreter")
def test_the_installed_command_is_the_same(tmp_path: Path, tokenizer: Path) -> None:
    source = write_jsonl(tmp_path / "in.jsonl", TEXTS)
    command = [INSTALLED, "prepare-corpus", source, "--tokenizer", tokenizer, "--out", tmp_path / "out", "--json"]
    done = subprocess.run(command, capture_output=True)
    assert json.loads(done.stdout)["documents"] == 60
