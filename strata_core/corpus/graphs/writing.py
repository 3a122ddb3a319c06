"""Examples appended to the arrays of graph_layout: constant memory, the same bytes every time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from strata_core.corpus.flat_arrays import ArrayFiles
from strata_core.corpus.graphs.example import GraphExample, check_example
from strata_core.corpus.graphs.layout import ARRAYS, CUTS, FORMAT_VERSION, NOTHING
from strata_core.corpus.graphs.names import GraphNames

_EXAMPLES_HELD = 1000
_CUTS_INSIDE = {"step_offsets", "path_edge_offsets"}
"""Offsets that cut a branch or a path, where all others cut an example."""


def write_examples(folder: Path, examples: Iterable[GraphExample], names: GraphNames) -> None:
    """Writes one split, each example with a graph of its own.

    Args:
        folder: the split's folder, to be made.
        examples: in order; a twin is an index into them.
        names: what the numbers in them stand for.

    Raises:
        DataError: an example that cannot be used; named by its id.
        StorageError: the file system refused.
    """
    with ArrayFiles(folder, ARRAYS, format_version=FORMAT_VERSION) as files:
        held = _Columns(files)
        for example in examples:
            check_example(example, names)
            held.add(example)
            if held.n_examples == _EXAMPLES_HELD:
                held.flush()
        held.flush()
        files.facts["counts"] = count_rows(files.rows)


def count_rows(rows: dict[str, int]) -> dict[str, int]:
    """What a split holds, by the lengths of its arrays."""
    return {
        "graphs": rows["node_offsets"] - 1,
        "nodes": rows["node_types"],
        "edges": rows["edges"],
        "examples": rows["modes"],
        "answers": rows["answers"],
        "paths": rows["path_kinds"],
    }


class _Columns:
    """The next few rows of every array, not written yet."""

    def __init__(self, files: ArrayFiles) -> None:
        self.n_examples = 0
        self._files = files
        self._n_written = 0
        self._rows: dict[str, list[Any]] = defaultdict(list)

    def add(self, example: GraphExample) -> None:
        rows, query = self._rows, example.query
        rows["node_types"] += example.node_types
        rows["edges"] += example.edges
        rows["example_graphs"].append(self._n_written + self.n_examples)
        rows["ids"] += example.id.encode()
        rows["modes"].append(query.mode)
        rows["statuses"].append(example.status)
        probability = example.supported_probability
        rows["supported_probabilities"].append(float("nan") if probability is None else probability)
        rows["numbers"].append(_or_nothing(example.number))
        rows["targets"].append(_or_nothing(example.target))
        rows["ends"].append(_or_nothing(query.end))
        rows["query_edges"].append(NOTHING)
        rows["twins"].append(_or_nothing(example.twin))
        for branch in query.branches:
            rows["branch_starts"].append(branch.start)
            rows["steps"] += branch.steps
            self._cut("step_offsets")
        rows["answers"] += example.answers
        for path in example.paths:
            rows["path_kinds"].append(path.kind)
            rows["path_branches"].append(path.branch)
            rows["path_edges"] += path.edges
            self._cut("path_edge_offsets")
        for offsets in CUTS.keys() - _CUTS_INSIDE:
            self._cut(offsets)
        self.n_examples += 1

    def flush(self) -> None:
        for name in ARRAYS:
            self._files.append(name, self._rows.pop(name, []))
        self._n_written += self.n_examples
        self.n_examples = 0

    def _cut(self, offsets: str) -> None:
        owner = CUTS[offsets]
        self._rows[offsets].append(self._files.rows[owner] + len(self._rows[owner]))


def _or_nothing(value: int | None) -> int:
    return NOTHING if value is None else value
