"""`strata train-lm` and `strata train-graph`: a recipe trained into a new run directory."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from strata_cli.commands.training import LaunchOptions, join_step, run_training, show_plan
from strata_core.errors import PlaceTakenError, UsageError
from strata_core.files import expand_path
from strata_core.launch import worker
from strata_core.observer import Observer
from strata_core.recipes import load_training_recipe
from strata_core.training.stop import StopRequests

_RUNS_FOLDER = Path("runs")


def train(
    kind: str,
    recipe_name: str,
    out: str | None,
    overrides: Sequence[str],
    *,
    launching: LaunchOptions,
    dry_run: bool,
    json_output: bool,
    quiet: bool,
) -> int:
    """Trains, shows progress and the result, and returns the exit code.

    Args:
        kind: of recipe, "lm" or "graph".
        recipe_name: a shipped recipe's name, or a path.
        out: the run directory, None for a new one under runs/.
        overrides: key=value texts.
        launching: how many ranks, and where.
        dry_run: whether to print the recipe and the memory plan, and stop.
        json_output, quiet: as for all commands.
    """
    join_step(launching)
    recipe = load_training_recipe(recipe_name, overrides, kind=kind)
    if dry_run:
        show_plan(recipe, launching, json_output=json_output, quiet=quiet)
        return 0
    if out is None and launching.nnodes > 1:
        raise UsageError("--nnodes needs --out: every node has to name the same run directory")
    run_dir = expand_path(out) if out is not None else new_run_dir(recipe_name)
    if os.path.lexists(run_dir) and not worker.is_worker():
        raise PlaceTakenError(f"{run_dir} exists already", hint="choose another --out; nothing is overwritten")

    def work(predicted: int | None, observer: Observer, stop: StopRequests) -> dict[str, Any]:
        from strata_core.launch import starting as launch

        device = launching.device
        if worker.restarts() and run_dir.exists():
            return launch.resume_run(
                run_dir, device=device, predicted_peak_bytes=predicted, observer=observer, stop=stop
            )
        observer.notice(f"run directory {run_dir}")
        return launch.train(
            recipe, run_dir, device=device, predicted_peak_bytes=predicted, observer=observer, stop=stop
        )

    settings = [argument for override in overrides for argument in ("--set", override)]
    arguments = [f"train-{kind}", "--recipe", recipe_name, "--out", str(run_dir), *launching.arguments(), *settings]
    if quiet:
        arguments.append("--quiet")
    return run_training(work, lambda: recipe, arguments, launching, json_output=json_output, quiet=quiet)


def new_run_dir(recipe_name: str) -> Path:
    """A directory under runs/ that is not there yet, named after the recipe: runs/small-1, runs/small-2, ..."""
    name = re.sub(r"[^\w.-]+", "-", Path(recipe_name).stem) or "run"
    number = 1
    while os.path.lexists(_RUNS_FOLDER / f"{name}-{number}"):
        number += 1
    return _RUNS_FOLDER / f"{name}-{number}"
