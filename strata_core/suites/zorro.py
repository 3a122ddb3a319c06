"""Zorro (Huebner et al. 2021): text files, a bad sentence before its good one; PHENOMENON-PARADIGM.txt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from strata_core.errors import DataError
from strata_core.suites.pairs import Pair, files_of, numbered_lines


def read_zorro(path: Path) -> Iterator[Pair]:
    """The pairs of a file, or of all .txt of a folder.

    Raises:
        UsageError, DataError: as PairReader.
    """
    for file in files_of(path, ("*.txt",), "Zorro's sentences"):
        bad = None
        for where, line in numbered_lines(file):
            if not line.strip():
                raise DataError(f"{where}: an empty line where a sentence has to be")
            if bad is None:
                bad = line
                continue
            yield Pair(file.stem.partition("-")[0], file.stem, line, bad, where)
            bad = None
        if bad is not None:
            raise DataError(f"{file}: an odd number of lines; the last sentence has no other")
