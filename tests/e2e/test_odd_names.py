"""From text to a verified checkpoint in folders whose names break careless programs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NAMES = {
    "space": b"with space",
    "letters": "données 日本 🐎".encode(),
    "brackets": b"[v1] run [bold] [red]x",
    "dash": b"-dash",
    "quotes": b"quote'\"$(touch CANARY)",
    "newline": b"new\nline",
    "no text": b"bad\xff",
    "formats": b"%s {0} \\n",
}
SMALL = (
    "corpus.sample=",
    "model.d_model=16",
    "model.n_layers=1",
    "model.n_heads=2",
    "batch.seq_len=16",
    "batch.batch_size=2",
    "batch.num_workers=0",
    "batch.micro_batch_size=",
    "run.max_steps=2",
    "optimizer.warmup_steps=1",
    "evaluation.every=0",
    "checkpoint.every=1",
)


def strata(folder: Path, *arguments: str | bytes, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "strata", *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        timeout=120,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A JSON Lines file of forty short documents."""
    lines = [json.dumps({"text": f"document {number} is about the number {number * number}"}) for number in range(40)]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines))
    return tmp_path


@pytest.fixture
def odd_folder(texts: Path, request: pytest.FixtureRequest) -> bytes:
    """A folder with an odd name and the documents in it; its path from the working folder."""
    name = NAMES[request.param]
    os.mkdir(os.fsencode(texts) + b"/" + name)
    os.rename(texts / "texts.jsonl", os.fsencode(texts) + b"/" + name + b"/texts.jsonl")
    return name


def prepare(folder: Path, odd: bytes, **environment: str) -> subprocess.CompletedProcess[bytes]:
    options = ["--vocab-size", "300", "--val-fraction", "0.1", "--workers", "1", "--json"]
    return strata(folder, "prepare-corpus", *options, b"--out=" + odd + b"/corpus", "--", odd, **environment)


@pytest.mark.parametrize("odd_folder", NAMES, indirect=True)
def test_a_corpus_is_prepared_and_verified_in_any_folder(texts, odd_folder):
    prepared = prepare(texts, odd_folder)
    assert prepared.returncode == 0, prepared.stderr
    assert json.loads(prepared.stdout)["documents"] == 40
    verified = strata(texts, "verify-manifest", "--json", "--", odd_folder + b"/corpus")
    assert json.loads(verified.stdout)["verdict"] == "ok"
    again = prepare(texts, odd_folder)
    assert again.returncode == 6
    assert b"Traceback" not in again.stderr
    assert not (texts / "CANARY").exists()


@pytest.mark.parametrize(("odd_folder", "locale"), [("brackets", "C.UTF-8"), ("no text", "C")], indirect=["odd_folder"])
def test_a_run_is_trained_resumed_inspected_and_verified_in_any_folder(texts, odd_folder, locale):
    assert prepare(texts, odd_folder, LC_ALL=locale).returncode == 0
    run = odd_folder + b"/run"
    settings = [part for setting in SMALL for part in ("--set", setting)]
    corpus = b"corpus.path=" + odd_folder + b"/corpus"
    trained = strata(texts, "train-lm", "--recipe=quickstart", *settings, "--set", corpus, "--out", run, LC_ALL=locale)
    assert trained.returncode == 0, trained.stderr
    resumed = strata(texts, "resume", "--json", "--set", "run.max_steps=3", run, LC_ALL=locale)
    assert json.loads(resumed.stdout)["steps"] == 3
    inspected = strata(texts, "inspect-ckpt", "--json", run, LC_ALL=locale)
    assert (json.loads(inspected.stdout)["verdict"], json.loads(inspected.stdout)["step"]) == ("ok", 3)
    verified = strata(texts, "verify-manifest", "--json", run, LC_ALL=locale)
    assert json.loads(verified.stdout)["verdict"] == "ok"
    assert all(b"Traceback" not in result.stderr for result in (trained, resumed, inspected, verified))


def test_a_tilde_is_the_home_folder_in_every_option(texts):
    home = texts / "home"
    home.mkdir()
    os.rename(texts / "texts.jsonl", home / "texts.jsonl")
    prepared = strata(
        texts, "prepare-corpus", "~/texts.jsonl", "--vocab-size", "300", "--out=~/corpus", "--workers=1", HOME=str(home)
    )
    assert prepared.returncode == 0, prepared.stderr
    (home / "r.toml").write_text('base = "quickstart"\n[corpus]\npath = "~/corpus"\n')
    settings = [part for setting in SMALL[1:] for part in ("--set", setting)]
    trained = strata(texts, "train-lm", "--recipe", "~/r.toml", *settings, "--out", "~/runs/one", HOME=str(home))
    assert trained.returncode == 0, trained.stderr
    assert (home / "runs" / "one" / "recipe.toml").is_file()
    for command in ("verify-manifest", "inspect-ckpt"):
        assert strata(texts, command, "~/runs/one", HOME=str(home)).returncode == 0
    assert strata(texts, "verify-manifest", "~nosuchuser/x").returncode == 2
    assert not list(texts.rglob("~*"))
