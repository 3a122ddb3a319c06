"""A knowledge graph as numbered triples, split into train, valid and test."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from strata_core.corpus.format import VAL
from strata_core.corpus.graphs.output import split_by_id
from strata_core.errors import DataError

COLUMNS = ("head", "relation", "tail")
"""In the order that files of names and the arrays made here have."""

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class Triples:
    """A knowledge graph.

    Attributes:
        entities, relations: names in the order of their numbers; in files of names, that of first occurrence in train,
            valid and test.
        splits: for "train", "valid" and "test" int32 [triples, 3]: head, relation, tail; no triple twice in one split.
        repeated: how many triples of each split came again in that split and were dropped.
        known: how many triples of "valid" and "test" are in an earlier split as well; they are kept.
        unseen_entities: how many entities of "valid" and "test" never occur in "train"; they are kept.
        unseen_relations: the same of relations.
        files: what was read.
        without_file: the splits that no file is for.
        held_out: how many training triples became "valid", where no file is for it.
        notices: what a person should know of the files.
    """

    entities: tuple[str, ...]
    relations: tuple[str, ...]
    splits: dict[str, np.ndarray]
    repeated: dict[str, int] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    unseen_entities: dict[str, int] = field(default_factory=dict)
    unseen_relations: dict[str, int] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    without_file: tuple[str, ...] = ()
    held_out: int = 0
    notices: tuple[str, ...] = ()


def knowledge_graph(
    entities: tuple[str, ...],
    relations: tuple[str, ...],
    raw: dict[str, np.ndarray],
    files: tuple[Path, ...],
    *,
    without_file: Collection[str] = (),
    val_fraction: float = 0.0,
    notices: tuple[str, ...] = (),
) -> Triples:
    """Drops what is there twice, holds out what is missing for validation, and counts what a person should know of.

    Args:
        entities, relations: names in the order of their numbers.
        raw: for each split int32 [triples, 3], as it was read.
        files: what was read; the first is named in errors.
        without_file: the splits that no file is for.
        val_fraction: share of the training triples that become "valid", where no file is for that.
        notices: as Triples has them.

    Raises:
        DataError: nothing to train on.
    """
    if len(raw["train"]) == 0:
        raise DataError(f"{files[0].parent}: no triples to train on")
    sizes = (len(entities), len(relations), len(entities))
    splits = {split: triples[_first_of_each(_keys(triples, sizes))] for split, triples in raw.items()}
    repeated = {split: len(raw[split]) - len(splits[split]) for split in SPLITS}
    held_out = np.zeros(len(splits["train"]), dtype=bool)
    if "valid" in without_file and val_fraction:
        held_out = _held_out(splits["train"], entities, relations, val_fraction)
        splits |= {"valid": splits["train"][held_out], "train": splits["train"][~held_out]}
    seen_entities = np.unique(splits["train"][:, [0, 2]])
    seen_relations = np.unique(splits["train"][:, 1])
    evaluated = {split: splits[split] for split in SPLITS if split != "train"}
    earlier = {"valid": splits["train"], "test": np.concatenate([splits["train"], splits["valid"]])}
    return Triples(
        entities,
        relations,
        splits,
        repeated=repeated,
        known={
            split: int(np.isin(_keys(triples, sizes), _keys(earlier[split], sizes)).sum())
            for split, triples in evaluated.items()
        },
        unseen_entities={
            split: len(np.setdiff1d(triples[:, [0, 2]], seen_entities)) for split, triples in evaluated.items()
        },
        unseen_relations={
            split: len(np.setdiff1d(triples[:, 1], seen_relations)) for split, triples in evaluated.items()
        },
        files=files,
        without_file=tuple(without_file),
        held_out=int(held_out.sum()),
        notices=notices,
    )


def as_array(rows: list[tuple[int, int, int]] | list[list[int]]) -> np.ndarray:
    """int32 [triples, 3]."""
    return np.asarray(rows, dtype=np.int32).reshape(-1, 3)


def _held_out(
    triples: np.ndarray, entities: tuple[str, ...], relations: tuple[str, ...], fraction: float
) -> np.ndarray:
    """bool [triples]: those that their names choose, but for those with an entity or relation that would be in no
    training triple any more. The order of the triples changes nothing."""
    rows = triples.tolist()
    chosen = np.array(
        [split_by_id(f"{entities[h]}\t{relations[r]}\t{entities[t]}", fraction) == VAL for h, r, t in rows], dtype=bool
    )
    kept = triples[~chosen]
    is_covered = np.isin(triples[:, [0, 2]], kept[:, [0, 2]]).all(1) & np.isin(triples[:, 1], kept[:, 1])
    return chosen & is_covered


def _keys(triples: np.ndarray, sizes: tuple[int, int, int]) -> np.ndarray:
    """int64 [triples]: one number for each triple, the same for the same."""
    heads, relations, tails = triples.astype(np.int64).T
    return (heads * sizes[1] + relations) * sizes[2] + tails


def _first_of_each(keys: np.ndarray) -> np.ndarray:
    return np.sort(np.unique(keys, return_index=True)[1])
