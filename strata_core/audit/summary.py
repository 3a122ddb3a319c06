"""What a checkpoint says about itself: step, settings, versions, optimizer state, sharing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from strata_core.audit.findings import printable
from strata_core.audit.pickles.symbols import Dictionary, Made
from strata_core.audit.reading import Contents
from strata_core.audit.tensors import Tensor, distinct_elements

_STEP_KEYS = ("step", "global_step", "iteration", "iter_num", "iter", "num_updates", "steps", "current_step")
_SETTINGS_KEYS = ("config", "settings", "args", "hyper_parameters", "hparams", "model_args", "cfg")
_VERSION_KEY = re.compile(r"(^|[_.-])version$")
_STATE_NAMES = frozenset(
    {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "exp_inf", "exp_avg_slow", "exp_avg_diff", "momentum_buffer", "step"}
    | {"square_avg", "grad_avg", "acc_delta", "sum", "prev", "step_size", "mu_product", "mu", "eta", "ax", "iterate"}
)
_MOST_SETTINGS = 200


def pairs_of(value: Any) -> list[tuple[Any, Any]]:
    """The keys and values of anything that a checkpoint uses as a table."""
    if isinstance(value, Dictionary):
        return value.pairs()
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, Made):
        states = [pair for state in value.states if isinstance(state, Dictionary) for pair in state.pairs()]
        return [*zip(value.entries[::2], value.entries[1::2], strict=True), *states]
    return []


def find_step(contents: Contents) -> int | None:
    """The training step, under the names that trainers use, at the top of the checkpoint."""
    if contents.step is not None:
        return contents.step
    table = {key: value for key, value in pairs_of(contents.value) if isinstance(key, str)}
    table.update(contents.details.get("objects", {}))
    for key in _STEP_KEYS:
        value = table.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def find_settings(contents: Contents) -> dict[str, Any]:
    """Settings that the checkpoint carries: numbers and short texts, by dotted key."""
    found: dict[str, Any] = dict(contents.settings)
    for key, value in pairs_of(contents.value):
        if key in _SETTINGS_KEYS if isinstance(key, str) else False:
            _flatten(value, "", found, depth=0)
    return found


def _flatten(value: Any, prefix: str, found: dict[str, Any], *, depth: int) -> None:
    for key, inner in pairs_of(value):
        if len(found) >= _MOST_SETTINGS or not isinstance(key, str):
            return
        if inner is None or isinstance(inner, bool | int | float) or (isinstance(inner, str) and len(inner) <= 200):
            found[prefix + key] = inner
        elif depth < 3:
            _flatten(inner, f"{prefix}{key}.", found, depth=depth + 1)


def find_versions(contents: Contents) -> dict[str, str]:
    """Library versions: keys at the top that end in "version"."""
    versions = {}
    for key, value in [*pairs_of(contents.value), *contents.settings.items()]:
        if isinstance(key, str) and _VERSION_KEY.search(key) and isinstance(value, str | int):
            versions[key] = str(value)
    return versions


def is_optimizer_state(tensor: Tensor) -> bool:
    """Whether a tensor belongs to an optimizer, judging by its name."""
    first, *rest = tensor.name.split(".")
    if first.startswith("optim"):
        return True
    in_optimizer_file = tensor.file is not None and tensor.file.startswith("optim")
    return bool(rest) and rest[-1] in _STATE_NAMES and ("state" in (first, *rest) or in_optimizer_file)


def is_bookkeeping(tensor: Tensor) -> bool:
    """Whether a tensor is a score that Lightning's callbacks and loops keep; such start at infinity."""
    return tensor.name.startswith(("callbacks.", "loops."))


def is_random_state(tensor: Tensor) -> bool:
    """Whether a tensor is the state of a random generator, judging by its name and its file's."""
    called = f"{tensor.file or ''} {tensor.name}".lower()
    return tensor.element_type.name == "uint8" and any(word in called for word in ("rng", "random", "seed"))


def summarise_optimizer(tensors: list[Tensor]) -> dict[str, Any] | None:
    """Kinds of state, how many parameters have each, and its bytes; None without optimizer state."""
    states = [tensor for tensor in tensors if is_optimizer_state(tensor)]
    if not states:
        return None
    kinds: dict[str, int] = {}
    for tensor in states:
        kind = tensor.name.rpartition(".")[2]
        kinds[kind] = kinds.get(kind, 0) + 1
    if len(kinds) > 20:
        kinds = {"(various)": len(states)}
    return {
        "tensors": len(states),
        "bytes": sum(tensor.size_bytes for tensor in states),
        "parameters": max(kinds.values()),
        "kinds": kinds,
    }


def find_sharing(tensors: list[Tensor]) -> tuple[list[list[str]], list[str]]:
    """Names that share a storage, and remarks: storages larger than their views, expanded tensors, equal copies."""
    by_storage: dict[int, list[Tensor]] = {}
    for tensor in tensors:
        for piece in tensor.stored_pieces():
            if piece.storage is not None and piece.storage.size_bytes:
                by_storage.setdefault(id(piece.storage), []).append(_under_name(piece, tensor))
    shared = []
    remarks = []
    for views in by_storage.values():
        names = list(dict.fromkeys(view.name for view in views))
        if len(names) > 1:
            shared.append(names)
        remarks += _unused_part(views)
    expanded = [
        f"{printable(tensor.name)} has {tensor.elements:,} elements over {tensor.distinct_elements:,} stored"
        for tensor in tensors
        if tensor.overlaps_itself
    ]
    return shared, remarks + expanded + _equal_copies(tensors)


def _under_name(piece: Tensor, tensor: Tensor) -> Tensor:
    if piece is tensor:
        return tensor
    return Tensor(tensor.name, piece.element_type, piece.shape, piece.stride, piece.offset, piece.storage)


def _unused_part(views: list[Tensor]) -> list[str]:
    storage = views[0].storage
    if storage is None:
        return []
    used = views[0].element_type.bytes_for(distinct_elements(views))
    item = max(views[0].element_type.bits // 8, 1)
    unused = (storage.size_bytes - used) // item
    if used and unused > 1024 and storage.size_bytes > 2 * used and not any(view.overlaps_itself for view in views):
        return [
            f"{printable(views[0].name)} uses {used // item:,} of {storage.size_bytes // item:,} stored elements: "
            f"{unused:,} unused ones ride along"
        ]
    return []


def _equal_copies(tensors: list[Tensor]) -> list[str]:
    """Matrices with the same recorded checksum and size in different storages."""
    groups: dict[tuple[int, int], dict[int, str]] = {}
    for tensor in tensors:
        storage = tensor.storage
        if storage is not None and storage.crc32 and len(tensor.shape) > 1 and not is_optimizer_state(tensor):
            groups.setdefault((storage.crc32, storage.size_bytes), {}).setdefault(id(storage), tensor.name)
    return [
        " and ".join(printable(name, limit=60) for name in list(names.values())[:4])
        + " have equal content and are not shared"
        for names in groups.values()
        if len(names) > 1
    ]
