"""Promise 1: a run killed after any step's checkpoint ends in the same bytes as one that was never killed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.strata_core.conftest import TINY

ROOT = Path(__file__).resolve().parents[2]


def tiny_recipe_toml(corpus: Path) -> str:
    """The tiny recipe as a file: dotted keys, as `--set` has them."""
    return f"corpus.path = {str(corpus)!r}\n" + "".join(f"{setting}\n" for setting in TINY)


@pytest.mark.parametrize(
    "kill_steps",
    [(1, 6, 11), pytest.param(tuple(range(1, 12)), marks=pytest.mark.slow)],
    ids=["some steps", "every step"],
)
def test_a_run_killed_after_any_step_ends_as_if_it_had_never_been(byte_corpus, tmp_path, kill_steps):
    (tmp_path / "tiny.toml").write_text(tiny_recipe_toml(byte_corpus))
    finished = subprocess.run(
        [sys.executable, "-m", "tests.drills.kill_and_resume", str(tmp_path), *map(str, kill_steps)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert finished.returncode == 0, finished.stderr
    outcome = json.loads(finished.stdout.splitlines()[-1])
    others = {"killed-thrice", "averaged-killed", "other-cadence"}
    assert outcome.keys() == others | {f"killed-{step}" for step in kill_steps}
    assert {name: found for name, found in outcome.items() if found} == {}
