"""How a corpus is to be made."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from strata_core.corpus.text.tokenizer import check_vocab_size
from strata_core.errors import UsageError


@dataclass(frozen=True)
class PreparationSettings:
    """How a corpus is made.

    Attributes:
        vocab_size: of the tokenizer to learn; unused where one is given.
        tokenizer: a tokenizer.json to take instead.
        text_key: the key of the text in a JSON Lines record.
        format: "auto" to read files as their names say, or a value of FORMATS for all of them.
        roles: stand-off files, or folders of them, for the treebanks among the inputs.
        val_fraction: the share of documents held out for validation, 0 <= val_fraction < 1.
        shard_tokens: tokens after which a shard is closed.
        on_error: "stop" at a bad record, or "skip" it.
        workers: processes that encode; None for one a processor. Does not change the result.
        backend: "auto", "tokenizers" or "fast". Does not change the result.
        sample_sentences, sample_seed: of a sample that is generated; None for its own.
    """

    vocab_size: int = 8192
    tokenizer: Path | None = None
    text_key: str = "text"
    format: str = "auto"
    roles: tuple[str | os.PathLike[str], ...] = ()
    val_fraction: float = 0.01
    shard_tokens: int = 1 << 26
    on_error: str = "stop"
    workers: int | None = None
    backend: str = "auto"
    sample_sentences: int | None = None
    sample_seed: int | None = None


def check_settings(settings: PreparationSettings) -> None:
    """Refuses settings that cannot be.

    Raises:
        UsageError: names the value.
    """
    if not 0 <= settings.val_fraction < 1:
        raise UsageError(f"a validation share of {settings.val_fraction} cannot be", hint="it is from 0 up to below 1")
    if settings.shard_tokens < 1:
        raise UsageError(f"shards of {settings.shard_tokens} tokens cannot be", hint="it is 1 at least")
    if settings.workers is not None and settings.workers < 1:
        raise UsageError(f"{settings.workers} workers cannot be", hint="it is 1 at least")
    if settings.backend == "fast" and not has_fast_backend():
        raise UsageError("the fast backend is not installed", hint="pip install 'strata[fast]' brings it")
    if settings.sample_sentences is not None and settings.sample_sentences < 1:
        raise UsageError(f"a sample of {settings.sample_sentences} sentences cannot be", hint="it is 1 at least")
    if settings.tokenizer is None:
        check_vocab_size(settings.vocab_size)


def has_fast_backend() -> bool:
    """Whether gigatoken (the extra `fast`) is installed."""
    return importlib.util.find_spec("gigatoken") is not None
