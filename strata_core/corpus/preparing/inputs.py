"""The sources of a corpus behind the files that are given."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from strata_core.corpus.findings import refuse_findings
from strata_core.corpus.preparing.settings import PreparationSettings
from strata_core.corpus.sources.files import InputFile, find_files
from strata_core.corpus.sources.glance import glance
from strata_core.corpus.sources.source import FileSource, Source
from strata_core.corpus.treebanks.treebank_reading import TREEBANK_FORMATS, Treebanks, is_role_file, read_treebanks
from strata_core.errors import UsageError, first_problems
from strata_core.files import expand_path
from strata_core.observer import Observer

_SHOWN_NAMES = 10
_SHOWN_TRIPLES = 3
_LOOKED_AT_TEXTS = 1000

NO_TREEBANKS = Treebanks((), (), {}, ())


def find_role_files(paths: Sequence[str | os.PathLike[str]]) -> list[InputFile]:
    """The stand-off files behind paths: files of any name, and in folders those whose name tells.

    Raises:
        UsageError: a path is not there.
        DataError: a folder cannot be read.
    """
    files: list[InputFile] = []
    for path in paths:
        in_folder = expand_path(path).is_dir()
        found, _ = find_files([path], format="auto" if in_folder else "conllu")
        files += [file for file in found if file.format == "conllu" and not file.is_standard_input]
    return files


def warn_of_text_beside_treebanks(
    inputs: Sequence[str | os.PathLike[str]], files: Sequence[InputFile], observer: Observer
) -> None:
    """Warns of text in folders that hold treebanks: a licence or a readme there is seldom meant to be learned.

    Args:
        inputs: as somebody gave them.
        files: what was found behind them.
        observer: told the names.
    """
    for folder in filter(Path.is_dir, map(expand_path, inputs)):
        inside = [file for file in files if file.path.is_relative_to(folder)]
        texts = [file.name for file in inside if file.format == "text"]
        if texts and any(file.format in TREEBANK_FORMATS for file in inside):
            more = f" and {len(texts) - _SHOWN_NAMES} more" if len(texts) > _SHOWN_NAMES else ""
            observer.warning(
                f"{folder}: {', '.join(texts[:_SHOWN_NAMES])}{more}: text beside treebanks, read as documents to train "
                "on; to leave it out name the treebank files themselves"
            )


def tell_of_triples_read_as_text(files: Sequence[InputFile], observer: Observer) -> None:
    """Warns of text that looks like triples, at least in most of its first lines.

    Args:
        files: what is read, all of it as its name says.
        observer: told the names.

    Raises:
        UsageError: all that is read holds triples, in several folders or from a pipe.
        DataError: a file cannot be read.
    """
    texts = [file for file in files if file.format == "text"][:_LOOKED_AT_TEXTS]
    seen = {file.shown: glance(file) for file in texts}
    triples = [name for name, one in seen.items() if one.is_triples]
    if len(triples) == len(files):
        raise _lone_triples(files)
    if triples:
        more = f" and {len(triples) - _SHOWN_TRIPLES:,} more" if len(triples) > _SHOWN_TRIPLES else ""
        names = ", ".join(triples[:_SHOWN_TRIPLES]) + more
        observer.warning(f"{names}: three columns in each line, as triples have; read as text")
    nearly = [name for name, one in seen.items() if one.is_mostly_triples and not one.is_triples]
    if nearly:
        first = seen[nearly[0]]
        more = f"; {len(nearly) - 1:,} more files are like it" if len(nearly) > 1 else ""
        observer.warning(
            f"{nearly[0]}: {first.n_triples} of its first {first.n_lines} lines have three columns, as triples have, "
            f"and {first.odd}: read as text{more}; --format triples reads triples"
        )


def _lone_triples(files: Sequence[InputFile]) -> UsageError:
    if files[0].is_standard_input:
        return UsageError(
            "standard input holds triples, which are read from files",
            hint="save them in a file, whose name may tell the split; --format text reads them as text",
        )
    names = ", ".join(first_problems([file.shown for file in files]))
    return UsageError(
        f"{len(files):,} files of triples, not in one folder: {names}",
        hint="a graph is one folder, or files that are named one by one; --format text reads them as text",
    )


def open_sources(
    files: Sequence[InputFile],
    role_files: Sequence[InputFile],
    work: Path,
    settings: PreparationSettings,
    observer: Observer,
) -> tuple[list[Source], Treebanks]:
    """The sources behind input files, in reading order. Treebanks among them are read already.

    Args:
        files: text and treebanks; stand-off roles among them are told by the columns they declare.
        role_files: more of those.
        work: a folder for what is read.
        settings: on_error "stop" refuses all faults and doubts together.
        observer: told about progress.

    Raises:
        UsageError, DataError, StorageError: as `read_treebanks` and `refuse_findings`.
    """
    own_role_files = [file for file in files if is_role_file(file)]
    treebank_files = [file for file in files if file.format in TREEBANK_FORMATS and file not in own_role_files]
    treebanks = NO_TREEBANKS
    if treebank_files or own_role_files or role_files:
        treebanks = read_treebanks(
            treebank_files,
            [*own_role_files, *role_files],
            work=work,
            val_fraction=settings.val_fraction,
            observer=observer,
        )
    if settings.on_error == "stop":
        refuse_findings(treebanks.findings)
    read = dict(zip(treebank_files, treebanks.sources, strict=True))
    sources: list[Source] = []
    for file in files:
        if file not in own_role_files:
            sources.append(read[file] if file in read else FileSource(file))
    return sources, treebanks
