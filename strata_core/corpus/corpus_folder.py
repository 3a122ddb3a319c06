"""The directory of a corpus, whatever it holds."""

from __future__ import annotations

import os
from pathlib import Path

from strata_core.corpus.format import CORPUS_JSON
from strata_core.errors import DataError, UsageError


def corpus_folder(path: str | os.PathLike[str]) -> Path:
    """The path of a corpus, which has a `corpus.json`.

    Raises:
        UsageError: there is nothing at `path`.
        DataError: what is there is no corpus.
    """
    folder = Path(path)
    if not folder.exists():
        raise UsageError(f"{folder}: there is no such corpus", hint="strata prepare-corpus makes one")
    if not (folder / CORPUS_JSON).is_file():
        raise DataError(f"{folder}: not a corpus: it has no {CORPUS_JSON}", hint="strata prepare-corpus makes one")
    return folder
