"""Graphs with queries that a reasoner is to answer."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from strata_core.corpus.graphs.example import GraphExample, Mode
from strata_core.corpus.graphs.jsonl import GraphFault, read_graph_lines, refuse_faults
from strata_core.corpus.graphs.names import GraphNames
from strata_core.corpus.graphs.reading import GraphReader
from strata_core.corpus.graphs.writing import write_examples
from strata_core.corpus.sources.streams import open_stream
from strata_core.errors import DataError, UsageError
from strata_core.tasks.input_file import find_input, format_in_name
from strata_core.tasks.kind import Question

Query = TypeVar("Query")

_TAKE_OUT = "correct these lines, or take them out of the file"
"""The remedy for faults in a file of queries."""

_LIKE = (
    'a line is a query with its graph: {"id": "q1", "num_nodes": 2, "edges": [[0, "RELATION", 1]], '
    '"query": {"branches": [{"start": 0, "steps": ["RELATION"]}]}}'
)


class Answering(Protocol[Query]):
    """What answers queries: the records of the queries that it is given, in order."""

    names: GraphNames

    def answer(self, examples: list[Query], progress: Callable[[int, int], None]) -> Iterator[dict[str, Any]]: ...


def answered(predictor: Answering[Query], read: Callable[[str, GraphNames], list[Query]], question: Question) -> bytes:
    """The records that answer the queries of a file, as JSON Lines.

    Raises:
        UsageError, DataError: as `read`, and as `predictor` answers.
    """
    queries = read(question.file, predictor.names)
    observer = question.observer
    observer.stage_started("answering", len(queries), "queries")
    records = list(predictor.answer(queries, lambda done, total: observer.stage_advanced(done)))
    observer.stage_finished()
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def refuse_sentences(question: Question) -> None:
    """Refuses sentences, by the format that is asked for or by the file's name.

    Raises:
        UsageError: they are what is given.
    """
    is_named = question.format == "auto"
    found = (format_in_name(question.file) or "jsonl") if is_named else question.format
    if found != "jsonl":
        raise UsageError(
            f"{question.file if is_named else f'--format {question.format}'}: this model answers queries in JSON Lines",
            hint="name a file of queries (.jsonl); --format jsonl where its name does not tell",
        )


def read_queries(file: str, names: GraphNames, *, check: Callable[[GraphExample], Sequence[str]]) -> list[GraphExample]:
    """All examples of a JSON Lines file (graph_jsonl), or of standard input ("-"); labels in it are not looked at.

    Args:
        file: its path; may be compressed (.gz, .zst).
        names: what the model knows.
        check: what an example asks for that the model cannot tell, in words.

    Raises:
        UsageError: there is no such file.
        DataError: it cannot be read, has no example, or examples in it cannot be used; they are listed.
    """

    def read(lines: Iterable[bytes], shown: str) -> Iterator[GraphExample | GraphFault]:
        return read_graph_lines(lines, file=shown, names=names, labelled=False, check=check)

    return whole_queries(file, read, like=_LIKE)


def whole_queries(
    file: str, read: Callable[[Iterable[bytes], str], Iterator[Query | GraphFault]], *, like: str
) -> list[Query]:
    """What is read from a JSON Lines file, or from standard input ("-"): all of it, or nothing.

    Args:
        file: its path; may be compressed (.gz, .zst).
        read: called with the lines and the file's name for messages; gives queries, and faults in their places.
        like: what a line looks like, for those who gave none.

    Raises:
        UsageError: there is no such file.
        DataError: it cannot be read, has no query, or queries in it cannot be used; they are listed.
    """
    found = find_input(file, "jsonl")
    queries: list[Query] = []
    faults: list[GraphFault] = []
    with open_stream(found) as stream:
        for line in read(stream.content, found.shown):
            if isinstance(line, GraphFault):
                faults.append(line)
            else:
                queries.append(line)
    refuse_faults(faults, remedy=_TAKE_OUT)
    if not queries:
        raise DataError(f"{found.shown}: there is no query in it", hint=like)
    return queries


def mode_faults(example: GraphExample, answered: Sequence[Mode]) -> list[str]:
    """That an example asks for something else than a model answers, in words."""
    mode = example.query.mode
    if mode in answered:
        return []
    answers = ", ".join(each.name.lower() for each in answered)
    return [f"asks for {mode.name.lower()}, which this model cannot tell: it answers {answers}"]


@contextmanager
def as_reader(examples: list[GraphExample], names: GraphNames) -> Iterator[GraphReader]:
    """The examples as a split of a corpus, in a temporary folder.

    Raises:
        StorageError: the file system took no more.
    """
    with tempfile.TemporaryDirectory(prefix="strata-predict-") as folder:
        split = Path(folder) / "queries"
        write_examples(split, examples, names)
        yield GraphReader(split)
