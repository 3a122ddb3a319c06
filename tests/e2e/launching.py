"""A small recipe, and scripts and commands to train it with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.strata_core.conftest import TINY

ROOT = Path(__file__).resolve().parents[2]
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
LIMIT_SECONDS = 300


def write_recipe(folder: Path, corpus: Path, **settings: Any) -> Path:
    """The tiny recipe as a file, with other settings as TABLE__KEY=value."""
    tables = dict(setting.split("=") for setting in TINY)
    tables |= {key.replace("__", "."): json.dumps(value) for key, value in settings.items()}
    path = folder / "recipe.toml"
    path.write_text(f"corpus.path = {str(corpus)!r}\n" + "".join(f"{key} = {value}\n" for key, value in tables.items()))
    return path


def outcome_of(module: str, *arguments: str | Path) -> Any:
    """Runs a drill and returns the JSON object it prints last."""
    finished = subprocess.run(
        [sys.executable, "-m", f"tests.drills.{module}", *arguments],
        cwd=ROOT,
        env=ONE_THREAD,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout.splitlines()[-1])


def strata(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the command."""
    return run_command([sys.executable, "-m", "strata", *arguments], **environment)


def run_command(command: list[str | Path], **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs any command with one thread a process."""
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**ONE_THREAD, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
