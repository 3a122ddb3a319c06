"""Which inputs of a corpus hold graphs, and in what form: by what is in them, or as somebody says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from strata_core.corpus.graphs.jsonl import record_of
from strata_core.corpus.graphs.triples.files import form_of, has_own_suffix, in_folder, look
from strata_core.corpus.graphs.triples.knowledge_graph import SPLITS
from strata_core.corpus.graphs.triples.openke import OPENKE_ENTITIES, OPENKE_FILES
from strata_core.corpus.sources.files import STANDARD_INPUT, InputFile, find_files, format_by_name
from strata_core.corpus.sources.glance import Glance
from strata_core.corpus.sources.streams import open_stream
from strata_core.corpus.sources.understood import KINDS
from strata_core.errors import DataError, UsageError, first_problems
from strata_core.files import expand_path

TRIPLES = "triples"
CLUTRR = "clutrr"
GRAPHS = "graphs"
GRAPH_FORMATS = (TRIPLES, CLUTRR, GRAPHS)
"""Triples with splits, CLUTRR, and JSON Lines of graphs with questions (graph_jsonl)."""

_LOOKED_AT = 20
_LONGEST_LINE = 1 << 20
_FOLDER = "a folder of something else"


@dataclass(frozen=True)
class GraphInput:
    """What holds graphs: one of GRAPH_FORMATS, and a folder; for GRAPHS also a file, for TRIPLES also files."""

    format: str
    path: Path
    more: tuple[Path, ...] = ()

    @property
    def paths(self) -> tuple[Path, ...]:
        """The folder or all files."""
        return (self.path, *self.more)


def find_graph_input(inputs: Sequence[str | os.PathLike[str]], format: str) -> GraphInput | None:
    """The graphs behind the inputs of a command line; None where they are text or annotated sentences.

    Args:
        inputs: files and folders, with `~` expanded.
        format: one of GRAPH_FORMATS; "auto" to look into folders and files, what is no graph being text; any other for
            text.

    Raises:
        UsageError: graphs are not the only kind of input.
        DataError: a folder of triples without any for training.
    """
    if format in GRAPH_FORMATS:
        return _as_said(inputs, format)
    if format != "auto":
        return None
    paths = [expand_path(given) for given in inputs if os.fspath(given) != STANDARD_INPUT]
    if paths and len(paths) == len(inputs) and _are_openke(paths):
        return GraphInput(TRIPLES, paths[0], tuple(paths[1:]))
    looks = {path: look(path) for path in paths if path.is_file() and form_of(path.name) and not _is_own(path)}
    has_triples = any(map(_is_own, paths)) or any(seen.is_triples for seen in looks.values())
    likely = {path for path, seen in looks.items() if seen.is_mostly_triples or seen.is_blank} if has_triples else set()
    kinds = {path: TRIPLES if _is_own(path) or path in likely else _format_of(path) for path in paths}
    found = [path for path, kind in kinds.items() if kind is not None]
    if not found:
        return None
    first = GraphInput(kinds[found[0]] or TRIPLES, found[0])
    if len(inputs) == 1:
        return first
    is_one_graph = set(kinds.values()) == {TRIPLES} and not any(path.is_dir() for path in found)
    if is_one_graph and len(paths) == len(inputs):
        return GraphInput(TRIPLES, paths[0], tuple(paths[1:]))
    raise _mixed(inputs, kinds, looks)


def _as_said(inputs: Sequence[str | os.PathLike[str]], format: str) -> GraphInput:
    if any(os.fspath(given) == STANDARD_INPUT for given in inputs):
        raise UsageError(f"format {format} from a pipe", hint="it is read from files, whose names tell the splits")
    paths = [expand_path(given) for given in inputs]
    if format == TRIPLES and len(paths) > 1 and not any(path.is_dir() for path in paths):
        return GraphInput(format, paths[0], tuple(paths[1:]))
    if len(paths) != 1:
        files = "one folder, or files of triples" if format == TRIPLES else "one folder, or one .jsonl file of graphs"
        raise UsageError(f"{len(paths)} inputs of format {format}", hint=f"a corpus of graphs is made from {files}")
    return GraphInput(format, paths[0])


def _mixed(
    inputs: Sequence[str | os.PathLike[str]], kinds: dict[Path, str | None], looks: dict[Path, Glance]
) -> UsageError:
    """Names the inputs of each kind."""
    named: dict[str, list[str]] = {}
    for path, kind in kinds.items():
        seen = looks.get(path)
        odd = f" ({seen.odd})" if kind is None and seen is not None and seen.n_triples and seen.odd else ""
        other = _FOLDER if path.is_dir() else KINDS.get(format_by_name(path.name) or "", "nothing that is read")
        named.setdefault(KINDS[kind] if kind else other, []).append(f"{path}{odd}")
    if any(os.fspath(given) == STANDARD_INPUT for given in inputs):
        named.setdefault("standard input", []).append("-")
    if len(named) == 1:
        return UsageError(
            f"several graphs: {', '.join(map(str, kinds))}",
            hint="a corpus is made from one folder, or from the files of one graph",
        )
    return UsageError(
        "inputs of different kinds, and a corpus has one",
        problems=tuple(f"{kind}: {', '.join(first_problems(names))}" for kind, names in named.items()),
        hint="make a corpus of each kind; --format says how all files are read: triples, or text",
    )


def _are_openke(paths: Sequence[Path]) -> bool:
    """Whether files are of OpenKE's layout, which is read as the folder that they lie in."""
    return all(path.name in OPENKE_FILES and (path.parent / OPENKE_ENTITIES).is_file() for path in paths)


