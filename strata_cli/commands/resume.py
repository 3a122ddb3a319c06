"""`strata resume`: a run that goes on from one of its checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from strata_cli.commands.training import LaunchOptions, join_step, run_training
from strata_core.errors import UsageError
from strata_core.files import expand_path
from strata_core.launch import worker
from strata_core.observer import Observer
from strata_core.recipes.changes import RESUMABLE_KEYS
from strata_core.recipes.tables import TrainingRecipe
from strata_core.training.checkpoint_choice import LATEST, check_choice
from strata_core.training.stop import StopRequests


def resume(
    run_dir: str,
    start_from: str,
    overrides: Sequence[str],
    *,
    launching: LaunchOptions,
    json_output: bool,
    quiet: bool,
) -> int:
    """Goes on with a run, shows progress and the result, and returns the exit code."""
    join_step(launching)
    path = expand_path(run_dir)
    if not path.is_dir():
        raise UsageError(f"{path}: no such run directory", hint="name one that strata train-lm or train-graph made")
    check_choice(start_from)

    def find_recipe() -> TrainingRecipe | None:
        from strata_core.launch.starting import recipe_to_resume

        return recipe_to_resume(path, start_from, overrides)

    def work(predicted: int | None, observer: Observer, stop: StopRequests) -> dict[str, Any]:
        from strata_core.launch import starting as launch

        return launch.resume_run(
            path,
            # After a rank died, the newest checkpoint is the place to go on from, whatever came first.
            start_from=LATEST if worker.restarts() else start_from,
            overrides=overrides,
            device=launching.device,
            predicted_peak_bytes=predicted,
            observer=observer,
            stop=stop,
        )

    settings = [argument for override in overrides for argument in ("--set", override)]
    arguments = ["resume", "--from", start_from, *launching.arguments(), *settings]
    if quiet:
        arguments.append("--quiet")
    return run_training(
        work,
        find_recipe,
        [*arguments, "--", str(path)],
        launching,
        json_output=json_output,
        quiet=quiet,
        changeable=RESUMABLE_KEYS,
    )
