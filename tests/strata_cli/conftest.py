import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Strata = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def strata(tmp_path: Path) -> Strata:
    """Runs the command in a process of its own, in an empty folder, with a plain environment."""

    def run(*arguments, environment: Mapping[str, str] | None = None, **options):
        inherited = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "HOME") if name in os.environ}
        options = {"capture_output": True, "cwd": tmp_path, "stdin": subprocess.DEVNULL, "timeout": 60, **options}
        command = [sys.executable, "-m", "strata", *arguments]
        return subprocess.run(command, env={**inherited, **(environment or {})}, **options)

    return run
