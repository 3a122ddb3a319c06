"""Built-in samples as corpora: prepared into a cache when they are first asked for, and found there afterwards."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from strata_core.corpus.format import FORMAT_VERSION
from strata_core.corpus.preparing.preparation import prepare_sample
from strata_core.corpus.preparing.settings import PreparationSettings
from strata_core.corpus.reading import open_corpus
from strata_core.corpus.sources.samples import sample_version
from strata_core.errors import DataError
from strata_core.files import storage_errors
from strata_core.manifest import canonical_json
from strata_core.observer import SILENT, Observer

SAMPLE_VAL_FRACTION = 0.1
"""Large enough that a sample of some dozens of documents has a few to validate on."""


def cache_folder() -> Path:
    """Where strata keeps what it can make again: $STRATA_CACHE, else $XDG_CACHE_HOME/strata, else ~/.cache/strata."""
    if own := os.environ.get("STRATA_CACHE"):
        return Path(own)
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "strata"
    return Path.home() / ".cache" / "strata"


def sample_corpus(
    name: str, *, vocab_size: int = 4096, val_fraction: float = SAMPLE_VAL_FRACTION, observer: Observer = SILENT
) -> Path:
    """The corpus directory of a built-in sample; made on first use, by one process while others wait for it.

    The directory's name has a digest of the sample's version, the settings and the format version, so that another text
    or setting is another directory.

    Raises:
        UsageError: no sample has that name, or a setting that cannot be.
        StorageError: the cache cannot be written.
    """
    settings = PreparationSettings(vocab_size=vocab_size, val_fraction=val_fraction)
    return made_once(
        name,
        [FORMAT_VERSION, sample_version(name), vocab_size, val_fraction],
        check=open_corpus,
        make=lambda folder: prepare_sample(name, folder, settings, observer=observer),
        observer=observer,
    )


def made_once(
    name: str, identity: Any, *, check: Callable[[Path], object], make: Callable[[Path], object], observer: Observer
) -> Path:
    """A folder of the cache, made on first use, by one process while others wait for it.

    Args:
        name: of the sample.
        identity: JSON value that changes whenever the folder's content does; its digest is in the folder's name.
        check: raises DataError where the folder is not whole; it is made again then.
        make: makes the folder.
        observer: told when it is made again.

    Raises:
        StorageError: the cache cannot be written.
    """
    from filelock import FileLock

    key = hashlib.sha256(canonical_json(identity)).hexdigest()[:16]
    corpora = cache_folder() / "samples"
    folder = corpora / f"{name}-{key}"
    with storage_errors(corpora):
        corpora.mkdir(parents=True, exist_ok=True)
        lock = FileLock(corpora / f"{folder.name}.lock")
        lock.acquire()
    try:
        if folder.exists():
            try:
                check(folder)
                return folder
            except DataError as error:
                observer.warning(f"{error.message}; making the sample again")
                with storage_errors(folder):
                    shutil.rmtree(folder)
        make(folder)
        return folder
    finally:
        lock.release()
