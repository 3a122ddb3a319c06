"""What a run's manifest records about how it was made."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch import nn

import strata_core
from strata_core.training.distributed import Ranks
from strata_core.training.precision import Precision

_LIBRARIES = ("torch", "numpy", "safetensors", "tokenizers", "pydantic")
_RANK_VARIABLES = ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE")


def environment_record(device: torch.device, ranks: Ranks, *, deterministic: bool) -> dict[str, Any]:
    """Versions, device, threads, ranks, and whether deterministic kernels were asked for and obtained."""
    return {
        "strata": strata_core.__version__,
        "code": _git_state(Path(strata_core.__file__)),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "cuda": torch.version.cuda,
        "device": device.type,
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else _processor(),
        "threads": torch.get_num_threads(),
        "world_size": ranks.world_size,
        "rank_environment": {name: os.environ[name] for name in _RANK_VARIABLES if name in os.environ},
        "determinism": {
            "asked": deterministic,
            "obtained": torch.are_deterministic_algorithms_enabled()
            and (device.type != "cuda" or "CUBLAS_WORKSPACE_CONFIG" in os.environ),
            "cublas_workspace": os.environ.get("CUBLAS_WORKSPACE_CONFIG"),
        },
    }


def model_record(model: nn.Module) -> dict[str, Any]:
    """Parameter counts, shared ones once: all, trained, and by the modules one level below the root's children."""
    buckets: Counter[str] = Counter()
    trained = 0
    for name, parameter in model.named_parameters():
        buckets[".".join(name.split(".")[:2])] += parameter.numel()
        trained += parameter.numel() if parameter.requires_grad else 0
    return {"parameters": sum(buckets.values()), "trained_parameters": trained, "parameter_buckets": dict(buckets)}


def precision_record(precision: Precision) -> dict[str, Any]:
    """The precision asked for and the one obtained."""
    return {"asked": precision.asked, "effective": precision.effective}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or sys.platform


def _git_state(module: Path) -> dict[str, Any] | None:
    """The commit that the code was checked out from and whether it was changed since; None outside a checkout.

    A repository that does not track the module is somebody else's, with the package installed inside it.
    """
    folder = module.parent
    try:
        _git(folder, "ls-files", "--error-unmatch", module.name)
        commit = _git(folder, "rev-parse", "HEAD")
        return {"commit": commit, "dirty": bool(_git(folder, "status", "--porcelain", "--untracked-files=no"))}
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
