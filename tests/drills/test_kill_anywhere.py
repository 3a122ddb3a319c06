"""A short form of the drill: every way to run, every kind of kill, the same end."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_runs_killed_anywhere_end_as_if_they_had_never_been(tmp_path):
    drill = subprocess.run(
        [sys.executable, "-m", "tests.drills.kill_anywhere", "--kills=20", "--launched=2", f"--folder={tmp_path}"],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert drill.returncode == 0, drill.stderr
    summary = drill.stdout.splitlines()[-1]
    assert int(summary.split()[0]) >= 20
    assert "0 problems" in summary
    assert all(name in summary for name in ("SIGKILL", "SIGTERM", "process", "ranks", "launched", "named point"))
