"""Weights for a new run from an earlier checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from strata_core.errors import RecipeError, UsageError
from strata_core.launch.llama_start import check_fits
from strata_core.manifest import Parent
from strata_core.observer import SILENT, Observer
from strata_core.tasks.registry import task_kinds
from strata_core.training.checkpoint import (
    copy_tensors,
    load_checkpoint,
    model_tensors,
    newest_whole,
    read_tensors,
)
from strata_core.training.llama_folder import is_llama_folder, open_llama_folder
from strata_core.training.trained import config_differences


def load_weights(
    model: nn.Module,
    source: Path,
    *,
    config: Mapping[str, Any] | None = None,
    tokenizer: bytes | None = None,
    observer: Observer = SILENT,
) -> list[Parent]:
    """Fills the model with the weights of a checkpoint, of a run's newest one, of a Llama, or of a safetensors file.

    An optional part of a model (`TaskKind.optional_parts`: word states, heads, a memory) that the source lacks keeps
    its initial weights; one that the model lacks is ignored. So training can start from a pure language model, or from
    one without a memory.

    Args:
        model: to fill.
        source: where the weights are.
        config: of the task; names that both it and the checkpoint's have must be the same, in the same order. None to
            leave them unchecked.
        tokenizer: the corpus's tokenizer.json, which has to be that of a folder of a Llama; None to leave it unchecked.
        observer: told which parts were not taken over.

    Returns:
        The checkpoint or folder as a parent for the run's manifest; nothing for a plain file.

    Raises:
        UsageError: there is no such path.
        RecipeError: the checkpoint was trained for other labels, relations, node types or targets, or the folder's
            settings or tokenizer are not those of the recipe and corpus.
        VerificationError: the folder holds what would run code when loaded.
        DataError: it is damaged, or its tensors are not the model's; the model keeps its own.
    """
    if not source.exists():
        raise UsageError(f"run.warm_start: {source}: no such file or directory")
    weights: dict[str, Tensor]
    parents = []
    if is_llama_folder(source):
        llama = open_llama_folder(source)
        check_fits(llama, model, tokenizer, observer)
        weights = llama.tensors()
        parents.append(llama.parent())
    elif source.is_dir():
        folder = newest_whole(source / "checkpoints")[0] if (source / "checkpoints").is_dir() else source
        checkpoint = load_checkpoint(folder, with_optimizer=False)
        weights = checkpoint.model
        if config is not None:
            _check_names(source, config, checkpoint.config)
        parents.append(Parent("checkpoint", checkpoint.digest, str(folder)))
    else:
        weights = read_tensors(source)
    wanted = model_tensors(model)
    for part in dict.fromkeys(part for kind in task_kinds() for part in kind.optional_parts):
        here, there = (any(name.startswith(part) for name in tensors) for tensors in (wanted, weights))
        if here != there:
            weights, wanted = _without(weights, part), _without(wanted, part)
            told = "is not in it: starts from its initial weights" if here else "is ignored: this model has none"
            observer.notice(f"run.warm_start {source}: {part[:-1]} {told}")
    copy_tensors(weights, wanted, source=str(source))
    return parents


def _without(tensors: Mapping[str, Tensor], part: str) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in tensors.items() if not name.startswith(part)}


def _check_names(source: Path, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    numbered = dict.fromkeys(key for kind in task_kinds() for key in kind.numbered)
    both = [key for key in numbered if key in ours and key in theirs]
    pairs = (ours, theirs), (theirs, ours)
    wanted, found = ({key: _shared(config[key], other[key]) for key in both} for config, other in pairs)
    differences = config_differences(wanted, found)
    if differences:
        different = [key for key in both if any(line.startswith((f"{key}:", f"{key}.")) for line in differences)]
        raise RecipeError(
            f"run.warm_start {source}: it was trained for other {' and '.join(different).replace('_', ' ')} than the "
            "corpus has",
            problems=tuple(differences),
            hint="prepare the two corpora as one, or start without run.warm_start",
        )


def _shared(names: Any, others: Any) -> Any:
    """Of names by kind those of the kinds that the others have too: a head that only one model has is no difference."""
    if isinstance(names, Mapping) and isinstance(others, Mapping):
        return {kind: value for kind, value in names.items() if kind in others}
    return names
