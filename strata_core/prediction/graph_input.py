"""Graphs with queries that a reasoner is to answer."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from strata_core.corpus.graph_example import GraphExample, Mode
from strata_core.corpus.graph_jsonl import GraphFault, read_graph_lines, refuse_faults
from strata_core.corpus.graph_names import GraphNames
from strata_core.corpus.graph_reading import GraphReader
from strata_core.corpus.graph_writing import write_examples
from strata_core.corpus.sources.streams import open_stream
from strata_core.errors import DataError
from strata_core.prediction.sentence_input import find_input

TAKE_OUT = "correct these lines, or take them out of the file"
"""The remedy for faults in a file of queries."""

_LIKE = (
    'a line is a query with its graph: {"id": "q1", "num_nodes": 2, "edges": [[0, "RELATION", 1]], '
    '"query": {"branches": [{"start": 0, "steps": ["RELATION"]}]}}'
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
    found = find_input(file, "jsonl")
    examples: list[GraphExample] = []
    faults: list[GraphFault] = []
    with open_stream(found) as stream:
        for read in read_graph_lines(stream.content, file=found.shown, names=names, labelled=False, check=check):
            if isinstance(read, GraphFault):
                faults.append(read)
            else:
                examples.append(read)
    refuse_faults(faults, remedy=TAKE_OUT)
    if not examples:
        raise DataError(f"{found.shown}: there is no query in it", hint=_LIKE)
    return examples


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
