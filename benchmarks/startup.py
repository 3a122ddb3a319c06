"""How much CPU time the command takes before it does anything: completion, help, a usage error, a recipe check.

    python benchmarks/startup.py [--runs 15]

The command runs in fresh processes, the cases in turn; the figure is the median of user and system time. The peer is
`import torch` alone, which is what a command line pays that imports everything at its top.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

STRATA = [sys.executable, "-m", "strata"]
BASH = {"_STRATA_COMPLETE": "complete_bash"}
ZSH = {"_STRATA_COMPLETE": "complete_zsh"}


def cases(recipe: Path) -> list[tuple[str, list[str], Mapping[str, str], int | None]]:
    """Each case: its name, command, environment, and the most milliseconds it may take."""
    return [
        ("python -c pass", [sys.executable, "-c", "pass"], {}, None),
        ("completion: commands, bash", STRATA, {**BASH, "COMP_WORDS": "strata ", "COMP_CWORD": "1"}, 100),
        ("completion: commands, zsh", STRATA, {**ZSH, "_TYPER_COMPLETE_ARGS": "strata "}, 100),
        (
            "completion: recipe names",
            STRATA,
            {**BASH, "COMP_WORDS": "strata train-lm --recipe ", "COMP_CWORD": "3"},
            100,
        ),
        ("completion: --set keys", STRATA, {**BASH, "COMP_WORDS": "strata train-lm --set ", "COMP_CWORD": "3"}, 100),
        ("--version", [*STRATA, "--version"], {}, 200),
        ("--help", [*STRATA, "--help"], {}, 200),
        ("train-lm --help", [*STRATA, "train-lm", "--help"], {}, 200),
        ("a usage error", [*STRATA, "train-lm", "--no-such-option"], {}, 200),
        ("recipes check, a good recipe", [*STRATA, "recipes", "check", "lm/small"], {}, 350),
        ("recipes check, a bad recipe", [*STRATA, "recipes", "check", str(recipe)], {}, 350),
        ("peer: import torch", [sys.executable, "-c", "import torch"], {}, None),
    ]


def cpu_seconds(command: list[str], environment: Mapping[str, str]) -> float:
    """User and system time of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15, help="runs of each case (default 15)")
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        recipe = Path(folder, "bad.toml")
        recipe.write_text("[optimizer]\nlrr = 1e-3\n[batch]\nbatch_size = -1\n")
        table = cases(recipe)
        times: dict[str, list[float]] = {name: [] for name, *_ in table}
        for _ in range(runs):
            for name, command, environment, _limit in table:
                times[name].append(cpu_seconds(command, environment))
    print(f"{'case':<32} {'CPU ms':>8} {'limit':>8}")
    for name, _, _, limit in table:
        milliseconds = statistics.median(times[name]) * 1000
        print(f"{name:<32} {milliseconds:>8.0f} {limit or '':>8}")


if __name__ == "__main__":
    main()
