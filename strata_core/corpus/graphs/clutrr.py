"""CLUTRR (Sinha et al. 2019) as graphs: which kin somebody is, told by a chain of relations between others.

Each line of a file is {"id", "hops", "edges": [[node, relation, node], ...], "query": [node, node], "target"}; tests
have "genders" too, one for each node. The edges, in order, walk from the first node of the query to the second. In many
graphs the walk comes back to nodes where it was before, so that the graph is no simple chain.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strata_core.corpus.graphs.example import Branch, GraphExample, GraphPath, Mode, PathKind, Query, Status
from strata_core.corpus.graphs.names import GraphNames
from strata_core.errors import DataError, UsageError


@dataclass(frozen=True, slots=True)
class Kinship:
    """One line of a file."""

    id: str
    edges: tuple[tuple[int, str, int], ...]
    query: tuple[int, int]
    target: str


def read_clutrr(lines: Iterable[bytes], *, file: str) -> Iterator[Kinship]:
    """Streams the examples of a file.

    Args:
        lines: lines with their ends, as a file open for binary reading gives them.
        file: the file's name for messages.

    Raises:
        DataError: a line that is no example; named by line and id.
    """
    for number, raw in enumerate(lines, 1):
        line = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
        if line.strip():
            yield _kinship(line, f"{file}:{number}")


def clutrr_names(kinships: Iterable[Kinship]) -> GraphNames:
    """The relations of edges and the labels asked for, in alphabetical order."""
    relations: set[str] = set()
    targets: set[str] = set()
    for kinship in kinships:
        relations.update(relation for _, relation, _ in kinship.edges)
        targets.add(kinship.target)
    return GraphNames(relations=tuple(sorted(relations)), targets=tuple(sorted(targets)))


def kinship_examples(kinships: Iterable[Kinship], names: GraphNames) -> Iterator[GraphExample]:
    """Examples that ask for the label between two nodes, with the walk as the path that supports it.

    Raises:
        DataError: a relation or label that `names`, made of the training examples, does not have.
    """
    relation_number = {name: number for number, name in enumerate(names.relations)}
    target_number = {name: number for number, name in enumerate(names.targets)}
    for kinship in kinships:
        unknown = {relation for _, relation, _ in kinship.edges} - relation_number.keys()
        if unknown or kinship.target not in target_number:
            which = ", ".join(sorted(unknown)) or kinship.target
            raise DataError(f"example {kinship.id}: {which} does not occur in training")
        start, end = kinship.query
        edges = tuple((source, relation_number[name], destination) for source, name, destination in kinship.edges)
        walk = tuple(range(len(edges)))
        yield GraphExample(
            id=kinship.id,
            node_types=(0,) * _n_nodes(kinship.edges),
            edges=edges,
            query=Query(Mode.RELATION, (Branch(start),), end),
            status=Status.SUPPORTED,
            target=target_number[kinship.target],
            paths=(GraphPath(PathKind.SUPPORTING, 0, walk),),
            supported_probability=1.0,
        )


def clutrr_files(folder: Path) -> dict[str, Path]:
    """The files of a folder by split: train.jsonl is "train", test_K.jsonl is "test-K" with K in two digits.

    Raises:
        UsageError: the folder is not there.
        DataError: it has no train.jsonl.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder", hint="CLUTRR is read from a folder of files")
    if not (folder / "train.jsonl").is_file():
        raise DataError(f"{folder}: no train.jsonl", hint="CLUTRR is read from train.jsonl and test_K.jsonl")
    tests = {}
    for path in folder.glob("test_*.jsonl"):
        match = re.fullmatch(r"test_([0-9]{1,2})\.jsonl", path.name)
        if match:
            tests[f"test-{int(match[1]):02d}"] = path
    return {"train": folder / "train.jsonl", **dict(sorted(tests.items()))}


def _kinship(line: bytes, place: str) -> Kinship:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise DataError(f"{place}: not JSON: {error}") from None
    if not isinstance(record, dict):
        raise DataError(f"{place}: not a JSON object")
    fault = _record_fault(record)
    if fault:
        raise DataError(f"{place} (id {record.get('id')}): {fault}")
    source, destination = record["query"]
    edges = tuple((edge[0], edge[1], edge[2]) for edge in record["edges"])
    return Kinship(record["id"], edges, (source, destination), record["target"])


def _record_fault(record: dict[str, Any]) -> str | None:
    for key in ("id", "target"):
        if not isinstance(record.get(key), str):
            return f"{key} is {record.get(key)!r}, not a string"
    edges, query = record.get("edges"), record.get("query")
    if not isinstance(edges, list) or not edges or not all(map(_is_edge, edges)):
        return "edges is not a list of [node, relation, node], nodes counted from 0"
    if not isinstance(query, list) or len(query) != 2 or not all(map(_is_node, query)):
        return f"query is {query!r}, not two nodes"
    n_nodes = _n_nodes(edges)
    n_named = len({node for source, _, destination in edges for node in (source, destination)})
    if n_named != n_nodes:
        return f"{n_named} nodes are in the edges, although there is a node {n_nodes - 1}"
    genders = record.get("genders")
    if genders is not None and (not isinstance(genders, list) or len(genders) != n_nodes):
        return f"genders is {genders!r}, not a list with one for each of {n_nodes} nodes"
    walk = [query[0], *(edge[2] for edge in edges)]
    if [edge[0] for edge in edges] != walk[:-1] or walk[-1] != query[1]:
        return f"the edges are no walk from {query[0]} to {query[1]}"
    return None


def _n_nodes(edges: Sequence[Sequence[Any]]) -> int:
    return 1 + max(max(edge[0], edge[2]) for edge in edges)


def _is_edge(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 3:
        return False
    source, relation, destination = value
    return _is_node(source) and isinstance(relation, str) and _is_node(destination)


def _is_node(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
