"""A trained language model written out as a folder of its own, with a card and a manifest: whole, or not at all."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from strata_core import __version__
from strata_core.errors import PlaceTakenError, UsageError
from strata_core.export.causal_part import open_causal_part
from strata_core.export.format import DEFAULT_SHARD_BYTES, DTYPES, format_named
from strata_core.export.model_card import model_card
from strata_core.files import folder_made_whole, storage_errors
from strata_core.manifest import MANIFEST_NAME, Manifest, hash_files
from strata_core.observer import SILENT, Observer
from strata_core.training.llama_folder import EXPORT
from strata_core.training.trained import BEST_OR_LATEST


def export_model(
    path: Path,
    out: Path,
    *,
    format: str,
    dtype: str | None = None,
    max_shard_bytes: int = DEFAULT_SHARD_BYTES,
    choose: str = BEST_OR_LATEST,
    observer: Observer = SILENT,
) -> dict[str, Any]:
    """Writes the causal part of a model in a format of others.

    Args:
        path: a run, a checkpoint, or a folder of a Llama.
        out: the folder to make.
        format: of `FORMATS`: "hf" or "gguf".
        dtype: of `DTYPES`; None: as the weights are stored.
        max_shard_bytes: most bytes of tensors in one file of weights.
        choose: which checkpoint of a run.
        observer: told which checkpoint it is, and what stays behind.

    Returns:
        "out", "format", "files" (names), "bytes" (of all of them), "left_behind" (names of parts).

    Raises:
        UsageError: no such format, dtype or model; a package is missing; or a model without a counterpart.
        VerificationError, DataError: the model is unsafe to load, or damaged.
        PlaceTakenError: `out` exists.
        StorageError: the file system refused; nothing is left then.
    """
    writer = format_named(format)
    if dtype is not None and dtype not in DTYPES:
        raise UsageError(f"--dtype {dtype}: no such dtype", hint=f"choose from {', '.join(DTYPES)}")
    writer.check()
    if os.path.lexists(out):
        raise PlaceTakenError(f"{out} exists already", hint="choose another place; nothing is overwritten")
    part = open_causal_part(path, choose=choose, observer=observer)
    if part.left_behind:
        observer.notice(f"stays behind, since a Llama has no counterpart: {', '.join(part.left_behind)}")
    stored = str(next(iter(part.tensors.values())).dtype).removeprefix("torch.")
    with folder_made_whole(out) as aside, storage_errors(out):
        writer.write(part, aside, dtype=dtype, max_shard_bytes=max_shard_bytes)
        card = model_card(part, name=out.absolute().name, format=format, dtype=dtype or stored)
        (aside / "README.md").write_text(card, encoding="utf-8")
        parent = part.parent
        if parent.path is not None:
            parent = replace(parent, path=os.path.relpath(parent.path, os.path.realpath(out)))
        record = {"format": format, "dtype": dtype or stored, "left_behind": list(part.left_behind)}
        names = sorted(os.listdir(aside))
        Manifest(EXPORT, tuple(hash_files(aside, names)), (parent,), record=record | {"strata": __version__}).write(
            aside
        )
        sizes = {name: (aside / name).stat().st_size for name in [*names, MANIFEST_NAME]}
    return {
        "out": str(out),
        "format": format,
        "files": sorted(sizes),
        "bytes": sum(sizes.values()),
        "left_behind": list(part.left_behind),
    }
