"""Longer paths from training data: an edge replaced by two that training data proves to compose to it.

Where every training example whose only path is (r, s) asks for the label t, and t is also the name of a relation, an
edge t says the same as the path r, s. Only training examples prove anything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from strata_core.randomness import derive_seed
from strata_core.training.random_rows import random_rows

Path = tuple[int, ...]
Equalities = Mapping[int, Sequence[tuple[int, int]]]
"""For a relation the pairs of relations that compose to it, in ascending order."""


def proven_equalities(
    examples: Iterable[tuple[Sequence[Path], int]], relation_of_target: Mapping[int, int]
) -> dict[int, list[tuple[int, int]]]:
    """What the two-hop examples of training prove.

    Args:
        examples: of each training example all its paths, and its target. One with other than one path proves nothing.
        relation_of_target: the relation with the name of a target, where there is one.

    Returns:
        Pairs that always have the same target; a pair seen with two targets is left out.
    """
    targets_of_pair: dict[tuple[int, int], set[int]] = defaultdict(set)
    for paths, target in examples:
        if len(paths) == 1 and len(paths[0]) == 2:
            first, second = paths[0]
            targets_of_pair[first, second].add(target)
    pairs: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for pair, targets in sorted(targets_of_pair.items()):
        target = min(targets)
        if len(targets) == 1 and target in relation_of_target:
            pairs[relation_of_target[target]].append(pair)
    return dict(pairs)


def augmentation_draws(seed: int, step: int, positions: range, max_replacements: int) -> np.ndarray:
    """Random numbers of one step, a row for each position in the global batch.

    Returns:
        float64 [positions, 1 + 2 max_replacements], in [0, 1): how many replacements, then place and pair of each.
    """
    shape = (len(positions), 1 + 2 * max_replacements)
    return random_rows(derive_seed(seed, "composition augmentation", step), positions.start, shape)


def lengthened(path: Path, equalities: Equalities, draws: np.ndarray, *, longest: bool = False) -> Path:
    """The path with 0 to max_replacements edges replaced, each number equally likely; edges put in may be replaced too.

    A place is drawn among the edges that have a proven pair; where there is none the path stays as it is.

    Args:
        path: relations.
        equalities: from `proven_equalities`.
        draws: float64 [1 + 2 max_replacements], a row of `augmentation_draws`.
        longest: make all replacements, whatever number was drawn.
    """
    number, *choices = draws.tolist()
    max_replacements = len(choices) // 2
    relations = list(path)
    for turn in range(max_replacements if longest else int(number * (max_replacements + 1))):
        places = [place for place, relation in enumerate(relations) if relation in equalities]
        if not places:
            break
        place = places[int(choices[2 * turn] * len(places))]
        pairs = equalities[relations[place]]
        relations[place : place + 1] = pairs[int(choices[2 * turn + 1] * len(pairs))]
    return tuple(relations)
