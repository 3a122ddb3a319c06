"""Weights for a new run from an earlier checkpoint."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor, nn

from strata_core.errors import UsageError
from strata_core.manifest import Parent
from strata_core.training.checkpoint import (
    copy_tensors,
    load_checkpoint,
    model_tensors,
    newest_whole,
    read_tensors,
)


def load_weights(model: nn.Module, source: Path) -> list[Parent]:
    """Fills the model with the weights of a strata checkpoint, of a run's newest one, or of a safetensors file.

    Returns:
        The checkpoint as a parent for the run's manifest; nothing for a plain file.

    Raises:
        UsageError: there is no such path.
        DataError: it is damaged, or its tensors are not the model's; the model keeps its own.
    """
    if not source.exists():
        raise UsageError(f"run.warm_start: {source}: no such file or directory")
    weights: dict[str, Tensor]
    parents = []
    if source.is_dir():
        folder = newest_whole(source / "checkpoints")[0] if (source / "checkpoints").is_dir() else source
        checkpoint = load_checkpoint(folder, with_optimizer=False)
        weights = checkpoint.model
        parents.append(Parent("checkpoint", checkpoint.digest, str(folder)))
    else:
        weights = read_tensors(source)
    copy_tensors(weights, model_tensors(model), source=str(source))
    return parents
