"""Graphs and the questions about them, read back from the memory-mapped arrays of graph_layout."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from strata_core.corpus.flat_arrays import map_arrays, read_versioned_json
from strata_core.corpus.graphs.batch import GraphBatch, lay_out
from strata_core.corpus.graphs.example import Branch, GraphExample, GraphPath, Mode, PathKind, Query, Status
from strata_core.corpus.graphs.layout import ARRAYS, CUTS, FORMAT_VERSION, NOTHING
from strata_core.corpus.treebanks.structure_layout import HEADER_NAME, array_file
from strata_core.errors import DataError


class GraphReader:
    """One split of graphs and examples.

    Args:
        folder: the split's folder.

    Attributes:
        counts: how many graphs, nodes, edges, examples, answers and paths there are.
        arrays: every array of graph_layout.ARRAYS, memory-mapped.

    Raises:
        DataError: the header is missing or not understood, a file has another size than the header says, or offsets
            do not fit what they cut.
    """

    def __init__(self, folder: Path) -> None:
        header = read_versioned_json(folder / HEADER_NAME, format_version=FORMAT_VERSION, keys=("rows", "counts"))
        self.counts: dict[str, int] = header["counts"]
        self.arrays = map_arrays(folder, ARRAYS, header["rows"])
        for offsets, cut in CUTS.items():
            self._check_offsets(folder, offsets, cut)

    def __len__(self) -> int:
        return self.counts["examples"]

    @property
    def node_counts(self) -> np.ndarray:
        """int64 [examples]: nodes of the graph of each example."""
        return np.diff(self.arrays["node_offsets"])[self.arrays["example_graphs"]]

    @property
    def edge_counts(self) -> np.ndarray:
        """int64 [examples]: edges of the graph of each example."""
        return np.diff(self.arrays["edge_offsets"])[self.arrays["example_graphs"]]

    @property
    def hop_counts(self) -> np.ndarray:
        """int64 [examples]: steps of the longest branch of each query; 0 without steps."""
        branch_lengths = np.diff(self.arrays["step_offsets"])
        longest = np.zeros(len(self), dtype=np.int64)
        owners = np.repeat(np.arange(len(self)), np.diff(self.arrays["branch_offsets"]))
        np.maximum.at(longest, owners, branch_lengths)
        return longest

    def batch(self, examples: np.ndarray) -> GraphBatch:
        """Examples by number, laid out as one graph.

        Args:
            examples: int [B], each from 0 to below the number of examples, in the order wanted.
        """
        return lay_out(self.arrays, examples)

    def example(self, index: int) -> GraphExample:
        """Example number `index`, from 0, as it was written."""
        arrays = self.arrays
        graph = int(arrays["example_graphs"][index])
        status = Status(int(arrays["statuses"][index]))
        probability = float(arrays["supported_probabilities"][index])
        return GraphExample(
            id=arrays["ids"][self._rows("id_offsets", index)].tobytes().decode(),
            node_types=tuple(arrays["node_types"][self._rows("node_offsets", graph)].tolist()),
            edges=tuple((s, r, d) for s, r, d in arrays["edges"][self._rows("edge_offsets", graph)].tolist()),
            query=Query(Mode(int(arrays["modes"][index])), self._branches(index), self._value("ends", index)),
            status=status,
            answers=tuple(arrays["answers"][self._rows("answer_offsets", index)].tolist()),
            number=self._value("numbers", index),
            target=self._value("targets", index),
            paths=self._paths(index),
            supported_probability=None if np.isnan(probability) else probability,
            twin=self._value("twins", index),
        )

    def _branches(self, index: int) -> tuple[Branch, ...]:
        rows = self._rows("branch_offsets", index)
        starts = self.arrays["branch_starts"][rows].tolist()
        return tuple(
            Branch(start, tuple(self.arrays["steps"][self._rows("step_offsets", row)].tolist()))
            for row, start in enumerate(starts, rows.start)
        )

    def _paths(self, index: int) -> tuple[GraphPath, ...]:
        rows = self._rows("path_offsets", index)
        kinds, branches = self.arrays["path_kinds"][rows].tolist(), self.arrays["path_branches"][rows].tolist()
        return tuple(
            GraphPath(PathKind(kind), branch, self._path_edges(row))
            for row, (kind, branch) in enumerate(zip(kinds, branches, strict=True), rows.start)
        )

    def _path_edges(self, row: int) -> tuple[int, ...]:
        return tuple(self.arrays["path_edges"][self._rows("path_edge_offsets", row)].tolist())

    def _rows(self, offsets: str, index: int) -> slice:
        start, stop = self.arrays[offsets][index : index + 2].tolist()
        return slice(start, stop)

    def _value(self, name: str, index: int) -> int | None:
        value = int(self.arrays[name][index])
        return None if value == NOTHING else value

    def _check_offsets(self, folder: Path, name: str, cut: str) -> None:
        offsets = self.arrays[name]
        if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(self.arrays[cut]) or (np.diff(offsets) < 0).any():
            raise DataError(
                f"{folder / array_file(name)}: does not cut the {len(self.arrays[cut]):,} rows of {cut} in order",
                hint="strata verify-manifest tells what has changed; prepare the corpus again",
            )
