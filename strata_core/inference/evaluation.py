"""The full evaluation of a trained model on a split of a corpus."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from strata_core.errors import UsageError
from strata_core.inference.rebuilt_recipe import rebuilt_recipe
from strata_core.inference.trained_task import make_trained_task
from strata_core.observer import SILENT, Observer
from strata_core.recipes.tables import TrainingRecipe
from strata_core.tasks.data import check_same_corpus, open_data
from strata_core.training.distributed import ALONE, choose_device
from strata_core.training.precision import choose_precision
from strata_core.training.task import EvaluationContext
from strata_core.training.trained import BEST_OR_LATEST, Trained, find_trained


@dataclass(frozen=True)
class EvaluationReport:
    """What a model scored, and on what.

    Attributes:
        path: what was named: a run or a checkpoint.
        checkpoint: the folder whose weights were used.
        checkpoint_digest: of its manifest.
        kind: of model, as config.json has it.
        step: updates that the weights have had.
        corpus: the corpus directory.
        corpus_digest: of its manifest.
        split: the part of the corpus.
        device, precision: where and how it was computed.
        metrics: the task's report; see Task.report.
    """

    path: str
    checkpoint: str
    checkpoint_digest: str
    kind: str
    step: int
    corpus: str
    corpus_digest: str
    split: str
    device: str
    precision: str
    metrics: dict[str, Any]

    def to_json(self, *, confusion: bool = False) -> dict[str, Any]:
        """All of it as JSON values; `confusion`: with the table of what was taken for what."""
        metrics = {name: value for name, value in self.metrics.items() if confusion or name != "confusion"}
        return {**vars(self), "metrics": metrics}


def evaluate_trained(
    path: Path,
    *,
    choose: str = BEST_OR_LATEST,
    corpus: Path | None = None,
    split: str = "val",
    device: str = "auto",
    observer: Observer = SILENT,
) -> EvaluationReport:
    """Measures a trained model on the whole of a split.

    Args:
        path: a run, or a checkpoint folder.
        choose: which checkpoint of a run; see `find_trained`.
        corpus: in place of the one that the run was trained on.
        split: one that the corpus has.
        device: "auto", "cpu", "cuda" or "mps".
        observer: shown the progress.

    Raises:
        UsageError, RecipeError: no such run, checkpoint, corpus, split or device, or a corpus with another tokenizer,
            vocabulary or other labels than the model's.
        DataError: the checkpoint or the corpus is not whole.
    """
    place = choose_device(device, 0)
    trained = find_trained(path, choose=choose, observer=observer)
    recipe = _recipe(trained, corpus)
    data = open_data(recipe, observer)
    if corpus is None:
        check_same_corpus(trained, data, hint=f"--corpus {data.path} evaluates on it all the same")
    _check_split(data, split)
    _check_tokenizer(trained, data)
    task, model = make_trained_task(trained, recipe, data)
    precision = choose_precision(recipe.run.precision, place, force=recipe.run.force_precision)
    context = EvaluationContext(
        device=place,
        ranks=ALONE,
        autocast=precision.autocast(place),
        stop_requested=lambda: False,
        progress=_Progress(observer).advance,
    )
    with torch.inference_mode():
        metrics = task.report(model.to(place), split, context)
    return EvaluationReport(
        path=str(path),
        checkpoint=str(trained.checkpoint.path),
        checkpoint_digest=trained.checkpoint.digest,
        kind=task.kind,
        step=trained.step,
        corpus=str(data.path),
        corpus_digest=data.digest,
        split=split,
        device=str(place),
        precision=precision.effective,
        metrics=metrics,
    )


def _recipe(trained: Trained, corpus: Path | None) -> TrainingRecipe:
    """The settings to evaluate under, with the corpus to read."""
    recipe = trained.recipe()
    if recipe is None:
        if corpus is None:
            raise UsageError(
                f"{trained.path} is not in its run, so nothing tells which corpus to evaluate it on",
                hint="name one with --corpus",
            )
        recipe = rebuilt_recipe(trained.config, source=str(trained.checkpoint.path / "config.json"))
    if corpus is None:
        return recipe
    table = recipe.corpus.model_copy(update={"path": corpus, "sample": None})
    return recipe.model_copy(update={"corpus": table})


def _check_split(data: Any, split: str) -> None:
    """Refuses a split that is not there or empty; "test" may stand for "test-02", "test-03" and so on together."""
    splits = data.info.splits
    meant = [name for name in splits if name == split or name.startswith(f"{split}-")]
    if not meant:
        raise UsageError(f"{data.path} has no split {split!r}", hint=f"it has {', '.join(splits)}")
    if not any(_size(splits[name]) for name in meant):
        raise UsageError(f"the split {split!r} of {data.path} is empty", hint="choose another --split")


def _size(split: Any) -> int:
    """Examples or tokens."""
    return int(split.get("examples", 0) if isinstance(split, dict) else split.tokens)


def _check_tokenizer(trained: Trained, data: Any) -> None:
    ours = None if data.tokenizer_path is None else data.tokenizer_path.read_bytes()
    theirs = trained.checkpoint.tokenizer
    if ours is None or theirs is None or ours == theirs:
        return
    sizes = (_vocabulary_text(content) for content in (ours, theirs))
    raise UsageError(
        f"the corpus {data.path} has another tokenizer than {trained.checkpoint.path}: {' against '.join(sizes)}",
        hint=f"prepare the text again with --tokenizer {trained.checkpoint.path / 'tokenizer.json'}",
    )


def _vocabulary_text(tokenizer: bytes) -> str:
    import hashlib

    digest = hashlib.sha256(tokenizer).hexdigest()[:12]
    try:
        count = len(json.loads(tokenizer)["model"]["vocab"])
    except (ValueError, KeyError, TypeError):
        return f"SHA-256 {digest}..."
    return f"{count:,} entries (SHA-256 {digest}...)"


class _Progress:
    """Shows what a task reports of itself, one stage for each time that it begins to count anew."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._total = 0
        self._done = 0

    def advance(self, done: int, total: int) -> None:
        if total != self._total or done <= self._done:
            self._observer.stage_started("evaluation", total, "batches")
        self._done, self._total = done, total
        self._observer.stage_advanced(done)
        if done == total:
            self._observer.stage_finished()
            self._done = self._total = 0
