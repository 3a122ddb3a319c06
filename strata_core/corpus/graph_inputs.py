"""Which inputs of a corpus hold graphs, and in what form: by what is in them, or as somebody says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from strata_core.corpus.graph_jsonl import record_of
from strata_core.corpus.sources.files import STANDARD_INPUT
from strata_core.corpus.triples import triples_files
from strata_core.errors import UsageError
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
        return GRAPHS if path.suffix.lower() in (".jsonl", ".ndjson") and _begins_with_graph(path) else None
    except OSError:
        return None


def _format_of_folder(folder: Path) -> str | None:
    files = triples_files(folder)
    if all(path.is_file() for path in files):
        is_openke = files[0].name.endswith("2id.txt")
        if is_openke or any(_has_triples(path) for path in files):
            return TRIPLES
    lines = sorted(path for path in folder.glob("*.jsonl") if not path.name.startswith("."))
    if (folder / "train.jsonl") in lines and any(map(_begins_with_kinship, lines)):
        return CLUTRR
    return GRAPHS if any(map(_begins_with_graph, lines)) else None


def _has_triples(path: Path) -> bool:
    """Whether most lines at the beginning of a file have three columns."""
    lines = [line for line in _first_lines(path) if line.strip()]
    return bool(lines) and 2 * sum(len(line.split(b"\t")) == 3 for line in lines) > len(lines)


def _begins_with_graph(path: Path) -> bool:
    record = _first_record(path)
    return isinstance(record.get("edges"), list) and "text" not in record


def _begins_with_kinship(path: Path) -> bool:
    record = _first_record(path)
    return _begins_with_graph(path) and isinstance(record.get("query"), list) and "target" in record


def _first_record(path: Path) -> dict[str, Any]:
    """The first record of a file of JSON Lines; empty where that is no object."""
    return record_of(next((line for line in _first_lines(path) if line.strip()), b"")) or {}


def _first_lines(path: Path) -> list[bytes]:
    with open(path, "rb") as file:
        return list(islice(iter(lambda: file.readline(_LONGEST_LINE), b""), _LOOKED_AT))
