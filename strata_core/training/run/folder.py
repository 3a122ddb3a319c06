"""A run on disk: one folder that one process holds at a time, with its recipe, records, checkpoints and manifest."""

from __future__ import annotations

import contextlib
import datetime
import os
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import tomli_w
from filelock import FileLock, Timeout

from strata_core.corpus.format import CORPUS_JSON
from strata_core.dotted import dotted
from strata_core.errors import DataError, PlaceTakenError, UsageError
from strata_core.files import folder_made_whole, storage_errors, write_file
from strata_core.manifest import MANIFEST_NAME, Manifest, Parent, hash_file
from strata_core.recipes import load_training_recipe
from strata_core.recipes.changes import changed_keys, check_resumable
from strata_core.recipes.deriving import FOLLOWING_MAX_STEPS
from strata_core.recipes.tables import TrainingRecipe
from strata_core.recipes.writing import recipe_tables
from strata_core.training.checkpoint.folders import step_folder_name, steps_in
from strata_core.training.checkpoint_choice import BEST, LATEST
from strata_core.training.run.records import RecordLog

LOCK_NAME = ".lock"
RECIPE_NAME = "recipe.toml"
OVERRIDES_NAME = "overrides.toml"
_WANTED = "name a run directory, one that strata train-lm or train-graph made"
LOG_NAMES = ("metrics.jsonl", "evaluations.jsonl", "events.jsonl", "run.log")


