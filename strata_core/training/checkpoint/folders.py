"""Names inside a run's checkpoints folder, and the traces that a killed process can leave there."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from strata_core.errors import UsageError
from strata_core.files import sync_folder
from strata_core.training.checkpoint.faults import fault_point
from strata_core.training.checkpoint_choice import BEST, LATEST, check_choice

_STEP_FOLDER = re.compile(r"step-(\d{8,})")
_LEFTOVER = re.compile(r"\.(step-\d{8,})\.(partial|removing|aside)")


def step_folder_name(step: int) -> str:
    """The name of a step's folder, zero-padded so that up to 8 digits text order is number order."""
    return f"step-{step:08d}"


def step_of(name: str) -> int | None:
    """The step that a folder name stands for, None for any other name."""
    match = _STEP_FOLDER.fullmatch(name)
    return int(match.group(1)) if match else None


def steps_in(folder: Path) -> list[int]:
    """The steps that have a folder, in number order; whether each is whole is another question."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return sorted(step for name in names if (step := step_of(name)) is not None)


def linked_step(link: Path) -> int | None:
    """The step that `latest` or `best` points to, None where the link is absent or points to nothing."""
    if not link.is_symlink() or not link.exists():
        return None
    return step_of(os.path.basename(os.readlink(link)))


def named_checkpoint(folder: Path, name: str) -> Path:
    """The checkpoint that a person calls "latest", "best" or by its step's number.

    Raises:
        UsageError: another name, or no such checkpoint; the message says which there are.
    """
    check_choice(name)
    chosen = folder / (name if name in (LATEST, BEST) else step_folder_name(int(name)))
    if not chosen.exists():
        known = ", ".join(map(str, steps_in(folder)))
        raise UsageError(f"{folder.parent} has no checkpoint {name}", hint=f"it has steps {known or 'none'}")
    return chosen


def put_in_place(partial: Path, final: Path) -> None:
    """Gives a finished folder its final name; a folder that has the name steps aside first and goes afterwards.

    A kill between the two renames leaves the old folder aside, and `clear_leftovers` brings it back.
    """
    aside = final.with_name(f".{final.name}.aside")
    if os.path.lexists(final):
        os.rename(final, aside)
        fault_point("old one aside")
    os.rename(partial, final)
    fault_point("renamed")
    sync_folder(final.parent)
    shutil.rmtree(aside, ignore_errors=True)


def clear_leftovers(folder: Path) -> None:
    """Removes what a killed process left half made or half removed; only the process that holds the run may do so."""
    for name in os.listdir(folder):
        match = _LEFTOVER.fullmatch(name)
        if match is None:
            continue
        leftover, final = folder / name, folder / match.group(1)
        if match.group(2) == "aside" and not os.path.lexists(final):
            os.rename(leftover, final)
            sync_folder(folder)
        else:
            shutil.rmtree(leftover, ignore_errors=True)
