"""Two runs of one recipe held against each other: the first step that differs, the tensor, and which run is right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from strata_core.audit.difference import compare_checkpoints
from strata_core.errors import DataError, UsageError
from strata_core.manifest import MANIFEST_NAME, Manifest, verify
from strata_core.manifest.run_state import parse_state
from strata_core.observer import SILENT, Observer
from strata_core.replay.proof import replay
from strata_core.training.checkpoint.folders import step_folder_name, step_of
from strata_core.training.checkpoint.reading import MODEL_FILE, OPTIMIZER_FILE
from strata_core.training.run.folder import RunFolder

Right = Literal["a", "b", "neither"]


@dataclass(frozen=True)
class Settlement:
    """How two runs compare.

    Attributes:
        first_step: the first step after which they are known to differ, as far as they logged their steps and kept
            checkpoints; None where they are equal.
        tensor: the first tensor that differs in the first checkpoint of both that does, weights before moments; None
            where no tensor of a common checkpoint does.
        checkpoint_step: that checkpoint's step.
        right: which of them training again gives: "neither" where that is none or both; None where they are equal
            or where it could not be decided.
        notes: one line each about what a reader should know.
    """

    first_step: int | None
    tensor: str | None = None
    checkpoint_step: int | None = None
    right: Right | None = None
    notes: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        return self.first_step is None

    def to_json(self) -> dict[str, Any]:
        """The outcome as JSON values."""
        return {
            "verdict": "equal" if self.equal else "differ",
            "first_step": self.first_step,
            "tensor": self.tensor,
            "right": self.right,
            "checkpoint_step": self.checkpoint_step,
            "notes": list(self.notes),
        }


@dataclass
class _Side:
    """One of the two runs.

    Attributes:
        name: "a" or "b".
        run: its folder.
        checkpoints: the recorded ones by step.
        records: by file and step, without what depends on the clock.
    """

    name: str
    run: RunFolder
    checkpoints: set[int]
    records: dict[tuple[str, int], Mapping[str, Any]] = field(default_factory=dict)


def settle(run_a: Path, run_b: Path, *, observer: Observer = SILENT) -> Settlement:
    """Compares two runs, and where they differ trains the stretch in question again, for either.

    Args:
        run_a, run_b: run folders; only read.
        observer: shown the progress.

    Raises:
        UsageError: one of them is not there, or is no run.
        DataError: the manifest or a checkpoint of one cannot be read.
    """
    sides = (_side("a", run_a), _side("b", run_b))
    notes = list(_unlike(*sides))
    in_records = _first_record(*sides)
    in_checkpoints, tensor, equal = _first_checkpoint(*sides)
    found = [step for step in (in_records, in_checkpoints) if step is not None]
    if not found:
        return Settlement(None, notes=tuple(notes))
    until = in_checkpoints or in_records or 0
    before = max((step for step in equal if step < min(found)), default=0)
    right = _decide(sides, before, until, notes, observer)
    return Settlement(min(found), tensor, in_checkpoints, right, tuple(notes))


def _side(name: str, path: Path) -> _Side:
    run = RunFolder.open(path)
    state, _ = parse_state(run.manifest.state, source=str(path / MANIFEST_NAME))
    steps = (step_of(checkpoint.partition("/")[2]) for checkpoint in state.checkpoints)
    side = _Side(name, run, {step for step in steps if step is not None})
    for log in (run.metrics, run.evaluations):
        for record in log.read():
            if isinstance(record, Mapping) and isinstance(record.get("step"), int):
                kept = {key: value for key, value in record.items() if key != "timing"}
                side.records[log.path.name, record["step"]] = kept
    return side


def _unlike(one: _Side, other: _Side) -> Iterator[str]:
    """What keeps the two from being the same run twice."""
    records = one.run.manifest.record, other.run.manifest.record
    for key, name in (("recipe_digest", "recipes"), ("corpus_digest", "corpora")):
        if records[0].get(key) != records[1].get(key):
            yield f"they have unlike {name}: each is held against its own"
    ends = [max((step for _, step in side.records), default=0) for side in (one, other)]
    if ends[0] != ends[1]:
        yield f"a has records up to step {ends[0]}, b up to step {ends[1]}: compared as far as both go"


def _first_record(one: _Side, other: _Side) -> int | None:
    common = one.records.keys() & other.records.keys()
    return min((key[1] for key in common if one.records[key] != other.records[key]), default=None)


def _first_checkpoint(one: _Side, other: _Side) -> tuple[int | None, str | None, list[int]]:
    """The first common checkpoint that differs, its first tensor that does, and the equal ones before."""
    equal = []
    for step in sorted(one.checkpoints & other.checkpoints):
        folders = [side.run.checkpoints / step_folder_name(step) for side in (one, other)]
        entries = [{entry.path: entry.sha256 for entry in Manifest.read(folder).files} for folder in folders]
        if entries[0] == entries[1]:
            equal.append(step)
            continue
        unequal = [name for name in (MODEL_FILE, OPTIMIZER_FILE) if entries[0].get(name) != entries[1].get(name)]
        tensors = (_first_tensor(*(folder / name for folder in folders)) for name in unequal)
        return step, next((tensor for tensor in tensors if tensor is not None), None), equal
    return None, None, equal


def _first_tensor(one: Path, other: Path) -> str | None:
    difference = compare_checkpoints(one, other)
    changed = [*difference.reshaped, *difference.retyped, *difference.changed, *difference.not_compared]
    names = [str(item["name"]) for item in changed] + difference.removed + difference.added
    return names[0] if names else None


def _decide(sides: tuple[_Side, _Side], before: int, until: int, notes: list[str], observer: Observer) -> Right | None:
    """Trains every stretch between the last equal checkpoint and the first that differs again, for either run."""
    honest = {side.name: _is_honest(side, before, until, notes, observer) for side in sides}
    if all(honest.values()):
        notes.append("both are what training again gives from what each began with")
        return "neither"
    if honest["a"]:
        return "a"
    if honest["b"]:
        return "b"
    return None if None in honest.values() else "neither"


def _is_honest(side: _Side, before: int, until: int, notes: list[str], observer: Observer) -> bool | None:
    """Whether training again gives what the run has; None where it cannot be tried."""
    report = verify(side.run.path, observer=observer)
    if not report.ok:
        fault = report.faults[0]
        notes.append(f"{side.name} is not what its manifests say: {fault.path}: {fault.what}")
        return False
    # A stretch ends at a checkpoint: the one that differs, or, where only records do, the next one kept.
    last = min((step for step in side.checkpoints if step >= until), default=None)
    if last is None:
        notes.append(f"{side.name} has no checkpoint from step {until} on, so that step cannot be trained again")
        return None
    for step in sorted(step for step in side.checkpoints if before < step <= last):
        try:
            outcome = replay(side.run.path, step=step, observer=observer)
        except (DataError, UsageError) as error:
            notes.append(f"{side.name} could not be trained again: {error.message}")
            return None
        if not outcome.equal:
            first = outcome.differences[0]
            notes.append(f"{side.name} is not what training gives: step {first.step}, {first.file}: {first.name}")
            return False
    return True
