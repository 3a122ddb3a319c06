"""What train-lm, train-graph and resume share: alone, as the launcher of several ranks, or as one of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from strata_cli.commands.training_result import finish
from strata_cli.display.errors import show_line
from strata_cli.display.output import write_json, write_text
from strata_cli.display.plain import PlainObserver
from strata_cli.display.progress import shown_progress
from strata_core.launch import rank_environment, slurm, worker
from strata_core.memory_fit import MemoryPlan, parse_bytes, require_fit
from strata_core.observer import Observer
from strata_core.recipes.tables import TrainingRecipe
from strata_core.training.stop import StopRequests

if TYPE_CHECKING:
    from strata_core.launch.elastic import LaunchPlan

Work = Callable[[int | None, Observer, StopRequests], dict[str, Any]]
"""Trains in this process, given the predicted peak in bytes, and returns the result; imports torch when called."""


@dataclass(frozen=True)
class LaunchOptions:
    """How a training command starts its ranks, and what they look like, as given on the command line."""

    device: str = "auto"
    device_memory: str | None = None
    nproc: str = "1"
    nnodes: int = 1
    rdzv_endpoint: str | None = None
    max_restarts: int = 0

    def __post_init__(self) -> None:
        """Refuses a size that is none before anything is read.

        Raises:
            UsageError: `device_memory` is no size.
        """
        _ = self.device_memory_bytes

    @property
    def device_memory_bytes(self) -> int | None:
        """The size that was given."""
        return None if self.device_memory is None else parse_bytes(self.device_memory)

    def arguments(self) -> list[str]:
        """What every rank has to be told."""
        return ["--device", self.device]

    @property
    def ask_for_launcher(self) -> bool:
        """Whether this process is to start ranks itself."""
        return self.nproc != "1" or self.nnodes > 1 or self.max_restarts > 0


def join_step(options: LaunchOptions) -> None:
    """Makes this process a rank where srun started several tasks; tasks that are launchers stay what they are.

    Raises:
        UsageError: the environment makes this process a rank that cannot be, or a launcher is a rank itself.
    """
    if worker.has_launcher():
        return
    if not options.ask_for_launcher:
        slurm.join_step(os.environ)
    ignored = rank_environment.leave_out_parts(os.environ)
    if ignored is not None:
        show_line("warning", ignored)
    if options.ask_for_launcher:
        rank_environment.refuse_second_launch(os.environ)


def run_training(
    work: Work,
    find_recipe: Callable[[], TrainingRecipe | None],
    arguments: Sequence[str],
    options: LaunchOptions,
    *,
    json_output: bool,
    quiet: bool,
    changeable: frozenset[str] | None = None,
) -> int:
    """Checks that the run fits, then does the work here or has every rank run strata with these arguments.

    Args:
        work: what this process does as the only rank or as one of several.
        find_recipe: gives the run's settings; None where nothing is left to train.
        arguments: the command line by which a rank does its work.
        options: how many ranks, and where.
        json_output: whether the result is one JSON object.
        quiet: whether only warnings and errors are shown.
        changeable: the settings that may change to make the run fit; None: all.

    Returns:
        The exit code.

    Raises:
        MemoryFitError: the run cannot fit; nothing was started.
        StrataError: what the work, or the rank that failed first, ended with.
    """
    stop = StopRequests()
    stop.listen()
    try:
        if worker.has_launcher():
            # The launcher shows the result. To its agent any exit code but 0 would be a failure to restart from.
            _as_rank(work, worker.told()["predicted_peak_bytes"], stop, quiet=quiet)
            return 0
        result = _result(work, find_recipe(), arguments, options, stop, quiet=quiet, changeable=changeable)
    finally:
        stop.ignore()
    first = worker.rank() == 0
    return finish(result, json_output=json_output and first, quiet=quiet or not first)


def _result(
    work: Work,
    recipe: TrainingRecipe | None,
    arguments: Sequence[str],
    options: LaunchOptions,
    stop: StopRequests,
    *,
    quiet: bool,
    changeable: frozenset[str] | None,
) -> dict[str, Any]:
    launch_plan = _launch_plan(options)
    predicted = None
    if worker.rank() == 0 and recipe is not None:
        memory_plan = _memory_plan(recipe, options, quiet=quiet, changeable=changeable)
        if not quiet:
            from strata_cli.display.memory_table import show_before_launch

            show_before_launch(memory_plan)
        require_fit(memory_plan)
        predicted = memory_plan.predicted_peak_bytes
    if worker.is_worker():
        return _as_rank(work, predicted, stop, quiet=quiet)
    if recipe is not None and launch_plan.is_needed:
        from strata_core.launch.elastic import launch, strata_command

        return launch(strata_command(*arguments), launch_plan, {"predicted_peak_bytes": predicted}, stop)
    with shown_progress(quiet=quiet) as observer:
        return work(predicted, observer, stop)


def _launch_plan(options: LaunchOptions) -> LaunchPlan:
    from strata_core.launch.elastic import LaunchPlan, local_ranks

    return LaunchPlan(local_ranks(options.nproc), options.nnodes, options.rdzv_endpoint, options.max_restarts)


def show_plan(recipe: TrainingRecipe, options: LaunchOptions, *, json_output: bool, quiet: bool) -> None:
    """`--dry-run`: the resolved recipe and the memory plan on standard output.

    Raises:
        MemoryFitError: the run cannot fit; what was asked for has been written all the same.
    """
    from strata_cli.display.memory_table import show_below_recipe
    from strata_core.recipes.writing import dump_recipe, recipe_tables

    plan = _memory_plan(recipe, options, quiet=quiet, dry_run=True)
    if json_output:
        write_json({"recipe": recipe_tables(recipe), "memory": plan.as_json()})
    else:
        write_text(dump_recipe(recipe).decode())
        show_below_recipe(plan)
    require_fit(plan)


def _memory_plan(
    recipe: TrainingRecipe,
    options: LaunchOptions,
    *,
    quiet: bool,
    changeable: frozenset[str] | None = None,
    dry_run: bool = False,
) -> MemoryPlan:
    from strata_core.launch.starting import plan_memory

    if worker.is_worker():
        world_size, ranks_here = worker.world_size(), worker.local_world_size()
    else:
        launch_plan = _launch_plan(options)
        world_size, ranks_here = launch_plan.nproc * launch_plan.nnodes, launch_plan.nproc
    with shown_progress(quiet=quiet) as observer:
        return plan_memory(
            recipe,
            device=options.device,
            world_size=world_size,
            ranks_on_host=ranks_here,
            device_memory_bytes=options.device_memory_bytes,
            changeable=changeable,
            dry_run=dry_run,
            observer=observer,
        )


def _as_rank(work: Work, predicted_peak_bytes: int | None, stop: StopRequests, *, quiet: bool) -> dict[str, Any]:
    """One rank's part; the first one shows progress, the others write into the run's logs."""
    worker.watch_launcher(stop)
    rank_log = worker.RankLog() if worker.rank() != 0 else None

    from torch.distributed.elastic.multiprocessing.errors import record

    # torch's own record lets torchrun name the rank that failed first.
    recorded = cast(Work, record(work))
    if rank_log is None:
        with shown_progress(quiet=quiet) as observer:
            result = recorded(predicted_peak_bytes, observer, stop)
    else:
        result = recorded(predicted_peak_bytes, _RankObserver(rank_log), stop)
    worker.report_result(result)
    return result


class _RankObserver(PlainObserver):
    """Plain lines, in the run's folder from the moment it is there."""

    def __init__(self, log: worker.RankLog) -> None:
        super().__init__()
        self._log = log

    def training_started(self, facts: Any) -> None:
        self._log.move_to(facts["run_dir"])
        super().training_started(facts)
