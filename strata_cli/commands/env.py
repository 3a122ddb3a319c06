"""`strata env`: what a bug report needs to say about a machine."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from strata_cli.display.figures import bytes_text
from strata_cli.display.output import write_json, write_text

_LIBRARIES = (
    "torch",
    "numpy",
    "typer",
    "rich",
    "pydantic",
    "tomli-w",
    "safetensors",
    "tokenizers",
    "psutil",
    "zstandard",
    "filelock",
    "gigatoken",
)


def env(*, json_output: bool) -> int:
    """Prints versions, devices, threads and memory."""
    facts = _facts()
    memory = facts["memory"]
    if json_output:
        write_json(facts)
        return 0
    rows = [
        ("strata", facts["strata"]),
        ("python", f"{facts['python']} ({facts['executable']})"),
        ("platform", facts["platform"]),
        *((name, found or "not installed") for name, found in facts["libraries"].items()),
        ("cpus", f"{facts['cpus']['usable']} usable of {facts['cpus']['present']}"),
        ("torch threads", str(facts["cpus"]["torch_threads"])),
        (
            "memory",
            f"{bytes_text(memory['available_bytes'])} free of {bytes_text(memory['total_bytes'])}",
        ),
        ("cuda", facts["cuda"] or "none in this build of torch"),
        *((device["name"], _device_text(device)) for device in facts["devices"]),
    ]
    width = max(len(name) for name, _ in rows)
    write_text("\n".join(f"{name:<{width}}  {value}" for name, value in rows))
    return 0


def _facts() -> dict[str, Any]:
    import sys

    import psutil
    import torch

    from strata_core import __version__

    memory = psutil.virtual_memory()
    return {
        "strata": __version__,
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "libraries": {name: _installed(name) for name in _LIBRARIES},
        "cpus": {
            "present": os.cpu_count(),
            "usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "torch_threads": torch.get_num_threads(),
        },
        "memory": {"total_bytes": memory.total, "available_bytes": memory.available},
        "cuda": torch.version.cuda,
        "devices": _devices(torch),
    }


def _devices(torch: Any) -> list[dict[str, Any]]:
    devices: list[dict[str, Any]] = [{"name": "cpu", "model": platform.processor() or platform.machine()}]
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            properties = torch.cuda.get_device_properties(index)
            devices.append({"name": f"cuda:{index}", "model": properties.name, "memory_bytes": properties.total_memory})
    if torch.backends.mps.is_available():
        devices.append({"name": "mps", "model": "Apple GPU"})
    return devices


def _device_text(device: dict[str, Any]) -> str:
    memory = f", {bytes_text(device['memory_bytes'])}" if "memory_bytes" in device else ""
    return f"{device['model']}{memory}"


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
