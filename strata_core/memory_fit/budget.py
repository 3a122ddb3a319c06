"""How much memory one rank may use on a device of this machine."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import psutil
import torch

_UNLIMITED_BYTES = 2**60
"""Limits above this are cgroups' and the kernel's ways of saying none."""

_UNTOUCHED_BYTES = 80 * 2**20
_UNTOUCHED_BYTES_A_THREAD = 44 * 2**20
"""What a run's threads reserve for stacks and never touch, and what each compute thread beyond the first adds, since
several threads of a run have a team of them; process limits count it, resident memory does not. Measured with one
compute thread and with two."""

_CGROUP_ROOT = Path("/sys/fs/cgroup")


def free_device_bytes(device_type: str, *, index: int = 0, ranks_on_host: int = 1) -> int:
    """What one rank may use.

    Args:
        device_type: "cpu", "cuda" or "mps".
        index: which CUDA device.
        ranks_on_host: how many ranks of the run share this machine's memory; CUDA devices are not shared.

    Returns:
        On the CPU: what host, cgroups and process limits leave free, with what this process already uses (a prediction
        counts the whole process), in equal shares. On CUDA: what the driver says is free. On MPS: what Metal
        recommends as the limit.
    """
    if device_type == "cuda":
        return torch.cuda.mem_get_info(index)[0]
    if device_type == "mps":
        return torch.mps.recommended_max_memory() // ranks_on_host
    own_bytes = psutil.Process().memory_info().rss
    free = [psutil.virtual_memory().available, *_left_by_cgroups(), *_left_by_process_limits()]
    return (max(min(free), 0) + own_bytes) // ranks_on_host


def _left_by_process_limits() -> Iterator[int]:
    """What RLIMIT_AS and RLIMIT_DATA leave; the kernel enforces them on Linux only."""
    status = Path("/proc/self/status")
    if not status.exists():
        return
    untouched_bytes = _UNTOUCHED_BYTES + _UNTOUCHED_BYTES_A_THREAD * (torch.get_num_threads() - 1)
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    for limit, field in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
        limit_bytes = resource.getrlimit(limit)[0]
        if limit_bytes not in (resource.RLIM_INFINITY, -1):
            yield limit_bytes - int(lines[field].split()[0]) * 1024 - untouched_bytes


def _left_by_cgroups(root: Path = _CGROUP_ROOT, membership: Path = Path("/proc/self/cgroup")) -> Iterator[int]:
    """What each cgroup around this process leaves, page cache that can be dropped not counted as used.

    Version 2 has one hierarchy at the root, version 1 one below `memory`. A container may see its own group at the root
    whatever `membership` says.
    """
    if not membership.exists():
        return
    for line in membership.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            yield from _left_in(root, path, "memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            top = root / "memory"
            yield from _left_in(top, path, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def _left_in(top: Path, path: str, limit_file: str, usage_file: str, cache_field: str) -> Iterator[int]:
    below = Path(path.lstrip("/"))
    for folder in {top, top / below, *(top / parent for parent in below.parents)}:
        try:
            limit_text = (folder / limit_file).read_text().strip()
            used_bytes = int((folder / usage_file).read_text())
            fields = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        except OSError:  # no such group in this mount, or no limit at the root of version 2
            continue
        if limit_text != "max" and int(limit_text) < _UNLIMITED_BYTES:
            yield int(limit_text) - used_bytes + int(fields.get(cache_field, 0))
