"""The tutorial's commands, run one after another as it says, by a new user in a copy of its folder."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "tutorial"


def commands() -> list[list[str]]:
    """What the page tells to type, less the `cd` into its folder."""
    blocks = re.findall(r"```sh\n(.*?)```", (TUTORIAL / "README.md").read_text(), re.DOTALL)
    lines = [shlex.split(line) for block in blocks for line in block.splitlines()]
    assert lines[0] == ["cd", "docs/tutorial"]
    return lines[1:]


def test_the_tutorial_leads_from_files_to_a_verified_model_in_ten_commands(tmp_path):
    place = tmp_path / "tutorial"
    shutil.copytree(TUTORIAL, place)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "STRATA_CACHE": str(tmp_path / "cache")}
    typed = commands()
    assert len(typed) == 10
    printed = {}
    for command in typed:
        assert command[0] == "strata"
        done = subprocess.run(
            [sys.executable, "-m", "strata", *command[1:]],
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        printed[command[1]] = done.stdout
    assert "UAS" in printed["evaluate"] or "uas" in printed["evaluate"]
    words = [line.split("\t") for line in (place / "new.conllu").read_text().splitlines() if line[:1].isdigit()]
    assert len(words) > 20 and {len(row) for row in words} == {10}
    assert "replay ok" in printed["verify-manifest"] and "step 80" in printed["verify-manifest"]