def now() -> str:
    """The time in ISO 8601, UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


class RunFolder:
    """The files of one run. Make one with `create` or `open`, and hold it with `held` while writing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metrics = RecordLog(path / "metrics.jsonl")
        self.evaluations = RecordLog(path / "evaluations.jsonl")
        self.events = RecordLog(path / "events.jsonl")
        self.checkpoints = path / "checkpoints"
        self._manifest_lock = threading.Lock()

    @classmethod
    def create(
        cls, path: Path, recipe_toml: bytes, record: Mapping[str, Any], parents: tuple[Parent, ...]
    ) -> RunFolder:
        """A new run folder, whole from the moment it has its name.

        Raises:
            PlaceTakenError: something is there already.
            StorageError: the file system refused.
        """
        with folder_made_whole(path) as aside:
            (aside / "checkpoints").mkdir()
            write_file(aside / RECIPE_NAME, recipe_toml)
            Manifest(
                describes="run",
                files=(hash_file(aside / RECIPE_NAME, name=RECIPE_NAME),),
                parents=parents,
                record=dict(record),
                state={"final": False, "logs": [], "files": [], "checkpoints": []},
                times={"started": now()},
            ).write(aside)
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run.

        Raises:
            UsageError: there is no such folder, or it is no run.
            DataError: its manifest or recipe does not hold.
        """
        if not path.is_dir():
            raise UsageError(f"{path}: no such run directory", hint="name one that strata train-lm or train-graph made")
        if not (path / "manifest.json").is_file() or not (path / RECIPE_NAME).is_file():
            raise UsageError(_what_it_is(path), hint=_WANTED)
        run = cls(path)
        manifest = run.manifest
        if manifest.describes != "run":
            raise UsageError(f"{path} is a {manifest.describes}, not a run", hint=_WANTED)
        claimed = {entry.path: entry for entry in manifest.files}
        found = hash_file(path / RECIPE_NAME, name=RECIPE_NAME)
        if claimed.get(RECIPE_NAME) != found:
            raise DataError(
                f"{path / 'recipe.toml'} was changed after the run started: its SHA-256 is {found.sha256}",
                hint="put the original back; to change a setting use --set with strata resume",
            )
        return run

    @property
    def has_checkpoints(self) -> bool:
        """Whether anything was ever saved, whole or not."""
        return self.checkpoints.is_dir() and any(self.checkpoints.glob("step*"))

    @property
    def manifest(self) -> Manifest:
        """The run's manifest as it is on disk."""
        return Manifest.read(self.path / "manifest.json")

    def recipe_with(self, overrides: Sequence[str]) -> tuple[TrainingRecipe, list[tuple[str, Any, Any]]]:
        """The run's settings, earlier changes included, with those of this session.

        Returns:
            The recipe, and this session's changes as (key, old value, new value).

        Raises:
            RecipeError: a change would alter the past; all of them are listed.
        """
        current = load_training_recipe(self._recipe_path)
        settled = [f"{key}={value}" for key, value in self._settled(current).items()]
        changed = load_training_recipe(self._recipe_path, [*settled, *overrides])
        return changed, check_resumable(current, changed)

    def _settled(self, current: TrainingRecipe) -> dict[str, int]:
        """What a raised run.max_steps must not move: derived settings that are not written in the run's recipe, which
        an earlier version made, as they have been so far."""
        written = dotted(tomllib.loads((self.path / RECIPE_NAME).read_text(encoding="utf-8")))
        settings = dotted(recipe_tables(current))
        return {key: settings[key] for key in FOLLOWING_MAX_STEPS if key in settings and key not in written}

    @property
    def _recipe_path(self) -> Path:
        overrides = self.path / OVERRIDES_NAME
        return overrides if overrides.exists() else self.path / RECIPE_NAME

    def go_on(
        self,
        step: int,
        changes: list[tuple[str, Any, Any]],
        environment: Mapping[str, Any],
        *,
        evaluation_pending: bool = False,
    ) -> None:
        """Prepares the records for steps after `step`, and keeps this session's changes for later ones."""
        # The manifest vouches for no record while records change, so that a kill in between leaves no false alarm.
        self._update(lambda listed: listed, final=False, logs=[], files=[])
        self.metrics.keep_up_to(step)
        # An evaluation that is still to be done may have left its record, if a kill came before it was saved.
        self.evaluations.keep_up_to(step - 1 if evaluation_pending else step)
        if changes:
            self._keep_changes(load_training_recipe(self._recipe_path), changes)
            self.event("settings changed", step, changes={key: [old, new] for key, old, new in changes})
        self.event("environment", step, **environment)
        self.close(final=False)

    def _keep_changes(self, current: TrainingRecipe, changes: list[tuple[str, Any, Any]]) -> None:
        """Writes overrides.toml: a recipe that starts from the run's own and has what resumes have changed."""
        original = load_training_recipe(self.path / RECIPE_NAME)
        settings: dict[str, Any] = dict(self._settled(current))
        settings |= {key: new for key, _, new in [*changed_keys(original, current), *changes]}
        tables: dict[str, Any] = {"base": RECIPE_NAME}
        for key, value in settings.items():
            *outer, name = key.split(".")
            table = tables
            for part in outer:
                table = table.setdefault(part, {})
            table[name] = value
        write_file(self.path / OVERRIDES_NAME, tomli_w.dumps(tables).encode())

    def with_corpus_found(self, recipe: TrainingRecipe) -> TrainingRecipe:
        """The recipe with its corpus where it is now: as far from the run as it was, or else where the recipe says."""
        for parent in self.manifest.parents:
            if parent.describes == "corpus" and parent.path is not None:
                place = self.path / parent.path
                if (place / MANIFEST_NAME).is_file() and Manifest.read(place).digest == parent.digest:
                    return recipe.model_copy(
                        update={"corpus": recipe.corpus.model_copy(update={"path": place.resolve()})}
                    )
        return recipe

    def as_parent(self) -> Parent:
        """This run as its checkpoints name it."""
        return Parent("run", self.manifest.digest, "../..")

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keeps other processes out; the lock dies with its holder.

        The lock is flock(2) on `.lock`. Across nodes it holds where the shared file system passes flock on (Lustre
        with -o flock, NFS v4); where it does not, only processes of one node are kept apart.

        Raises:
            PlaceTakenError: another process holds the run.
        """
        lock = FileLock(str(self.path / LOCK_NAME))
        with storage_errors(self.path / LOCK_NAME):
            try:
                lock.acquire(timeout=0)
            except Timeout:
                raise PlaceTakenError(
                    f"{self.path} is in use: another process is training in it", hint="wait until it ends, or stop it"
                ) from None
        try:
            yield
        finally:
            lock.release()

    def event(self, name: str, step: int, *, timing: Mapping[str, Any] | None = None, **details: Any) -> None:
        """Adds to events.jsonl what happened at a step; what depends on the machine goes under "timing"."""
        timing = timing or {}
        self.events.append({"event": name, "step": step, **details, "timing": {"time": now(), **timing}})
        figures = {**details, **timing}
        self.log(f"step {step}: {name} " + " ".join(f"{key}={value}" for key, value in figures.items()))

    def log(self, text: str) -> None:
        """Adds a line to run.log."""
        with storage_errors(self.path / "run.log"), open(self.path / "run.log", "a", encoding="utf-8") as file:
            file.write(f"{now()} {text}\n")

    def sync(self) -> None:
        """Makes the records durable; what a checkpoint stands on must not be younger than the checkpoint."""
        for records in (self.metrics, self.evaluations, self.events):
            records.sync()

    def add_checkpoint(self, path: Path, digest: str) -> None:
        """Notes a checkpoint in the manifest; called from the thread that wrote it."""
        name = f"checkpoints/{path.name}"
        self._update(lambda listed: [*_without(listed, name), {"path": name, "digest": digest}])

    def note_saved(self, step: int, path: Path, digest: str) -> None:
        """Records that a checkpoint is whole on disk."""
        self.add_checkpoint(path, digest)
        self.event("saved", step, checkpoint=f"checkpoints/{path.name}")

    def drop_checkpoint(self, path: Path) -> None:
        """Takes a checkpoint that is about to be removed out of the manifest."""
        self._update(lambda listed: _without(listed, f"checkpoints/{path.name}"))

    def close(self, *, final: bool) -> None:
        """Notes the records as they are; `final`: nothing in the run changes any more. No save may be under way."""
        logs = [self._entry(name) for name in LOG_NAMES if (self.path / name).exists()]
        files = [self._entry(OVERRIDES_NAME)] if (self.path / OVERRIDES_NAME).exists() else []
        self._update(self._with_unlisted, final=final, logs=logs, files=files)

    def _update(self, change: Callable[[list[dict[str, str]]], list[dict[str, str]]], **state: Any) -> None:
        with self._manifest_lock:
            manifest = self.manifest
            listed = sorted(change(manifest.state["checkpoints"]), key=lambda checkpoint: checkpoint["path"])
            new = replace(
                manifest,
                state={**manifest.state, **state, "checkpoints": listed, "links": self._links()},
                times={**manifest.times, "updated": now()},
            )
            new.write(self.path)

    def _with_unlisted(self, listed: list[dict[str, str]]) -> list[dict[str, str]]:
        """The list with the checkpoints of this run that a kill kept out of it, between their last rename and here."""
        known = {checkpoint["path"] for checkpoint in listed}
        run_digest = self.manifest.digest
        found = []
        for step in steps_in(self.checkpoints):
            name = step_folder_name(step)
            try:
                manifest = Manifest.read(self.checkpoints / name)
            except DataError:
                continue
            own = any(parent.digest == run_digest for parent in manifest.parents)
            if own and f"checkpoints/{name}" not in known:
                found.append({"path": f"checkpoints/{name}", "digest": manifest.digest})
        return [*listed, *found]

    def _links(self) -> dict[str, str]:
        links = {name: self.checkpoints / name for name in (LATEST, BEST)}
        return {name: os.readlink(link) for name, link in links.items() if link.is_symlink()}

    def _entry(self, name: str) -> dict[str, Any]:
        entry = hash_file(self.path / name, name=name)
        return {"path": entry.path, "size": entry.size, "sha256": entry.sha256}


def _what_it_is(folder: Path) -> str:
    """What is to be said of a folder that lacks a file which every run has."""
    missing = [name for name in (RECIPE_NAME, MANIFEST_NAME) if not (folder / name).is_file()]
    described = "run"
    if (folder / CORPUS_JSON).is_file():
        described = "corpus"
    elif MANIFEST_NAME not in missing:
        with contextlib.suppress(DataError):
            described = Manifest.read(folder).describes
    if described != "run":
        return f"{folder} is a {described}, not a run"
    return f"{folder} is not a run: it has no {' and '.join(missing)}"


def _without(listed: list[dict[str, str]], name: str) -> list[dict[str, str]]:
    return [checkpoint for checkpoint in listed if checkpoint["path"] != name]
