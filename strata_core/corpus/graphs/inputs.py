"""Which inputs of a corpus hold graphs, and in what form: by what is in them, or as somebody says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from strata_core.corpus.graphs.jsonl import record_of
from strata_core.corpus.graphs.triples import triples_files
from strata_core.corpus.sources.files import STANDARD_INPUT, InputFile, find_files, format_by_name
from strata_core.corpus.sources.streams import open_stream
from strata_core.errors import DataError, UsageError
from strata_core.files import expand_path

TRIPLES = "triples"
CLUTRR = "clutrr"
GRAPHS = "graphs"
GRAPH_FORMATS = (TRIPLES, CLUTRR, GRAPHS)
"""Triples with splits, CLUTRR, and JSON Lines of graphs with questions (graph_jsonl)."""

_LOOKED_AT = 20
_LONGEST_LINE = 1 << 20


@dataclass(frozen=True)
class GraphInput:
    """What holds graphs: one of GRAPH_FORMATS and a folder, or for GRAPHS also a file."""

    format: str
    path: Path


def find_graph_input(inputs: Sequence[str | os.PathLike[str]], format: str) -> GraphInput | None:
    """The graphs behind the inputs of a command line; None where they are text.

    Args:
        inputs: files and folders, with `~` expanded.
        format: one of GRAPH_FORMATS; "auto" to look into folders and .jsonl files, what is no graph being text; any
            other for text.

    Raises:
        UsageError: graphs are not the only input.
    """
    if format in GRAPH_FORMATS:
        if len(inputs) != 1 or os.fspath(inputs[0]) == STANDARD_INPUT:
            raise UsageError(
                f"{len(inputs)} inputs of format {format}" if len(inputs) != 1 else f"format {format} from a pipe",
                hint="a corpus of graphs is made from one folder, or one .jsonl file of graphs",
            )
        return GraphInput(format, expand_path(inputs[0]))
    if format != "auto":
        return None
    paths = [expand_path(given) for given in inputs if os.fspath(given) != STANDARD_INPUT]
    found = [GraphInput(kind, path) for path in paths if (kind := _format_of(path)) is not None]
    if found and len(inputs) > 1:
        raise UsageError(
            f"{found[0].path} holds graphs ({found[0].format}), and there are other inputs",
            hint="a corpus of graphs is made from one input; --format text or jsonl reads all of them as text",
        )
    return found[0] if found else None


def _format_of(path: Path) -> str | None:
    try:
        if path.is_dir():
            return _format_of_folder(path)
        return GRAPHS if _is_json_lines(path) and _begins_with_graph(path) else None
    except OSError:
        return None


def _format_of_folder(folder: Path) -> str | None:
    files = triples_files(folder)
    if all(path.is_file() for path in files):
        is_openke = files[0].name.endswith("2id.txt")
        if is_openke or any(_has_triples(path) for path in files):
            return TRIPLES
    lines = json_lines_in(folder)
    if (folder / "train.jsonl") in lines and any(map(_begins_with_kinship, lines)):
        return CLUTRR
    return GRAPHS if any(map(_begins_with_graph, lines)) else None


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


def _has_triples(path: Path) -> bool:
    """Whether most lines at the beginning of a file have three columns."""
    with open(path, "rb") as file:
        lines = [line for line in _first_lines(file) if line.strip()]
    return bool(lines) and 2 * sum(len(line.split(b"\t")) == 3 for line in lines) > len(lines)


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
