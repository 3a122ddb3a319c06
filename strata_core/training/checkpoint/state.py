"""What a checkpoint holds while it is still in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from strata_core.errors import DataError
from strata_core.manifest import Parent
from strata_core.training.averaging import is_averaging
from strata_core.training.checkpoint.copying import copy_all

_NAMES_IN_A_MESSAGE = 5


@dataclass(frozen=True)
class CheckpointState:
    """Everything a checkpoint holds. Tensors are the live ones, on any device; saving copies them.

    Attributes:
        config: becomes config.json: what it takes to build the model (kind, settings, format version).
        model: parameters and buffers by name, tied weights once, no wrapper prefixes (see `model_tensors`); averages,
            where weights are averaged.
        optimizer: moments by parameter name: `<name>.exp_avg`, `<name>.exp_avg_sq`, `<name>.step`; where weights are
            averaged, also the weight itself, `<name>.iterate`.
        trainer: becomes trainer.json: the counters and histories of the run. Floats keep their full precision.
        tokenizer: becomes tokenizer.json, byte for byte; None where the model reads no text.
        parents: what the checkpoint came from, for its manifest.
    """

    config: Mapping[str, Any]
    model: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    trainer: Mapping[str, Any]
    tokenizer: bytes | None
    parents: tuple[Parent, ...]

    @property
    def is_on_host(self) -> bool:
        """Whether every tensor lies in host memory."""
        return all(tensor.device.type == "cpu" for tensor in [*self.model.values(), *self.optimizer.values()])


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The parameters and persistent buffers of a model by their plain names.

    Wrappers (DistributedDataParallel, torch.compile) are looked through, so that their prefixes never reach a file. A
    tensor that several modules share is listed once, under the first of its names.
    """
    inner = model
    while isinstance(inner, DistributedDataParallel) or hasattr(inner, "_orig_mod"):
        inner = inner.module if isinstance(inner, DistributedDataParallel) else inner._orig_mod  # type: ignore[assignment]
    tensors_once = dict(inner.named_parameters()) | dict(inner.named_buffers())
    persistent_names = inner.state_dict(keep_vars=True).keys()
    return {name: tensor.detach() for name, tensor in tensors_once.items() if name in persistent_names}


def copy_tensors(loaded: Mapping[str, Tensor], into: Mapping[str, Tensor], *, source: str) -> None:
    """Fills live tensors from loaded ones of the same names, in place.

    Args:
        loaded: what a checkpoint has.
        into: the live tensors; every one of them has to be in `loaded`, and the other way round.
        source: what to call the checkpoint in an error.

    Raises:
        DataError: the names, shapes or dtypes differ. Nothing has been copied then.
    """
    faults = []
    if missing := sorted(into.keys() - loaded.keys()):
        faults.append(f"it lacks {_listing(missing)}")
    if unexpected := sorted(loaded.keys() - into.keys()):
        faults.append(f"it has unknown {_listing(unexpected)}")
    for name in sorted(into.keys() & loaded.keys()):
        wanted, found = into[name], loaded[name]
        if wanted.shape != found.shape or wanted.dtype != found.dtype:
            faults.append(
                f"{name} is {found.dtype} {tuple(found.shape)} there and {wanted.dtype} {tuple(wanted.shape)} here"
            )
    if faults:
        raise DataError(
            f"{source} does not match the model: {'; '.join(faults[:_NAMES_IN_A_MESSAGE])}",
            hint="build the model from the checkpoint's own config.json, or choose a checkpoint of this model",
        )
    copy_all((tensor.detach(), loaded[name]) for name, tensor in into.items())


def expected_checkpoint_bytes(
    model: Mapping[str, Tensor], trained: Iterable[str], *, average_decay: float = 0.0
) -> int:
    """The size of a checkpoint's tensors before there is an optimizer state, in bytes.

    Args:
        model: the tensors of the model by name.
        trained: names of those that will get AdamW moments: two of the parameter's own size and a 4-byte step.
        average_decay: the recipe's `optimizer.average_decay`; where it averages, each is saved beside its average.
    """
    weights_bytes = sum(tensor.nbytes for tensor in model.values())
    copies = 3 if is_averaging(average_decay) else 2
    moments_bytes = sum(copies * model[name].nbytes + 4 for name in trained)
    return weights_bytes + moments_bytes


def _listing(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMES_IN_A_MESSAGE])
    more = len(names) - _NAMES_IN_A_MESSAGE
    return f"{len(names)} tensors ({shown}{f' and {more} more' if more > 0 else ''})"