def _is_own(path: Path) -> bool:
    return has_own_suffix(path.name) and not path.is_dir()


def _format_of(path: Path) -> str | None:
    try:
        if path.is_dir():
            return _format_of_folder(path)
        return GRAPHS if _is_json_lines(path) and _begins_with_graph(path) else None
    except OSError:
        return None


def _format_of_folder(folder: Path) -> str | None:
    usual = [folder / f"{split}.txt" for split in SPLITS]
    is_openke = (folder / OPENKE_ENTITIES).exists() and (folder / "train2id.txt").is_file()
    if is_openke or (all(path.is_file() for path in usual) and any(look(path).is_mostly_triples for path in usual)):
        return TRIPLES
    lines = json_lines_in(folder)
    if (folder / "train.jsonl") in lines and any(map(_begins_with_kinship, lines)):
        return CLUTRR
    if any(map(_begins_with_graph, lines)):
        return GRAPHS
    is_text = all(path.is_file() for path in usual)
    return TRIPLES if not is_text and _is_folder_of_triples(folder) else None


def _is_folder_of_triples(folder: Path) -> bool:
    """Whether nothing but triples is in a folder, documentation aside.

    Raises:
        UsageError: there are files of triples, one for training among them, beside something else to train on.
        DataError: there are triples alone, by their names none for training.
    """
    found = in_folder(folder, beside_others=False)
    if found.others and found.files:
        triples = [file.file.shown for file in found.files]
        raise UsageError(
            f"{folder}: files of different kinds, and a corpus has one",
            problems=(
                f"triples: {', '.join(first_problems(triples))}",
                f"something else: {', '.join(first_problems(found.others))}",
            ),
            hint="name the files themselves; --format triples reads those of triples alone, --format text all as text",
        )
    return bool(found.files)


def json_lines_in(folder: Path) -> list[Path]:
    """The files of JSON Lines in a folder by name, compressed ones (.gz, .zst) among them, hidden ones left out."""
    return sorted(path for path in folder.iterdir() if _is_json_lines(path) and path.is_file())


def json_lines_file(path: Path) -> InputFile:
    """A file of JSON Lines, to open with `open_stream`.

    Raises:
        UsageError: it is not there, or no file.
    """
    return find_files([path], format="jsonl")[0][0]


def _is_json_lines(path: Path) -> bool:
    return format_by_name(path.name) == "jsonl" and not path.name.startswith(".")


def _begins_with_graph(path: Path) -> bool:
    record = _first_record(path)
    return isinstance(record.get("edges"), list) and "text" not in record


def _begins_with_kinship(path: Path) -> bool:
    record = _first_record(path)
    return _begins_with_graph(path) and isinstance(record.get("query"), list) and "target" in record


def _first_record(path: Path) -> dict[str, Any]:
    """The first record of a file of JSON Lines; empty where that is no object, or the file cannot be read."""
    try:
        with open_stream(json_lines_file(path)) as stream:
            return record_of(next((line for line in _first_lines(stream.content) if line.strip()), b"")) or {}
    except (DataError, UsageError):
        return {}


def _first_lines(file: BinaryIO) -> list[bytes]:
    return list(islice(iter(lambda: file.readline(_LONGEST_LINE), b""), _LOOKED_AT))
