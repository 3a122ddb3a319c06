"""The role-edit table: whether answers move when, and only when, the roles that they hang on are swapped.

Odds are log p(right under the roles as they are) - log p(right once swapped), in nats. "Something moved" is met by
noise, so the table asks which way, and sets the edit beside edits that must do nothing.

Shapes: E examples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from strata_core.evaluation.bootstrap import paired_bootstrap


@dataclass(frozen=True)
class RoleEditOdds:
    """What one arm (a model, and what its graphs hold) answered; float [E] each.

    Attributes:
        original, edited: odds of the probe under the roles as they are, and with its predicate's swapped.
        placebo: with the other predicate's swapped.
        no_op: with its predicate's swapped twice.
        unrelated_original, unrelated_edited: odds of the unrelated probe, whose right answer is the same under both.
        context_movement: mean |change of log p| of the context's tokens under the edit, in nats.
    """

    original: np.ndarray
    edited: np.ndarray
    placebo: np.ndarray
    no_op: np.ndarray
    unrelated_original: np.ndarray
    unrelated_edited: np.ndarray
    context_movement: np.ndarray


def direction(odds: RoleEditOdds) -> np.ndarray:
    """How often the right continuation wins, float [E] of 0, 1/2 and 1: of both graphs, a tie being half a win.

    An answer that does not hang on the roles is right under exactly one of the two graphs: chance is 1/2.
    """
    return (_wins(odds.original) + _wins(-odds.edited)) / 2


def role_edit_measures(odds: RoleEditOdds) -> dict[str, float]:
    """The row of an arm, means over examples.

    Returns:
        "direction": see `direction`; "both": the right continuation wins under both graphs; "flip_rate": the answer
        changes; "stability": the unrelated answer does not; "unrelated_direction": it is right; "placebo_flip_rate",
        "no_op_flip_rate": the answer changes under these; "effect", "placebo_effect", "no_op_effect",
        "unrelated_effect": mean |change of odds| in nats; "locality": mean |change of log p| of a token of the context
        under the edit, in nats.
    """
    both = (odds.original > 0) & (odds.edited < 0)
    rows = {
        "direction": direction(odds),
        "both": both,
        "flip_rate": _flips(odds.original, odds.edited),
        "stability": ~_flips(odds.unrelated_original, odds.unrelated_edited),
        "unrelated_direction": (_wins(odds.unrelated_original) + _wins(odds.unrelated_edited)) / 2,
        "placebo_flip_rate": _flips(odds.original, odds.placebo),
        "no_op_flip_rate": _flips(odds.original, odds.no_op),
        "effect": np.abs(odds.edited - odds.original),
        "placebo_effect": np.abs(odds.placebo - odds.original),
        "no_op_effect": np.abs(odds.no_op - odds.original),
        "unrelated_effect": np.abs(odds.unrelated_edited - odds.unrelated_original),
        "locality": odds.context_movement,
    }
    return {name: float(np.mean(values)) for name, values in rows.items()}


def role_edit_table(arms: Mapping[str, RoleEditOdds], *, seed: int = 0, resamples: int = 10_000) -> dict[str, Any]:
    """All arms over the same examples, and how they differ; lists of rows.

    Args:
        arms: by name, the one in question first.
        seed, resamples: of the paired bootstrap over examples.

    Returns:
        "role_edits": a row for each arm, "arm", "examples" and `role_edit_measures`. "role_edit_differences": a row for
        each of the other arms (direction, the first arm minus it), and one for each arm (mean |change of odds|, under
        the edit minus under the placebo): "of", "minus", "measure", and the fields of PairedDifference.

    Raises:
        ValueError: there is no arm, or no example.
    """
    names = list(arms)
    first = arms[names[0]]

    def compared(base: np.ndarray, other: np.ndarray) -> dict[str, Any]:
        pair = [np.stack((values, np.ones_like(values)), axis=1) for values in (base, other)]
        return asdict(paired_bootstrap(pair[0], pair[1], seed=seed, resamples=resamples))

    differences = [
        {"of": names[0], "minus": name, "measure": "direction", **compared(direction(arms[name]), direction(first))}
        for name in names[1:]
    ]
    for name, odds in arms.items():
        placebo, edit = np.abs(odds.placebo - odds.original), np.abs(odds.edited - odds.original)
        differences.append({"of": name, "minus": f"{name}, placebo", "measure": "effect", **compared(placebo, edit)})
    rows = [{"arm": name, "examples": len(odds.original), **role_edit_measures(odds)} for name, odds in arms.items()]
    return {"role_edits": rows, "role_edit_differences": differences}


def _wins(odds: np.ndarray) -> np.ndarray:
    return (np.sign(odds) + 1) / 2


def _flips(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    return np.sign(before) != np.sign(after)
