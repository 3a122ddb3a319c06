"""What a format of export has to offer, and where the formats are found by name; loads no torch."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from strata_core.errors import UsageError

if TYPE_CHECKING:
    from strata_core.export.causal_part import CausalPart

FORMATS = {"hf": "strata_core.export.huggingface", "gguf": "strata_core.export.gguf_file"}
DTYPES = ("float32", "float16", "bfloat16")
DEFAULT_SHARD_BYTES = 5 * 10**9


class ExportFormat(Protocol):
    """A module that writes one format."""

    def check(self) -> None:
        """Refuses before anything is read.

        Raises:
            UsageError: a package that the format needs is not installed.
        """

    def write(self, part: CausalPart, folder: Path, *, dtype: str | None, max_shard_bytes: int) -> None:
        """Writes weights, settings and tokenizer into an empty folder; model card and manifest come later.

        Args:
            part: the model.
            folder: where to.
            dtype: of DTYPES; None: as the weights are stored.
            max_shard_bytes: most bytes of tensors in a file, where the format splits them.

        Raises:
            UsageError, DataError: the format has no way to hold this model or tokenizer.
            OSError: the file system refused.
        """


def format_named(name: str) -> ExportFormat:
    """The format's module.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in FORMATS:
        raise UsageError(f"--to {name}: no such format", hint=f"choose from {', '.join(FORMATS)}")
    module: ExportFormat = importlib.import_module(FORMATS[name])  # type: ignore[assignment]
    return module
