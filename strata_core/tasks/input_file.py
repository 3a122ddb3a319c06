"""The one file that a trained model is asked about."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from strata_core.corpus.sources.files import STANDARD_INPUT, InputFile, find_files, uncompressed_name
from strata_core.errors import UsageError

SUFFIXES = {
    ".txt": "text",
    ".text": "text",
    ".tok": "tokens",
    ".conllu": "conllu",
    ".conllup": "conllu",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
"""What a name says that its file holds, with .gz or .zst behind or without."""


def check_input(file: str) -> None:
    """Refuses what is neither a file nor standard input ("-").

    Raises:
        UsageError: there is nothing there, or a folder.
    """
    if file == STANDARD_INPUT:
        return
    if not os.path.exists(file):
        raise UsageError(f"{file}: there is no such file", hint="check the path; - is standard input")
    if os.path.isdir(file):
        raise UsageError(f"{file}: a folder, not a file", hint="name one file")


def find_input(file: str, format: str) -> InputFile:
    """One file, or standard input, to open with `open_stream`.

    Raises:
        UsageError: there is no such file.
    """
    check_input(file)
    found = find_files([file], format=format)[0][0]
    return replace(found, path=Path("/dev/stdin")) if found.is_standard_input else found


def format_in_name(file: str) -> str | None:
    """What a file holds by its name, a value of SUFFIXES; None where the name does not tell."""
    return SUFFIXES.get(Path(uncompressed_name(file)).suffix)
