"""Examples that ask for the label between two nodes, read from a corpus as paths and laid out for a `PathComposition`.

Shapes: B examples, P paths, V bracketings of each, N relations on all paths, T = P V, L levels, W nodes of the widest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from strata_core.corpus.graphs.example import PathKind
from strata_core.corpus.graphs.reading import GraphReader
from strata_core.randomness import derive_seed
from strata_core.tasks.relation_prediction.bracketing import lay_out_trees
from strata_core.tasks.relation_prediction.composition_augmentation import Path
from strata_core.tasks.relation_prediction.simple_paths import simple_paths
from strata_core.training.random_rows import random_rows
from strata_core.training.task import Batch

CHAIN_LENGTHS = (3, 4)
"""Two bracketings of a shorter chain are the same; where these agree, those of longer ones do."""


class RelationReader:
    """One split, an example as paths between its two nodes.

    Args:
        reader: the split; every example asks for a label (Mode.RELATION).
        given: take the supporting paths that the corpus gives, which in CLUTRR may come back to nodes where they were
            before; else the simple paths are looked for.
        longest_path: longer paths are not looked for, in edges.
        max_paths: the shortest that many are taken.

    Attributes:
        targets: int64 [examples].
        hops: int64 [examples], edges of the example's graph: those of the walk that CLUTRR made it of.
    """

    def __init__(self, reader: GraphReader, *, given: bool, longest_path: int, max_paths: int) -> None:
        arrays = {name: np.asarray(array) for name, array in reader.arrays.items()}
        self.targets = arrays["targets"].astype(np.int64)
        self.hops = reader.edge_counts
        self._arrays = arrays
        self._given, self._longest, self._max_paths = given, longest_path, max_paths

    def __len__(self) -> int:
        return len(self.targets)

    def paths(self, example: int) -> list[Path]:
        """Relations along the paths of an example, by number; none where no path leads to its second node."""
        arrays = self._arrays
        graph = int(arrays["example_graphs"][example])
        edges = arrays["edges"][slice(*arrays["edge_offsets"][graph : graph + 2].tolist())].tolist()
        if self._given:
            return self._given_paths(example, [relation for _, relation, _ in edges])
        start, end = int(arrays["branch_starts"][arrays["branch_offsets"][example]]), int(arrays["ends"][example])
        return simple_paths(edges, start, end, max_edges=self._longest, max_paths=self._max_paths)

    def _given_paths(self, example: int, relations: list[int]) -> list[Path]:
        arrays = self._arrays
        found = []
        for row in range(*arrays["path_offsets"][example : example + 2].tolist()):
            edges = arrays["path_edges"][slice(*arrays["path_edge_offsets"][row : row + 2].tolist())].tolist()
            if arrays["path_kinds"][row] == PathKind.SUPPORTING and 0 < len(edges) <= self._longest:
                found.append(tuple(relations[edge] for edge in edges))
        return sorted(found, key=len)[: self._max_paths]


def random_chains(
    seed: int, step: int, positions: range, *, batch_size: int, chains: int, n_relations: int
) -> list[list[Path]]:
    """Chains of relations drawn at random, `chains` for each position in the global batch; nobody knows their label.

    Their lengths are CHAIN_LENGTHS, alike often. Numbers are drawn for the whole batch: how many bits one below a bound
    takes is not known before, so none can be skipped.
    """
    generator = np.random.default_rng(derive_seed(seed, "random chains", step))
    here = slice(positions.start, positions.stop)
    lengths = generator.choice(CHAIN_LENGTHS, size=(batch_size, chains))[here].tolist()
    relations = generator.integers(n_relations, size=(batch_size, chains, max(CHAIN_LENGTHS)))[here].tolist()
    return [
        [tuple(chain[:length]) for chain, length in zip(*of_position, strict=True)]
        for of_position in zip(relations, lengths, strict=True)
    ]


def training_priorities(seed: int, step: int, first: int, shape: tuple[int, int, int, int]) -> np.ndarray:
    """Priorities of merges in one step, for `lay_out_paths`; position in the global batch, from `first`, is the first
    axis, and what a position has does not depend on the others.

    Args:
        shape: positions, the most paths and chains of an example, V and the longest path less one.
    """
    return random_rows(derive_seed(seed, "bracketing", step), first, shape)


def fixed_priorities(n_bracketings: int, n_gaps: int) -> np.ndarray:
    """The bracketings of evaluation, the same for all paths of a length: from the left, from the right, random ones.

    Returns:
        float64 [V, n_gaps].
    """
    generator = np.random.default_rng(derive_seed(0, "evaluation bracketings"))
    from_left = np.arange(n_gaps, dtype=np.float64)
    others = generator.random((max(n_bracketings - 2, 0), n_gaps))
    return np.concatenate([from_left[None], from_left[None, ::-1], others])[:n_bracketings]


def lay_out_paths(
    paths_B: Sequence[Sequence[Path]],
    targets_B: np.ndarray,
    priorities: np.ndarray,
    *,
    no_path: int,
    chains_B: Sequence[Sequence[Path]] = (),
) -> Batch:
    """The tensors of a micro-batch.

    Args:
        paths_B: the paths of each example.
        targets_B: int64 [B].
        priorities: float64 [B, at least the most paths, V, at least the longest path less one]; the last of an
            example's rows are those of its chains.
        no_path: the relation that stands for an example without a path.
        chains_B: chains without a label beside each example, equally many; empty for none.

    Returns:
        "relations" int64 [N], "pairs" int64 [L, W, 2] and "roots" int64 [(P + chains) V] as a `PathComposition` takes
        them, a path's bracketings together, chains after all paths; "path_examples" int64 [P]; "path_weights" float32
        [P], one over the number of paths of the example; "targets" int64 [B].
    """
    given = [paths or [(no_path,)] for paths in paths_B]
    flat = [path for paths in given for path in paths]
    n_paths = len(flat)
    path_counts = np.array([len(paths) for paths in given], dtype=np.int64)
    path_examples = np.repeat(np.arange(len(given)), path_counts)
    path_numbers = np.arange(n_paths) - np.repeat(np.cumsum(path_counts) - path_counts, path_counts)
    n_chains = len(chains_B[0]) if len(chains_B) else 0
    flat += [chain for chains in chains_B for chain in chains]
    rows = np.concatenate([path_examples, np.repeat(np.arange(len(chains_B)), n_chains)])
    columns = np.concatenate([path_numbers, np.tile(np.arange(-n_chains, 0), len(chains_B))])
    lengths = np.array([len(path) for path in flat], dtype=np.int64)
    n_bracketings = priorities.shape[2]
    trees = lay_out_trees(
        np.repeat(np.cumsum(lengths) - lengths, n_bracketings),
        np.repeat(lengths, n_bracketings),
        priorities[rows, columns].reshape(len(flat) * n_bracketings, priorities.shape[3]),
        int(lengths.sum()),
    )
    return {
        "relations": torch.tensor([relation for path in flat for relation in path], dtype=torch.int64),
        "pairs": torch.from_numpy(trees.pairs_LW2),
        "roots": torch.from_numpy(trees.roots_T),
        "path_examples": torch.from_numpy(path_examples),
        "path_weights": torch.from_numpy((1.0 / path_counts[path_examples]).astype(np.float32)),
        "targets": torch.from_numpy(targets_B),
    }
