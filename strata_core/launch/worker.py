"""One rank's side of a launch: where it writes, what it reports, and how it notices that its launcher is gone."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from strata_core.errors import LostRankError, StrataError
from strata_core.training.stop import StopRequests

EXCHANGE_VARIABLE = "STRATA_EXCHANGE"
"""Names the folder through which ranks report to the launcher on their node."""

LAUNCHER_VARIABLE = "STRATA_LAUNCHER"
"""The launcher's process id."""

STOP_NAME = "stop.json"
"""In the exchange folder, why the ranks are asked to stop; absent until they are."""

LAUNCHER_POLL_SECONDS = 0.2
SECONDS_TO_LEAVE = 25.0
"""How long a rank may take to save after its launcher died."""


@dataclass(frozen=True)
class Failure:
    """How a rank failed.

    Attributes:
        rank: which one.
        time: when, in seconds since the epoch.
        message, problems, hint: for the operator.
        exit_code: what the rank ended with.
        lost_peers: whether all it met was that another rank was gone.
    """

    rank: int
    time: float
    message: str
    problems: tuple[str, ...]
    hint: str | None
    exit_code: int
    lost_peers: bool


def is_worker() -> bool:
    """Whether this process was started as one rank of several."""
    return world_size() > 1 or has_launcher()


def has_launcher() -> bool:
    """Whether strata's own launcher started this rank and waits for its report."""
    return EXCHANGE_VARIABLE in os.environ


def world_size() -> int:
    """How many ranks the run has."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def local_world_size() -> int:
    """How many of them are on this node; all, where the launcher does not say."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", world_size()))


def rank() -> int:
    """This process's rank, 0 where it is alone."""
    return int(os.environ.get("RANK", "0"))


def restarts() -> int:
    """How often the elastic agent has started the ranks again."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def report_result(result: dict[str, Any]) -> None:
    """Tells the launcher on this node how the run ended; local rank 0 speaks for all."""
    exchange = os.environ.get(EXCHANGE_VARIABLE)
    if exchange and os.environ.get("LOCAL_RANK", "0") == "0":
        _write(Path(exchange, "result.json"), result)


def report_failure(error: StrataError) -> None:
    """Tells the launcher on this node why this rank failed."""
    failure = Failure(
        rank(),
        time.time(),
        error.message,
        error.problems,
        error.hint,
        error.exit_code,
        lost_peers=isinstance(error, LostRankError),
    )
    _write(Path(os.environ[EXCHANGE_VARIABLE], f"failure-{rank()}.json"), asdict(failure))


def told() -> dict[str, Any]:
    """What the launcher has to tell its ranks; empty without one."""
    exchange = os.environ.get(EXCHANGE_VARIABLE)
    return json.loads(Path(exchange, "told.json").read_text()) if exchange else {}


def tell(exchange: Path, facts: Mapping[str, Any]) -> None:
    """The launcher's side of `told`."""
    _write(exchange / "told.json", facts)


def read_result(exchange: Path) -> dict[str, Any] | None:
    """What `report_result` wrote."""
    path = exchange / "result.json"
    return json.loads(path.read_text()) if path.exists() else None


def read_failures(exchange: Path) -> list[Failure]:
    """What the ranks reported, each about its last start."""
    return [Failure(**json.loads(path.read_text())) for path in exchange.glob("failure-*.json")]


def _write(path: Path, value: Any) -> None:
    if not path.parent.exists():  # the launcher is gone, and nobody will read this
        return
    aside = path.with_suffix(".aside")
    aside.write_text(json.dumps(value))
    os.replace(aside, path)


def ask_for_stop(exchange: Path, reason: str) -> None:
    """The launcher's way of asking the ranks on its node to save and leave."""
    _write(exchange / STOP_NAME, reason)


def watch_launcher(stop: StopRequests) -> None:
    """Asks for a stop when the launcher does or dies; once it is dead, leaves for good when stopping takes long."""
    if not has_launcher():
        return
    exchange, launcher = Path(os.environ[EXCHANGE_VARIABLE]), int(os.environ[LAUNCHER_VARIABLE])
    # What an earlier start of this rank said is out of date.
    (exchange / f"failure-{rank()}.json").unlink(missing_ok=True)

    def watch() -> None:
        while os.getppid() == launcher:
            time.sleep(LAUNCHER_POLL_SECONDS)
            if not stop.requested and (exchange / STOP_NAME).exists():
                stop.request(json.loads((exchange / STOP_NAME).read_text()))
        stop.request("the launcher is gone")
        shutil.rmtree(exchange, ignore_errors=True)
        time.sleep(SECONDS_TO_LEAVE)
        os._exit(1)

    threading.Thread(target=watch, name="launcher-watch", daemon=True).start()


class RankLog:
    """Where a rank other than the first writes: a temporary file, then `logs/rank-N.log` of the run."""

    def __init__(self) -> None:
        self._file = tempfile.NamedTemporaryFile(prefix=f"strata-rank-{rank()}-", suffix=".log")  # noqa: SIM115
        self._redirect(self._file.fileno())

    def move_to(self, run: str | Path) -> None:
        """Goes on in the run's folder."""
        folder = Path(run, "logs")
        folder.mkdir(exist_ok=True)
        path = folder / f"rank-{rank()}.log"
        with open(self._file.name, "rb") as earlier, open(path, "ab") as log:
            shutil.copyfileobj(earlier, log)
            log.flush()
            self._redirect(log.fileno())
        self._file.close()

    def _redirect(self, descriptor: int) -> None:
        for stream in (1, 2):
            os.dup2(descriptor, stream)
