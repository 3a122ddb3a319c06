"""A knowledge graph written as a corpus of graphs: one graph, and a question for each triple."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from strata_core.corpus.flat_arrays import ArrayFiles
from strata_core.corpus.graphs.example import Mode, Status
from strata_core.corpus.graphs.layout import ARRAYS, FORMAT_VERSION, NOTHING
from strata_core.corpus.graphs.names import GraphNames
from strata_core.corpus.graphs.triples.knowledge_graph import Triples
from strata_core.corpus.graphs.writing import count_rows

SPLIT_NAMES = {"train": "train", "valid": "val", "test": "test"}
"""What the splits of triples are called in a corpus."""


def triples_names(triples: Triples) -> GraphNames:
    """What the numbers in the corpus of a knowledge graph stand for."""
    return GraphNames(relations=triples.relations, entities=triples.entities)


def write_triples_split(folder: Path, triples: Triples, split: str) -> None:
    """Writes a split: the graph of all entities and the training triples; for each triple of the split the question
    what its relation leads to from its head.

    Training examples name their own edge in `query_edges`. What the relation leads back to from the tail is asked with
    step relation + number of relations; such questions follow from these and are not written.

    Args:
        folder: the split's folder, to be made.
        triples: the whole knowledge graph.
        split: a key of SPLIT_NAMES.

    Raises:
        StorageError: the file system refused.
    """
    edges = triples.splits["train"][:, [0, 1, 2]]
    asked = triples.splits[split]
    n_examples = len(asked)
    each = np.arange(n_examples + 1)
    identifiers = [f"{split}-{row}".encode() for row in range(n_examples)]
    values = {
        "node_types": np.zeros(len(triples.entities)),
        "node_offsets": [len(triples.entities)],
        "edges": edges,
        "edge_offsets": [len(edges)],
        "example_graphs": np.zeros(n_examples),
        "ids": np.frombuffer(b"".join(identifiers), dtype=np.uint8),
        "id_offsets": np.cumsum([len(identifier) for identifier in identifiers], dtype=np.int64),
        "modes": np.full(n_examples, Mode.ENTITY),
        "statuses": np.full(n_examples, Status.SUPPORTED),
        "supported_probabilities": np.ones(n_examples),
        "numbers": np.full(n_examples, NOTHING),
        "targets": np.full(n_examples, NOTHING),
        "ends": np.full(n_examples, NOTHING),
        "query_edges": np.arange(n_examples) if split == "train" else np.full(n_examples, NOTHING),
        "twins": np.full(n_examples, NOTHING),
        "branch_starts": asked[:, 0],
        "branch_offsets": each[1:],
        "steps": asked[:, 1],
        "step_offsets": each[1:],
        "answers": asked[:, 2],
        "answer_offsets": each[1:],
        "path_offsets": np.zeros(n_examples),
    }
    with ArrayFiles(folder, ARRAYS, format_version=FORMAT_VERSION) as files:
        for name, rows in values.items():
            files.append(name, rows)
        files.facts["counts"] = count_rows(files.rows)
