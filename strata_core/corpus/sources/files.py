"""Finding the files to read: what a command line names, and the folders it names walked in a fixed order."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from strata_core.corpus.sources.conversions import conversion_of
from strata_core.errors import DataError, UsageError
from strata_core.files import expand_path

FORMATS = {
    ".txt": "text",
    ".text": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".conllu": "conllu",
    ".conllup": "conllu",
    ".conll09": "conll2009",
    ".conll2009": "conll2009",
}
"""What a file holds, by the suffix that is left when a compression suffix is taken off."""

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
STANDARD_INPUT = "-"


@dataclass(frozen=True)
class InputFile:
    """A file to read.

    Attributes:
        path: where it is.
        shown: what to call it in messages.
        name: relative to the input given, forward slashes; what `corpus.json` calls it.
        format: "text" (the file is one document), "jsonl" (each line is one), "conllu" or "conll2009" (annotated).
        compression: "gzip", "zstd", "none", or "by-content" where there is no name to tell.
        size_bytes: of the file as it lies there.
        is_standard_input: it comes through a pipe; `path` means nothing until it is copied.
    """

    path: Path
    shown: str
    name: str
    format: str
    compression: str
    size_bytes: int
    is_standard_input: bool = False


@dataclass(frozen=True)
class PassedOver:
    """A name inside a folder that is not read, and why."""

    name: str
    reason: str


def find_files(
    inputs: Sequence[str | os.PathLike[str]], *, format: str = "auto"
) -> tuple[list[InputFile], list[PassedOver]]:
    """The files behind the inputs of a command line, in reading order.

    Inputs are taken in the order given. Inside a folder the order is that of the relative path's bytes. Hidden names,
    suffixes that are not known and links to folders are passed over; a link to a file is followed unless that file is
    read already under its own name.

    Args:
        inputs: files and folders, with `~` expanded, and "-" for standard input.
        format: a value of FORMATS for how all files are read, "auto" to go by their names.

    Raises:
        UsageError: a path is not there, its name does not tell what it holds, or it is neither file nor folder.
        DataError: a folder cannot be read, or no file is found at all.
    """
    files: list[InputFile] = []
    passed_over: list[PassedOver] = []
    for given in inputs:
        if os.fspath(given) == STANDARD_INPUT:
            files.append(_standard_input(format))
            continue
        path = expand_path(given)
        try:
            mode = os.stat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            raise UsageError(f"{path}: there is no such file or folder") from None
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from error
        if stat.S_ISDIR(mode):
            if _split_suffixes(path.name)[0] is not None:
                raise UsageError(f"{path}: a folder with the name of a file", hint="give the files in it, or rename it")
            found, passed = _walk(path, format)
            files += found
            passed_over += passed
        elif stat.S_ISREG(mode):
            files.append(_named_file(path, format))
        else:
            raise UsageError(f"{path}: neither a file nor a folder", hint="what comes through a pipe is read from -")
    if not files:
        conversion = next(filter(None, (conversion_of(one.name) for one in passed_over)), None)
        hint = "see --format" if conversion is None else conversion
        raise DataError("nothing to read: no file with a name that tells what it holds", hint=hint)
    if sum(file.is_standard_input for file in files) > 1:
        raise UsageError("standard input (-) is given twice")
    return files, passed_over


def _standard_input(format: str) -> InputFile:
    chosen = "text" if format == "auto" else format
    path = Path(STANDARD_INPUT)
    return InputFile(path, "standard input", STANDARD_INPUT, chosen, "by-content", 0, is_standard_input=True)


def escape_name(name: str) -> str:
    """A file name as valid Unicode, reversibly: backslashes doubled, bytes that are not UTF-8 as \\xNN."""
    return os.fsencode(name.replace("\\", "\\\\")).decode("utf-8", "backslashreplace")


def uncompressed_name(name: str) -> str:
    """A file's name without a compression suffix."""
    stem, suffix = os.path.splitext(name)
    return stem if suffix.lower() in COMPRESSIONS else name


def format_by_name(name: str) -> str | None:
    """What a file holds (a value of FORMATS) by its name; None where the name does not tell."""
    return FORMATS.get(os.path.splitext(uncompressed_name(name))[1].lower())


def _split_suffixes(name: str) -> tuple[str | None, str]:
    """Format and compression by a file's name; the format is None where the name does not tell."""
    return format_by_name(name), COMPRESSIONS.get(os.path.splitext(name)[1].lower(), "none")


def _named_file(path: Path, format: str) -> InputFile:
    by_name, compression = _split_suffixes(path.name)
    conversion = conversion_of(str(path))
    if format == "auto" and by_name is None and conversion is not None:
        raise UsageError(f"{path}: its format is not read", hint=conversion)
    if format == "auto" and by_name is None:
        raise UsageError(
            f"{path}: its name does not tell what it holds ({', '.join(FORMATS)} would, with .gz or .zst behind)",
            hint=f"say --format {', '.join(sorted(set(FORMATS.values())))} or triples, whichever it is",
        )
    chosen = by_name if format == "auto" and by_name is not None else format
    return InputFile(path, str(path), escape_name(path.name), chosen, compression, path.stat().st_size)


def _walk(folder: Path, format: str) -> tuple[list[InputFile], list[PassedOver]]:
    entries = sorted(_entries_below(folder, ""), key=lambda entry: os.fsencode(entry[0]))
    real = {_identity(os.stat(entry)) for _, entry in entries if entry.is_file(follow_symlinks=False)}
    files: list[InputFile] = []
    passed: list[PassedOver] = []
    for name, entry in entries:
        reason = _reason_to_pass(entry, real, format)
        if reason is None:
            by_name, compression = _split_suffixes(entry.name)
            chosen = by_name if format == "auto" and by_name is not None else format
            size_bytes = entry.stat().st_size
            files.append(InputFile(Path(entry.path), entry.path, escape_name(name), chosen, compression, size_bytes))
        else:
            passed.append(PassedOver(escape_name(name), reason))
    return files, passed


def _entries_below(folder: Path | str, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Everything below a folder but what lies in hidden folders and behind links: relative name and entry."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                    yield from _entries_below(entry.path, name + "/")
                else:
                    yield name, entry
    except OSError as error:
        raise DataError(f"{error.filename or folder}: cannot be read: {error.strerror}") from error


def _reason_to_pass(entry: os.DirEntry[str], read_already: set[tuple[int, int]], format: str) -> str | None:
    if entry.name.startswith("."):
        return "hidden"
    if entry.is_symlink():
        try:
            status = os.stat(entry)
        except OSError:
            return "a link that leads nowhere"
        if stat.S_ISDIR(status.st_mode):
            return "a link to a folder"
        if _identity(status) in read_already:
            return "a link to a file that is read under another name"
        read_already.add(_identity(status))
    if not entry.is_file():
        return "not a regular file"
    if format == "auto" and _split_suffixes(entry.name)[0] is None:
        return "its name does not tell what it holds"
    return None


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
