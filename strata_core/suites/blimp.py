"""BLiMP (Warstadt et al. 2020): JSON Lines, a pair a line; UID is the paradigm, linguistics_term the phenomenon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from strata_core.suites.pairs import Pair, files_of, numbered_lines, parsed_object, text_of


def read_blimp(path: Path) -> Iterator[Pair]:
    """The pairs of a file, or of all .jsonl and .jsonl.gz of a folder.

    Raises:
        UsageError, DataError: as PairReader.
    """
    for file in files_of(path, ("*.jsonl", "*.jsonl.gz"), "BLiMP's data"):
        for where, line in numbered_lines(file):
            if line.strip():
                value = parsed_object(line, where)
                phenomenon, paradigm = (text_of(value, name, where) for name in ("linguistics_term", "UID"))
                good, bad = (text_of(value, name, where) for name in ("sentence_good", "sentence_bad"))
                yield Pair(phenomenon, paradigm, good, bad, where)
