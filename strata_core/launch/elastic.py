"""Starts the ranks of a run on this node through torch's elastic agent, and tells how they ended.

Every rank is a process of its own that runs the same command again; it finds its place in torchrun's environment
variables, so a run started here, by torchrun or by srun takes the same path. Results and failures come back as files in
an exchange folder, since exit codes and torch's error files keep neither the hint nor the order of two failures within
a second.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strata_core.errors import StrataError, UsageError
from strata_core.launch.stop_relay import StopRelay
from strata_core.launch.worker import (
    EXCHANGE_VARIABLE,
    LAUNCHER_VARIABLE,
    Failure,
    read_failures,
    read_result,
    tell,
)
from strata_core.training.stop import StopRequests

SECONDS_TO_SHUT_DOWN = 10
"""How long ranks may take to end after one of them has failed."""

SECONDS_APART = 3.0
"""Failures so close together may be one: a rank's own, and those of the ranks that lost it."""


@dataclass(frozen=True)
class LaunchPlan:
    """How many processes to start, and where they meet.

    Attributes:
        nproc: ranks on this node.
        nnodes: nodes of the run.
        rdzv_endpoint: host:port where nodes meet, served by the node that has that address; needed for several nodes.
        max_restarts: how often the ranks are started again, from the newest whole checkpoint, when one dies.

    Raises:
        UsageError: it cannot be carried out.
    """

    nproc: int
    nnodes: int = 1
    rdzv_endpoint: str | None = None
    max_restarts: int = 0

    def __post_init__(self) -> None:
        if self.nnodes < 1 or self.max_restarts < 0:
            raise UsageError("--nnodes must be at least 1 and --max-restarts at least 0")
        if self.nnodes > 1 and self.rdzv_endpoint is None:
            raise UsageError(
                f"--nnodes {self.nnodes} needs --rdzv-endpoint HOST:PORT",
                hint="name the first node and a free port on it",
            )

    @property
    def is_needed(self) -> bool:
        """Whether a launcher has to stand over the run at all."""
        return self.nproc > 1 or self.nnodes > 1 or self.max_restarts > 0


class WorkerError(StrataError):
    """What the rank that failed first said, with the exit code it ended with."""

    def __init__(self, failure: Failure, *, ranks: int) -> None:
        message = failure.message if ranks == 1 else f"rank {failure.rank}: {failure.message}"
        super().__init__(message, problems=tuple(failure.problems), hint=failure.hint)
        self.exit_code = failure.exit_code


def launch(command: Sequence[str], plan: LaunchPlan, facts: Mapping[str, Any], stop: StopRequests) -> dict[str, Any]:
    """Runs `command` as every rank of this node and waits for all of them.

    SIGTERM, SIGUSR1 and SIGINT are passed on to the ranks, which agree to stop. No rank outlives this process for
    long: each watches its parent.

    Args:
        command: program and arguments.
        plan: how many and where.
        facts: what the ranks find in `worker.told`.
        stop: what this process was asked for until now; its signals are given back to it at the end.

    Returns:
        The result that local rank 0 reported.

    Raises:
        WorkerError: a rank failed; the one that failed first on this node.
    """
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="strata-launch-") as folder, _environment(folder, plan):
        exchange = Path(folder)
        tell(exchange, facts)
        config = LaunchConfig(
            min_nodes=plan.nnodes,
            max_nodes=plan.nnodes,
            nproc_per_node=plan.nproc,
            run_id="strata" if plan.nnodes > 1 else uuid.uuid4().hex,
            rdzv_backend="c10d",
            rdzv_endpoint=plan.rdzv_endpoint or "localhost:0",
            max_restarts=plan.max_restarts,
            # Torch would end the ranks with the signals that mean "save and stop", and with SIGHUP even under nohup.
            signals_to_handle="SIGQUIT",
            logs_specs=DefaultLogsSpecs(log_dir=str(exchange / "torch")),
            log_line_prefix_template="",
            # Once a rank has failed the others cannot reach a common step any more, so there is nothing to wait for.
            shutdown_timeout=SECONDS_TO_SHUT_DOWN,
        )
        relay = StopRelay(exchange, stop)
        try:
            elastic_launch(config, command[0])(*command[1:])
        except ChildFailedError as error:
            raise _first_failure(exchange, error, plan.nproc * plan.nnodes) from None
        finally:
            relay.end()
        result = read_result(exchange)
    if result is None:
        raise StrataError("the ranks ended without a result")
    return result


@contextlib.contextmanager
def _environment(exchange: str, plan: LaunchPlan) -> Iterator[None]:
    """The environment variables that the ranks inherit, in this process meanwhile."""
    before = dict(os.environ)
    os.environ.update({EXCHANGE_VARIABLE: exchange, LAUNCHER_VARIABLE: str(os.getpid())})
    # A store that lives on between restarts would hand the new ranks the addresses of the old ones.
    os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // plan.nproc)))
    # When a rank dies, the others' sockets would fill the screen with C++ stack traces.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _first_failure(exchange: Path, error: Any, ranks: int) -> WorkerError:
    failures = read_failures(exchange)
    for rank, failure in error.failures.items():
        if rank not in {known.rank for known in failures}:
            failures.append(_silent_failure(rank, failure))
    failures.sort(key=lambda failure: failure.time)
    # A rank that lost its peers tells of the failure of another, unless nobody else failed until it gave up.
    together = [failure for failure in failures if failure.time <= failures[0].time + SECONDS_APART]
    own = [failure for failure in together if not failure.lost_peers]
    return WorkerError((own or together)[0], ranks=ranks)


def _silent_failure(rank: int, failure: Any) -> Failure:
    """The failure of a rank that could not report it: killed by a signal, or ended by an unforeseen exit."""
    code = failure.exitcode
    if code < 0:
        message = f"killed by {signal.Signals(-code).name}"
    else:
        message = f"ended with exit code {code}"
    hint = "the run goes on with: strata resume RUN_DIR" if code in (-signal.SIGKILL, -signal.SIGTERM) else None
    return Failure(rank, float(failure.timestamp), message, (), hint, StrataError.exit_code, lost_peers=False)


def local_ranks(asked: str) -> int:
    """The number of ranks for `--nproc`: a number, or "auto": one for each GPU, 1 without any.

    Raises:
        UsageError: neither.
    """
    if asked == "auto":
        import torch

        return max(1, torch.cuda.device_count())
    if not asked.isdecimal() or int(asked) < 1:
        raise UsageError(f"--nproc {asked}: must be a number of processes or auto")
    return int(asked)


def strata_command(*arguments: str) -> list[str]:
    """The command that runs strata with these arguments in a process of its own."""
    return [sys.executable, "-m", "strata_cli", *arguments]
