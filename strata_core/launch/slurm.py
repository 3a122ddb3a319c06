"""A task of a Slurm job step as a rank: what srun tells its tasks, in the words of torchrun.

Names of variables and the form of host lists: the manual pages srun(1) and scontrol(1).
"""

from __future__ import annotations

import re
from collections.abc import MutableMapping

from strata_core.errors import UsageError

_STEP = ("SLURM_STEP_ID", "SLURM_PROCID", "SLURM_LOCALID")
_FIRST_PORT = 20000
_PORTS = 10000


def join_step(environment: MutableMapping[str, str]) -> None:
    """Adds torchrun's variables where srun started this process as one of several and nobody has set them.

    Ranks meet on the first node of the step; MASTER_ADDR and MASTER_PORT win where they are set. Outside a step of
    several tasks (a batch script, an interactive shell, `srun --ntasks=1`) nothing changes, nor where only a part of
    what tells a task its place is left in the environment.

    Args:
        environment: the process's environment variables.

    Raises:
        UsageError: the step's list of nodes cannot be read.
    """
    if "RANK" in environment or any(name not in environment for name in _STEP):
        return
    # An interactive step has the job's number of tasks in SLURM_NTASKS and its own, one, here.
    tasks = int(environment.get("SLURM_STEP_NUM_TASKS") or environment.get("SLURM_NTASKS", "1"))
    if tasks == 1:
        return
    environment["RANK"] = environment["SLURM_PROCID"]
    environment["WORLD_SIZE"] = str(tasks)
    environment["LOCAL_RANK"] = environment["SLURM_LOCALID"]
    if "SLURM_STEP_TASKS_PER_NODE" in environment and "SLURM_NODEID" in environment:
        counts = tasks_per_node(environment["SLURM_STEP_TASKS_PER_NODE"])
        environment["LOCAL_WORLD_SIZE"] = str(counts[int(environment["SLURM_NODEID"])])
    if "MASTER_ADDR" not in environment:
        nodes = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST", "")
        environment["MASTER_ADDR"] = first_host(nodes)
    job, step = environment.get("SLURM_JOB_ID", "0"), environment["SLURM_STEP_ID"]
    environment.setdefault("MASTER_PORT", str(meeting_port(int(job), int(step))))


def first_host(nodes: str) -> str:
    """The first host of a Slurm list such as `node[01-03,7],login`: node01.

    Raises:
        UsageError: it is no such list.
    """
    match = re.match(r"([^\[\],]+)(?:\[(\d+)(?:[-,][\d,-]*)?\]([^\[\],]*))?(?:,|$)", nodes)
    if match is None:
        raise UsageError(
            f"Slurm's list of nodes {nodes!r} cannot be read", hint="set MASTER_ADDR to the first node's address"
        )
    prefix, number, suffix = match.groups()
    return f"{prefix}{number or ''}{suffix or ''}"


def tasks_per_node(text: str) -> list[int]:
    """The number of tasks on each node from Slurm's short form: `4(x2),3` is 4, 4, 3."""
    counts: list[int] = []
    for count, repetitions in re.findall(r"(\d+)(?:\(x(\d+)\))?", text):
        counts += [int(count)] * int(repetitions or 1)
    return counts


def meeting_port(job: int, step: int) -> int:
    """A port that all tasks of a step arrive at, and that steps running side by side are unlikely to share."""
    return _FIRST_PORT + (job * 7 + step) % _PORTS
