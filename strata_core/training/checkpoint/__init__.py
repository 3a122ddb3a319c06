"""Checkpoints: a snapshot of everything a run needs to go on, written aside of training and verified when read."""

from strata_core.training.checkpoint.reading import (
    LoadedCheckpoint,
    checkpoint_fault,
    load_checkpoint,
    newest_whole,
    read_tensors,
)
from strata_core.training.checkpoint.space import missing_bytes
from strata_core.training.checkpoint.state import (
    CheckpointState,
    copy_tensors,
    expected_checkpoint_bytes,
    model_tensors,
)
from strata_core.training.checkpoint.store import CheckpointStore

__all__ = [
    "CheckpointState",
    "CheckpointStore",
    "LoadedCheckpoint",
    "checkpoint_fault",
    "copy_tensors",
    "expected_checkpoint_bytes",
    "load_checkpoint",
    "missing_bytes",
    "model_tensors",
    "newest_whole",
    "read_tensors",
]
