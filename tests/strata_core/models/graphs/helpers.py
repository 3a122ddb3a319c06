"""Random graphs of awkward shapes with queries, laid out for the reasoner, for the tests of its parts."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch

from strata_core.corpus.graphs.example import Branch, GraphExample, GraphPath, Mode, PathKind, Query, Status
from strata_core.corpus.graphs.names import GraphNames
from strata_core.corpus.graphs.reading import GraphReader
from strata_core.corpus.graphs.writing import write_examples
from strata_core.models import initialise
from strata_core.models.graphs.graph_reasoner import GraphReasoner, ReasonerConfig
from strata_core.models.graphs.reasoning_batch import ReasoningBatch
from strata_core.tasks.graph_queries.batches import Drawn, reasoning_arrays

NAMES = GraphNames(relations=("a", "b", "c", "d"), node_types=("x", "y"))


def random_example(seed: int, n_nodes: int, n_edges: int, *, mode: Mode = Mode.ENTITY, twin: int | None = None):
    """A graph with self-loops and parallel edges, its last node isolated, and a query with paths drawn as walks."""
    rng = np.random.default_rng(seed)
    used = max(n_nodes - 1, 1)
    edges = [(int(rng.integers(used)), int(rng.integers(4)), int(rng.integers(used))) for _ in range(n_edges)]
    if edges:
        edges += [edges[0], (0, 1, 0)]
    n_branches = int(rng.integers(1, 3)) if mode == Mode.ENTITY else 1
    branches, paths = [], []
    for branch in range(n_branches):
        start = int(rng.integers(n_nodes))
        branches.append(Branch(start, tuple(rng.integers(0, 8, rng.integers(1, 4)).tolist())))
        for kind in (PathKind.SUPPORTING, PathKind.COMPETING, PathKind.CONTRADICTING):
            walk = _walk(rng, edges, start, len(branches[-1].steps) - (kind == PathKind.COMPETING))
            paths.append(GraphPath(kind, branch, walk))
    status = Status(int(rng.integers(3)))
    if twin is not None:
        status = Status.NOT_ENOUGH_INFO
    supported = status == Status.SUPPORTED
    return GraphExample(
        id=f"random-{seed}",
        node_types=tuple(rng.integers(0, 2, n_nodes).tolist()),
        edges=tuple(edges),
        query=Query(mode, tuple(branches)),
        status=status,
        answers=tuple({0, n_nodes - 1}) if supported and mode != Mode.LARGEST else (),
        number=int(rng.integers(1, 6)) if supported and mode != Mode.ENTITY else None,
        paths=tuple(paths) if supported else tuple(p for p in paths if p.kind != PathKind.SUPPORTING),
        supported_probability=1.0,
        twin=twin,
    )


def _walk(rng, edges, here, length):
    walk = []
    for _ in range(length):
        leaving = [number for number, edge in enumerate(edges) if edge[0] == here]
        if not leaving:
            break
        walk.append(int(rng.choice(leaving)))
        here = edges[walk[-1]][2]
    return tuple(walk)


def reader_of(examples, names=NAMES) -> GraphReader:
    """The examples as a split; its arrays stay mapped when the files are gone."""
    with tempfile.TemporaryDirectory() as folder:
        write_examples(Path(folder) / "split", examples, names)
        return GraphReader(Path(folder) / "split")


def batch_of(reader: GraphReader, examples, *, relation_samples: int = 0, drawn: bool = True) -> ReasoningBatch:
    """Draws go by the example's number, so that each has the same wherever it stands."""
    keys = np.asarray(examples).astype(np.uint64) + np.uint64(17)
    graphs = reader.batch(np.asarray(examples))
    arrays = reasoning_arrays(graphs, Drawn(keys, keys, relation_samples) if drawn else None)
    return ReasoningBatch(**{name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()})


def small_reasoner(**changes) -> GraphReasoner:
    values = {"d_model": 16, "n_heads": 4, "message_rank": 8, "largest_number": 5, "inverse_edges": True}
    model = GraphReasoner(ReasonerConfig(len(NAMES.relations), len(NAMES.node_types), **(values | changes)))
    initialise(model, 3)
    with torch.no_grad():
        model.passing.update.outer.weight.normal_(0, 0.1, generator=torch.Generator().manual_seed(0))
    return model
