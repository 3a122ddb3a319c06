"""The checkpoints of a run and the links that name two of them, held against what the run recorded."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from strata_core.manifest.comparison import Survey, compare_folder, read_manifest_or_fault
from strata_core.manifest.document import MANIFEST_NAME
from strata_core.manifest.faults import Fault
from strata_core.manifest.names import show_name
from strata_core.manifest.run_state import CHECKPOINTS, RunState
from strata_core.manifest.tree import Found

_STEP_FOLDER = re.compile(r"step-([0-9]+)")
_LINKS = ("latest", "best")


def compare_checkpoints(
    survey: Survey, run: Path, run_digest: str, state: RunState, found: Mapping[str, Found]
) -> None:
    """Adds to the survey what is wrong in the `checkpoints` folder of a run.

    Args:
        survey: what is added to.
        run: the folder of the run.
        run_digest: of its manifest, which every checkpoint has to name as a parent.
        state: what the run recorded.
        found: what is in `checkpoints`, by path relative to the run.
    """
    steps = []
    links = {}
    here = {path: item for path, item in found.items() if path.count("/") == 1}
    for path, item in here.items():
        name = path.removeprefix(f"{CHECKPOINTS}/")
        recorded = path in state.checkpoints
        may_be_new = not state.final and _STEP_FOLDER.fullmatch(name) is not None
        if item.kind == "a folder" and (recorded or may_be_new):
            steps.append(name)
            _compare_checkpoint(survey, run, path, run_digest, state, _below(path, found))
        elif recorded:
            survey.add([Fault("other", path, f"{item.kind} in place of a checkpoint", "a folder", item.described)])
        elif name in _LINKS and item.kind == "a link":
            links[name] = item.target
        else:
            survey.add([Fault("extra", path, "not listed", "", item.described)])
    absent = state.checkpoints.keys() - here.keys()
    survey.add(Fault("missing", path, "a recorded checkpoint is missing") for path in absent)
    _compare_links(survey, state, links, steps)


def _below(path: str, found: Mapping[str, Found]) -> dict[str, Found]:
    """What is in a folder, by path relative to it."""
    return {name.removeprefix(f"{path}/"): item for name, item in found.items() if name.startswith(f"{path}/")}


def _compare_checkpoint(
    survey: Survey, run: Path, path: str, run_digest: str, state: RunState, found: dict[str, Found]
) -> None:
    """One checkpoint: its own manifest, its place in the chain, its files."""
    prefix = f"{path}/"
    if found.pop(MANIFEST_NAME, None) is None:
        survey.add([Fault("missing", MANIFEST_NAME, "not there, so nothing beside it can be checked")], prefix=prefix)
        return
    read = read_manifest_or_fault(survey, run / path / MANIFEST_NAME, prefix=prefix)
    if read is None:
        return
    manifest, digest, refused = read
    recorded = state.checkpoints.get(path)
    if recorded is None:
        survey.notes.append(f"{show_name(path)}: not recorded by the run yet")
    elif digest != recorded:
        fault = Fault("changed", MANIFEST_NAME, "not the one that the run recorded", recorded, digest)
        survey.add([fault], prefix=prefix)
    if run_digest not in {parent.digest for parent in manifest.parents}:
        survey.add([Fault("other", MANIFEST_NAME, "this run is not its parent", run_digest)], prefix=prefix)
    compare_folder(survey, run / path, manifest.files, found, prefix=prefix, refused=refused)


def _compare_links(survey: Survey, state: RunState, links: Mapping[str, str], steps: Collection[str]) -> None:
    """In a run that is over, `latest` and `best` name what was recorded, `latest` else the highest step."""
    expected = dict(state.links)
    if steps:
        expected.setdefault("latest", max(steps, key=_step_number))
    for name in sorted(links.keys() | expected.keys()):
        path, target, wanted = f"{CHECKPOINTS}/{name}", links.get(name), expected.get(name)
        if target is not None and target not in steps:
            survey.add([Fault("other", path, "does not name a checkpoint of this run", wanted or "", target)])
        elif wanted is not None and target != wanted:
            what = "the link is missing" if target is None else "names another checkpoint"
            if state.final:
                survey.add([Fault("changed" if target else "missing", path, what, wanted, target or "")])
            else:
                survey.notes.append(f"{show_name(path)}: {what}; it should name {show_name(wanted)}")


def _step_number(name: str) -> int:
    match = _STEP_FOLDER.fullmatch(name)
    return int(match[1]) if match else -1
