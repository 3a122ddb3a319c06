"""A run folder held against its manifest: files fixed at launch, logs that grow, leftovers, checkpoints."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from strata_core.manifest.comparison import Survey, compare_folder
from strata_core.manifest.document import MANIFEST_NAME, Manifest, entry_faults
from strata_core.manifest.names import show_name
from strata_core.manifest.run_checkpoints import compare_checkpoints
from strata_core.manifest.run_state import CHECKPOINTS, parse_state
from strata_core.manifest.tree import Found

LOCK_NAME = ".lock"
"""Taken by whoever trains in the folder; it says nothing about the run."""

_RANK_LOG = re.compile(r"logs/rank-\d+\.log")
"""What ranks other than the first have printed, for people who look for a fault; no part of the record."""

_LATE_NAMES = frozenset({"metrics.jsonl", "evaluations.jsonl", "events.jsonl", "run.log", "overrides.toml"})
_TEMPORARY_NAMES = (".*.aside", ".*.partial*", ".*.removing")


def compare_run(
    survey: Survey, folder: Path, manifest: Manifest, found: Mapping[str, Found], *, refused: Collection[str]
) -> None:
    """Adds to the survey what is wrong with a run.

    Args:
        survey: what is added to.
        folder: the run.
        manifest: the run's.
        found: what is there, by relative path, without the manifest itself.
        refused: listed paths whose entries cannot be used.

    Raises:
        DataError: the state in the manifest is malformed.
    """
    state, faults = parse_state(manifest.state, source=str(folder / MANIFEST_NAME))
    entries = [*manifest.files, *state.files, *state.logs]
    survey.add([*faults, *entry_faults(entries)])
    by_path = {entry.path: entry for entry in reversed(entries)}
    present = {name: item for name, item in found.items() if not is_of_no_account(name, item)}
    if not state.final:
        present = _without_leftovers(survey, present, listed=by_path.keys())
    checkpoints = {name: item for name, item in present.items() if name.startswith(f"{CHECKPOINTS}/")}
    others = {name: item for name, item in present.items() if name not in checkpoints}
    if CHECKPOINTS in others and others[CHECKPOINTS].kind == "a folder":
        del others[CHECKPOINTS]
    compare_folder(
        survey,
        folder,
        list(by_path.values()),
        others,
        refused={*refused, *(fault.path for fault in faults)},
        growing=() if state.final else {entry.path for entry in state.logs},
    )
    compare_checkpoints(survey, folder, manifest.digest, state, checkpoints)


def _without_leftovers(survey: Survey, present: Mapping[str, Found], *, listed: Collection[str]) -> dict[str, Found]:
    """Takes out, with a note, what a run that goes on or was killed may have beside what is recorded."""
    kept = {}
    notes = {}
    for name, item in present.items():
        parts = name.split("/")
        temporary = next((depth for depth, part in enumerate(parts, 1) if _is_temporary(part)), None)
        if temporary is not None:
            notes["/".join(parts[:temporary])] = "temporary, of a process that is at work or was killed"
        elif name in _LATE_NAMES and name not in listed:
            notes[name] = "not recorded by the run yet"
        else:
            kept[name] = item
    survey.notes += [f"{show_name(name)}: {remark}" for name, remark in sorted(notes.items())]
    return kept


def is_of_no_account(name: str, item: Found) -> bool:
    """Whether a name in a run says nothing about the run: its lock, and what other ranks printed."""
    if name == "logs":
        return item.kind == "a folder"
    return name == LOCK_NAME or (item.kind == "a file" and _RANK_LOG.fullmatch(name) is not None)


def _is_temporary(name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in _TEMPORARY_NAMES)
