"""Corpora, runs and checkpoints of an earlier version are read as it read them.

That version is taken from the history of this repository and run beside this one, on the same machine: bits of a float
differ between processors, so a stored run would prove little.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from strata_core.manifest import Manifest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
EARLIER = "1d68a563a7bba2939c3e50c138e61c46a037f666"
"""The last commit before modules were moved to rooms of their own."""

SHORT = (
    "run.max_steps=4",
    "optimizer.warmup_steps=1",
    "optimizer.schedule_steps=4",
    "checkpoint.every=2",
    "checkpoint.keep_last=9",
    "evaluation.every=2",
    "run.log_every=1",
)
SMALL_SAMPLE = ("corpus.sample_examples=60", "corpus.sample_eval_examples=20", "batch.batch_size=12")
RUNS = {
    "language model": ("train-lm", "quickstart", ("model.d_model=32", "model.n_layers=2")),
    "structure": ("train-lm", "lm/synthetic/mixed", ("model.d_model=32", "model.n_layers=2")),
    "role edits": ("train-lm", "lm/synthetic/role-edit", ("model.d_model=32", "model.n_layers=2")),
    "graph queries": ("train-graph", "graph/quickstart", ("model.d_model=16", *SMALL_SAMPLE)),
    "links": ("train-graph", "graph/umls", ("model.d_model=16", "corpus.path=triples")),
}


@pytest.fixture(scope="module")
def earlier(tmp_path_factory) -> Path:
    """The sources of the earlier version."""
    folder = tmp_path_factory.mktemp("earlier")
    archive = subprocess.run(["git", "archive", EARLIER], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder


@pytest.fixture(scope="module")
def strata(tmp_path_factory):
    """Runs the command of the sources in a folder, in a working directory that all runs share."""
    place = tmp_path_factory.mktemp("place")
    triples = place / "kg"
    triples.mkdir()
    for split, count in (("train", 80), ("valid", 12), ("test", 12)):
        lines = [f"e{(7 * i) % 23}\tr{i % 3}\te{(5 * i + i % 3) % 23}\n" for i in range(len(split), len(split) + count)]
        (triples / f"{split}.txt").write_text("".join(dict.fromkeys(lines)))
    environment = {**os.environ, "STRATA_CACHE": str(place / "cache"), "OMP_NUM_THREADS": "1"}

    def run(sources: Path, *arguments: str) -> bytes:
        done = subprocess.run(
            [sys.executable, "-m", "strata", *arguments],
            cwd=place,
            env={**environment, "PYTHONPATH": str(sources)},
            capture_output=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    run.place = place
    return run


def overrides(settings) -> list[str]:
    return [part for setting in settings for part in ("--set", setting)]


def bits(run: Path) -> dict[str, bytes]:
    """What must not differ: the tensors and the trainer's state of each checkpoint, and the records without timing."""
    found = {}
    for folder in sorted((run / "checkpoints").glob("step-*")):
        for name in ("model.safetensors", "optimizer.safetensors", "trainer.json", "config.json"):
            found[f"{folder.name}/{name}"] = (folder / name).read_bytes()
    for name in ("metrics.jsonl", "evaluations.jsonl"):
        records = [json.loads(line) for line in (run / name).read_text().splitlines()]
        for record in records:
            record.pop("timing", None)
        found[name] = json.dumps(records).encode()
    return found


@pytest.mark.parametrize("kind", RUNS)
def test_a_run_of_the_earlier_version_is_resumed_evaluated_and_proved_to_the_bit(kind, earlier, strata):
    command, recipe, settings = RUNS[kind]
    if kind == "links":
        strata(earlier, "prepare-corpus", "kg", "--out", "triples", "--quiet")
        strata(ROOT, "prepare-corpus", "kg", "--out", "triples-now", "--quiet")
        digests = {Manifest.read(strata.place / name).digest for name in ("triples", "triples-now")}
        assert len(digests) == 1
    place = kind.replace(" ", "-")
    train = (command, "--recipe", recipe, "--device", "cpu", "--quiet")
    strata(earlier, *train, "--out", f"{place}/whole", *overrides((*SHORT, *settings)))
    strata(earlier, *train, "--out", f"{place}/half", *overrides((*SHORT, *settings, "run.max_steps=2")))
    strata(ROOT, "resume", f"{place}/half", "--set", "run.max_steps=4", "--device", "cpu", "--quiet")
    assert bits(strata.place / place / "half") == bits(strata.place / place / "whole")
    strata(ROOT, *train, "--out", f"{place}/now", *overrides((*SHORT, *settings)))
    assert bits(strata.place / place / "now") == bits(strata.place / place / "whole")
    scores = [
        json.loads(strata(sources, "evaluate", f"{place}/whole", "--json", "--quiet", "--device", "cpu"))
        for sources in (earlier, ROOT)
    ]
    assert scores[0] == scores[1]
    proof = json.loads(strata(ROOT, "verify-manifest", f"{place}/whole", "--replay", "4", "--json"))
    assert proof["verdict"] == "ok"
