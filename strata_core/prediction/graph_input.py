"""Graphs with queries that a reasoner is to answer."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strata_core.corpus.graph_example import GraphExample
from strata_core.corpus.graph_jsonl import GraphFault, read_graph_lines, refuse_faults
from strata_core.corpus.graph_names import GraphNames
from strata_core.corpus.graph_reading import GraphReader
from strata_core.corpus.graph_writing import write_examples
from strata_core.corpus.sources.streams import open_stream
from strata_core.errors import DataError
from strata_core.prediction.sentence_input import find_input


def read_queries(file: str, names: GraphNames) -> list[GraphExample]:
    """All examples of a JSON Lines file (graph_jsonl), or of standard input ("-"); labels in it are not looked at.

    Args:
        file: its path; may be compressed (.gz, .zst).
        names: what the model knows.

    Raises:
        UsageError: there is no such file.
        DataError: it cannot be read, has no example, or examples in it cannot be used; they are listed.
    """
    found = find_input(file, "jsonl")
    examples: list[GraphExample] = []
    faults: list[GraphFault] = []
    with open_stream(found) as stream:
        for read in read_graph_lines(stream.content, file=found.shown, names=names, labelled=False):
            if isinstance(read, GraphFault):
                faults.append(read)
            else:
                examples.append(read)
    refuse_faults(faults)
    if not examples:
        raise DataError(f"{found.shown}: there is no example in it")
    return examples


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
