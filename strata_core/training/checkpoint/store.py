"""Saves checkpoints of a run aside of training, so that at every instant the newest whole one can be found."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strata_core.errors import DataError
from strata_core.files import point_link, remove_folder, storage_errors, sync_folder
from strata_core.manifest import MANIFEST_NAME, Manifest, Parent
from strata_core.observer import Observer
from strata_core.training.checkpoint.faults import fault_point
from strata_core.training.checkpoint.folders import (
    BEST,
    LATEST,
    clear_leftovers,
    linked_step,
    put_in_place,
    step_folder_name,
    steps_in,
)
from strata_core.training.checkpoint.image import HostImage
from strata_core.training.checkpoint.reading import (
    CONFIG_FILE,
    MODEL_FILE,
    OPTIMIZER_FILE,
    TOKENIZER_FILE,
    TRAINER_FILE,
    checkpoint_fault,
)
from strata_core.training.checkpoint.retention import steps_to_remove
from strata_core.training.checkpoint.state import CheckpointState
from strata_core.training.checkpoint.writing import FileContents, write_files


@dataclass(frozen=True)
class _Snapshot:
    """A state that no longer depends on the live tensors, once `completions` have returned."""

    step: int
    contents: Mapping[str, FileContents]
    completions: tuple[Callable[[], None], ...]
    parents: tuple[Parent, ...]
    best: bool


class CheckpointStore:
    """The checkpoints folder of one run, written by one process at a time (whoever holds the run's lock).

    A checkpoint is written under a hidden name, synced, and renamed; then `latest` (and `best`) point to it; then those
    that retention no longer wants are removed. Opening a store clears what a killed process left half done.

    Args:
        folder: the checkpoints folder; made if absent.
        keep_last: how many of the newest to keep, at least 1.
        keep_every: keep each step divisible by it for good; 0 for none.
        observer: told of each checkpoint saved, from the writing thread.
        on_saved: called with step, folder and manifest digest when a checkpoint is whole and `latest` points to it,
            from the writing thread.
        on_removing: called with step and folder before retention removes a checkpoint, from the writing thread.

    Raises:
        StorageError: the folder cannot be made.
    """

    def __init__(
        self,
        folder: Path,
        *,
        keep_last: int,
        keep_every: int,
        observer: Observer,
        on_saved: Callable[[int, Path, str], None] = lambda step, path, digest: None,
        on_removing: Callable[[int, Path], None] = lambda step, path: None,
    ) -> None:
        self.folder = folder
        self._keep_last = keep_last
        self._keep_every = keep_every
        self._observer = observer
        self._on_saved = on_saved
        self._on_removing = on_removing
        self._model_image = HostImage()
        self._optimizer_image = HostImage()
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint-writer")
        self._pending: Future[None] | None = None
        self._copied = threading.Event()
        self._copied.set()
        with storage_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            clear_leftovers(folder)

    def save(self, step: int, state: CheckpointState, *, best: bool = False, background: bool = True) -> float:
        """Copies the state, then writes it.

        Args:
            step: updates done; the next step to do has this number.
            state: what to save. Its tensors may change once `wait_for_copy` has returned.
            best: whether this is the best checkpoint so far.
            background: copy and write meanwhile; an earlier save still being written is waited for.

        Returns:
            Seconds for which the caller was held up.

        Raises:
            StorageError: the file system refused this save, or, in the background, the one before. What was there
                before is untouched, and nothing half written is left.
        """
        started = time.perf_counter()
        self.wait()
        if not background:
            self._write(self._take_snapshot(step, state, best))
        elif state.is_on_host:
            self._copied.clear()
            self._pending = self._writer.submit(self._copy_and_write, step, state, best)
        else:
            # Copies from a device are queued before its next work, and so from the thread that gives it that work.
            self._pending = self._writer.submit(self._write, self._take_snapshot(step, state, best))
        return time.perf_counter() - started

    def wait_for_copy(self) -> None:
        """Waits until the tensors given to the last `save` may change; to be called before an update of the weights.

        Forward and backward passes only read them, so that the copy costs them next to nothing.
        """
        self._copied.wait()

    def check(self) -> None:
        """Raises what the background writer met, if it is done; never waits."""
        if self._pending is not None and self._pending.done():
            self.wait()

    def wait(self) -> None:
        """Waits for the background writer and raises what it met (once). To be called before the process ends."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, in number order."""
        return steps_in(self.folder)

    def repair_links(self, *, latest: int, best: int | None) -> None:
        """Points the links where a kill between a checkpoint's last rename and theirs has kept them from pointing.

        Args:
            latest: the step of the newest whole checkpoint.
            best: the step of the best one as that one knows it; None where there is none.
        """
        for name, step in ((LATEST, latest), (BEST, best)):
            if step is not None and step in self.steps() and linked_step(self.folder / name) != step:
                point_link(self.folder / name, step_folder_name(step))

    def go_back_to(self, step: int) -> None:
        """Makes a kept checkpoint the latest and removes all later ones, as when a run goes on from an earlier step:
        a later one left over from before would be taken for this run's newest."""
        self.wait()
        point_link(self.folder / LATEST, step_folder_name(step))
        best = linked_step(self.folder / BEST)
        if best is not None and best > step:
            (self.folder / BEST).unlink()
        for later in reversed([other for other in self.steps() if other > step]):
            self._remove(later)

    def _copy_and_write(self, step: int, state: CheckpointState, best: bool) -> None:
        try:
            snapshot = self._take_snapshot(step, state, best)
        finally:
            self._copied.set()
        self._write(snapshot)

    def _take_snapshot(self, step: int, state: CheckpointState, best: bool) -> _Snapshot:
        completions = (self._model_image.fill(state.model), self._optimizer_image.fill(state.optimizer))
        contents = {
            CONFIG_FILE: FileContents.of(_json_bytes(state.config)),
            MODEL_FILE: self._model_image.contents(),
            OPTIMIZER_FILE: self._optimizer_image.contents(),
            TRAINER_FILE: FileContents.of(_json_bytes(state.trainer)),
        }
        if state.tokenizer is not None:
            contents[TOKENIZER_FILE] = FileContents.of(state.tokenizer)
        return _Snapshot(step, contents, completions, state.parents, best)

    def _write(self, snapshot: _Snapshot) -> None:
        for wait_until_complete in snapshot.completions:
            wait_until_complete()
        final = self.folder / step_folder_name(snapshot.step)
        digest = _write_folder(snapshot, final)
        point_link(self.folder / LATEST, final.name)
        fault_point("latest pointed")
        if snapshot.best:
            point_link(self.folder / BEST, final.name)
            fault_point("best pointed")
        self._on_saved(snapshot.step, final, digest)
        self._observer.checkpoint_saved(snapshot.step, os.fspath(final))
        unwanted = steps_to_remove(
            self.steps(),
            saved=snapshot.step,
            best=linked_step(self.folder / BEST),
            keep_last=self._keep_last,
            keep_every=self._keep_every,
        )
        for step in unwanted:
            self._remove(step)

    def _remove(self, step: int) -> None:
        path = self.folder / step_folder_name(step)
        self._on_removing(step, path)
        fault_point("removing")
        try:
            remove_folder(path)
        except OSError as error:
            self._observer.warning(f"cannot remove the old checkpoint {path}: {error.strerror or error}")
        fault_point("removed")


def _write_folder(snapshot: _Snapshot, final: Path) -> str:
    """Writes a checkpoint aside and gives it its final name; returns the manifest's digest."""
    partial = final.with_name(f".{final.name}.partial")
    try:
        with storage_errors(final):
            partial.mkdir()
            fault_point("partial made")
            entries = write_files(partial, snapshot.contents, shown_as=final)
            manifest = Manifest(
                describes="checkpoint",
                files=tuple(entries),
                parents=snapshot.parents,
                record={"step": snapshot.step},
            )
            write_files(partial, {MANIFEST_NAME: FileContents.of(manifest.to_bytes())}, shown_as=final)
            sync_folder(partial)
            fault_point("folder synced")
            if _holds(final, manifest.digest):
                shutil.rmtree(partial)
            else:
                put_in_place(partial, final)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return manifest.digest


def _holds(folder: Path, digest: str) -> bool:
    """Whether a folder is a whole checkpoint with this digest already."""
    try:
        return Manifest.read(folder).digest == digest and checkpoint_fault(folder) is None
    except DataError:
        return False


def _json_bytes(value: Mapping[str, Any]) -> bytes:
    """JSON for people to read, the same bytes for the same value; floats as the shortest text that reads back equal."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False).encode() + b"\n"
