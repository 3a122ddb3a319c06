"""The ranks of a run. One process is the case of one rank: the same calls, nothing to send."""

from __future__ import annotations

import contextlib
import datetime
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
import torch.distributed as dist
from torch import Tensor

from strata_core.errors import DataError, LostRankError, UsageError


@dataclass(frozen=True)
class Ranks:
    """This process's place among the processes of a run."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    pulse: Pulse | None = None

    @property
    def is_first(self) -> bool:
        """Whether this rank writes the run's files."""
        return self.rank == 0

    def slice(self, items: int) -> range:
        """The indices of this rank's part of `items` things, in the order of the whole."""
        share = items // self.world_size
        return range(self.rank * share, (self.rank + 1) * share)

    def sum(self, tensor: Tensor) -> Tensor:
        """Adds `tensor` over ranks, in place, and returns it."""
        if self.world_size > 1:
            self.arrive()
            dist.all_reduce(tensor)
        return tensor

    def arrive(self) -> None:
        """Notes that this rank has come to a point where ranks wait for each other."""
        if self.pulse is not None:
            self.pulse.meetings += 1

    def any(self, flag: bool, device: torch.device) -> bool:
        """Whether any rank says yes; every rank has to ask."""
        if self.world_size == 1:
            return flag
        return bool(self.sum(torch.tensor([float(flag)], device=device)).item())

    def check_same(self, number: int, what: str, device: torch.device) -> None:
        """Makes sure that this rank has found the number that the first rank has; every rank has to ask.

        Raises:
            DataError: it has found another.
        """
        if self.world_size == 1:
            return
        self.arrive()
        first = torch.tensor([number], device=device)
        dist.broadcast(first, src=0)
        if first.item() != number:
            raise DataError(
                f"rank {self.rank} finds {what} {number}, rank 0 finds {first.item()}",
                hint="the nodes do not see the same files; once their shared file system has caught up, resume again",
            )

    def barrier(self) -> None:
        """Waits until every rank is here."""
        if self.world_size > 1:
            dist.barrier()


ALONE = Ranks()
"""A run in one process."""


def choose_device(asked: str, local_rank: int) -> torch.device:
    """The device for "auto" (CUDA, then MPS, then CPU), "cpu", "cuda" or "mps"; each local rank takes its own GPU.

    Raises:
        UsageError: the machine has no such device, or fewer than there are local ranks.
    """
    if asked == "auto":
        asked = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    if asked == "cuda":
        if not torch.cuda.is_available():
            raise UsageError("--device cuda: torch finds no CUDA device here", hint="strata env shows what it finds")
        if local_rank >= torch.cuda.device_count():
            raise UsageError(
                f"local rank {local_rank} has no GPU: torch finds {torch.cuda.device_count()}",
                hint="launch at most one rank for each GPU",
            )
        return torch.device("cuda", local_rank)
    if asked == "mps" and not torch.backends.mps.is_available():
        raise UsageError("--device mps: torch finds no Metal device here", hint="strata env shows what it finds")
    return torch.device(asked)


@contextlib.contextmanager
def joined_ranks(device: str, timeout_seconds: int) -> Iterator[tuple[Ranks, torch.device]]:
    """Joins the other processes of the run, where a launcher started several, and leaves them at the end.

    The launcher's environment (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT) is torchrun's.

    Raises:
        LostRankError: another rank is gone or did not answer in time.
    """
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    if world_size == 1:
        yield ALONE, _taken(choose_device(device, 0))
        return
    ranks = Ranks(int(os.environ["RANK"]), world_size, int(os.environ.get("LOCAL_RANK", "0")))
    place = _taken(choose_device(device, ranks.local_rank))
    pulse = Pulse(_meet(ranks, place, datetime.timedelta(seconds=timeout_seconds)), ranks)
    try:
        yield replace(ranks, pulse=pulse), place
    except RuntimeError as error:
        if not _is_lost_peer(error):
            raise
        raise LostRankError(f"lost the other ranks: {pulse.late_ranks()} ({_first_line(error)})") from error
    finally:
        pulse.stop()
        if dist.is_initialized():
            dist.destroy_process_group()


def _meet(ranks: Ranks, place: torch.device, timeout: datetime.timedelta) -> dist.Store:
    """Forms the process group; returns the store through which its ranks met."""
    try:
        store, _, _ = next(iter(dist.rendezvous("env://", timeout=timeout)))
        dist.init_process_group(
            "nccl" if place.type == "cuda" else "gloo",
            store=store,
            rank=ranks.rank,
            world_size=ranks.world_size,
            timeout=timeout,
            device_id=place if place.type == "cuda" else None,
        )
    except RuntimeError as error:
        if not _is_lost_peer(error):
            raise
        where = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        raise LostRankError(f"did not meet all other ranks at {where} ({_first_line(error)})") from error
    return store


class Pulse:
    """Each rank's sign of life in the store that all share, so that a time-out can name the rank that is late.

    Attributes:
        meetings: how often this rank has come to a point where ranks wait for each other.
    """

    interval_seconds = 1.0

    def __init__(self, store: dist.Store, ranks: Ranks) -> None:
        self.meetings = 0
        self._store = store
        self._ranks = ranks
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="pulse", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No more beats: the store is not in use when the ranks part."""
        self._stopped.set()
        self._thread.join(timeout=self.interval_seconds)

    def late_ranks(self) -> str:
        """The ranks that are silent, or have not come as far as this one, for a message."""
        try:
            beats = {other: self._last_beat(other) for other in range(self._ranks.world_size)}
        except RuntimeError:
            return "rank 0, which keeps the ranks' meeting point, is gone"
        late = []
        for other, (when, meetings) in beats.items():
            silent_seconds = time.time() - when
            if silent_seconds > 5 * self.interval_seconds:
                late.append(f"rank {other} is silent since {silent_seconds:.0f} s")
            elif meetings < self.meetings:
                late.append(f"rank {other} is late: at meeting {meetings}, this rank waits at {self.meetings}")
        return ", ".join(late) or "all of them have come as far as this one"

    def _last_beat(self, rank: int) -> tuple[float, int]:
        key = f"pulse/{rank}"
        when, meetings = self._store.get(key).split() if self._store.check([key]) else ("0", "0")
        return float(when), int(meetings)

    def _beat(self) -> None:
        while not self._stopped.is_set():
            try:
                self._store.set(f"pulse/{self._ranks.rank}", f"{time.time()} {self.meetings}")
            except RuntimeError:
                return
            self._stopped.wait(self.interval_seconds)


_LOST_PEER_SIGNS = ("gloo", "NCCL", "Connection closed by peer", "Connection reset", "timed out", "Timed out", "Socket")


def _is_lost_peer(error: RuntimeError) -> bool:
    return isinstance(error, dist.DistError) or any(sign in str(error) for sign in _LOST_PEER_SIGNS)


def _first_line(error: RuntimeError) -> str:
    return str(error).splitlines()[0][:200]


def _taken(device: torch.device) -> torch.device:
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.allow_tf32 = True
    return device
