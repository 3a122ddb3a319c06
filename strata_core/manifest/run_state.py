"""The state that a run's manifest tells: what there is beyond the files fixed at launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strata_core.errors import DataError
from strata_core.manifest.document import parse_entries
from strata_core.manifest.faults import Fault
from strata_core.manifest.hashing import FileEntry

CHECKPOINTS = "checkpoints"
"""The folder of a run that holds its checkpoints."""


@dataclass(frozen=True)
class RunState:
    """The state of a run.

    Attributes:
        final: whether the run is over, so that everything has to match exactly.
        logs: files that only grow, as they were when the manifest was last written.
        files: other files made since launch.
        checkpoints: digests of the manifests of the kept checkpoints, by path.
        links: the checkpoint folder that `latest` and `best` name, by link; a link left out is not recorded.
    """

    final: bool
    logs: tuple[FileEntry, ...]
    files: tuple[FileEntry, ...]
    checkpoints: dict[str, str]
    links: dict[str, str]


def parse_state(state: Mapping[str, Any], *, source: str) -> tuple[RunState, list[Fault]]:
    """The state of a run, and what is wrong with entries that are left out.

    Raises:
        DataError: a value has another shape than the format says.
    """
    final = state.get("final", False)
    if not isinstance(final, bool):
        raise DataError(f"{source}: state.final is {final!a}, not true or false")
    logs, log_faults = parse_entries(_list(state, "logs", source), source=source)
    files, file_faults = parse_entries(_list(state, "files", source), source=source)
    checkpoints: dict[str, str] = {}
    faults = []
    for item in _list(state, "checkpoints", source):
        if not isinstance(item, dict) or not all(isinstance(item.get(key), str) for key in ("path", "digest")):
            raise DataError(f"{source}: an item of state.checkpoints has no path or no digest")
        folder, _, name = item["path"].partition("/")
        if folder == CHECKPOINTS and name not in ("", ".", "..") and not set("/\\\0") & set(name):
            checkpoints[item["path"]] = item["digest"]
        else:
            faults.append(Fault("other", item["path"], f"not the path of a folder in {CHECKPOINTS}"))
    links = state.get("links", {})
    if not isinstance(links, dict) or not all(isinstance(target, str) for target in links.values()):
        raise DataError(f"{source}: state.links is not an object of names")
    found = RunState(final, tuple(logs), tuple(files), checkpoints, links)
    return found, log_faults + file_faults + faults


def _list(state: Mapping[str, Any], key: str, source: str) -> list[Any]:
    value = state.get(key, [])
    if not isinstance(value, list):
        raise DataError(f"{source}: state.{key} is not a list")
    return value
