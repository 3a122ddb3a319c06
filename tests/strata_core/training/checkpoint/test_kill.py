import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]


def test_a_kill_at_any_instant_of_a_save_leaves_a_whole_checkpoint_and_the_series_ends_the_same(tmp_path):
    drill = subprocess.run(
        [sys.executable, "-m", "tests.strata_core.training.checkpoint.kill_drill", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert drill.returncode == 0, drill.stderr
    result = json.loads(drill.stdout)
    assert result["problems"] == {}, drill.stderr
    assert all(result["hits"].values())
    assert result["hits"]["renamed"] == 4
