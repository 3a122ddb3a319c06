"""A task in a folder of its own, registered in one line, has everything that the command offers."""

import json
import math
from collections import Counter
from pathlib import Path

import pytest

from strata_cli import main
from strata_core.tasks import registry

RECIPE = """
kind = "lm"
[batch]
batch_size = 4
micro_batch_size = 2
seq_len = 16
[optimizer]
lr = 0.5
warmup_steps = 1
weight_decay = 0.0
[run]
max_steps = 60
log_every = 10
[evaluation]
every = 30
[checkpoint]
every = 30
"""
TEXT = "".join(f"abracadabra, line {number} of many\n" for number in range(200))


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(registry, "KINDS", ["tests.strata_core.tasks.byte_frequencies.kind", *registry.KINDS])


def told(capsys, *arguments):
    """The JSON object that a command prints."""
    assert main.run([str(argument) for argument in arguments]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def checkpoint_files(run: Path, step: int):
    folder = run / "checkpoints" / f"step-{step:08d}"
    return {name: (folder / name).read_bytes() for name in ("model.safetensors", "optimizer.safetensors")}


@pytest.fixture
def corpus(tmp_path, capsys):
    for number in range(10):
        (tmp_path / f"part-{number}.txt").write_text(TEXT[number * 600 : (number + 1) * 600])
    inputs = sorted(tmp_path.glob("part-*.txt"))
    options = ["--vocab-size", 257, "--val-fraction", 0.3, "--json", "--quiet"]
    told(capsys, "prepare-corpus", *inputs, "--out", tmp_path / "corpus", *options)
    return tmp_path / "corpus"


def train(tmp_path, corpus, capsys, name, *settings):
    (tmp_path / "bytes.toml").write_text(RECIPE)
    overrides = [part for setting in (f"corpus.path={corpus}", *settings) for part in ("--set", setting)]
    command = ["train-lm", "--recipe", tmp_path / "bytes.toml", "--out", tmp_path / name, "--device", "cpu"]
    return told(capsys, *command, *overrides, "--json", "--quiet")


def test_a_new_task_is_trained_resumed_evaluated_asked_and_proved_without_a_change_elsewhere(tmp_path, corpus, capsys):
    result = train(tmp_path, corpus, capsys, "run")
    run = tmp_path / "run"
    assert result["steps"] == 60
    assert result["first_loss"] == pytest.approx(math.log(257), rel=1e-6)

    # A run that is cut off at step 30 and resumed ends in the same bytes.
    train(tmp_path, corpus, capsys, "cut", "run.max_steps=30", "optimizer.schedule_steps=60")
    told(capsys, "resume", tmp_path / "cut", "--set", "run.max_steps=60", "--device", "cpu", "--json", "--quiet")
    assert checkpoint_files(run, 60) == checkpoint_files(tmp_path / "cut", 60)

    # What it learned are the frequencies of the training text, as counted here.
    evaluated = told(capsys, "evaluate", run, "--split", "train", "--json", "--quiet")
    counts = Counter()
    for number in range(10):
        counts.update((tmp_path / f"part-{number}.txt").read_bytes())
    entropy = -sum(count / counts.total() * math.log(count / counts.total()) for count in counts.values())
    assert (evaluated["kind"], evaluated["step"]) == ("byte-frequencies", 60)
    assert evaluated["metrics"]["loss"] == pytest.approx(entropy, abs=0.15)

    # It answers about a file: a byte that is common in the text takes fewer nats than one that is not in it.
    (tmp_path / "asked.txt").write_text("a")
    common = told(capsys, "predict", run, tmp_path / "asked.txt", "--quiet")["nats_per_byte"]
    (tmp_path / "asked.txt").write_text("Z")
    assert common < 2.5 < told(capsys, "predict", run, tmp_path / "asked.txt", "--quiet")["nats_per_byte"]

    verified = told(capsys, "verify-manifest", run, "--replay", 60, "--json")
    assert verified["verdict"] == "ok"


def test_a_checkpoint_of_a_new_task_is_evaluated_without_its_run(tmp_path, corpus, capsys):
    train(tmp_path, corpus, capsys, "run")
    alone = tmp_path / "alone"
    (tmp_path / "run" / "checkpoints" / "step-00000060").rename(alone)
    evaluated = told(capsys, "evaluate", alone, "--corpus", corpus, "--json", "--quiet")
    assert evaluated["kind"] == "byte-frequencies"


def test_the_memory_of_a_new_task_is_planned(tmp_path, corpus, capsys):
    (tmp_path / "bytes.toml").write_text(RECIPE)
    command = ["train-lm", "--recipe", tmp_path / "bytes.toml", "--set", f"corpus.path={corpus}", "--dry-run", "--json"]
    plan = told(capsys, *command, "--quiet")["memory"]
    assert plan["fits"] and plan["parts"]["weights"] == 4 * 257
