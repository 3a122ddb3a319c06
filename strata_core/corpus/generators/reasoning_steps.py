"""The relations that a query follows, and which pairs of them are kept for the test of new compositions."""

from __future__ import annotations

from collections.abc import Sequence

from strata_core.corpus.generators.draw import Draw
from strata_core.corpus.generators.reasoning_vocabulary import RELATIONS, relations_into


def held_out_before(seed: int) -> tuple[int, ...]:
    """For each relation, the one of the relations that could precede it that never does where training might see it."""
    draw = Draw(seed, "reasoning compositions", 0)
    return tuple(draw.one_of(relations_into(relation.source_type)) for relation in RELATIONS)


def draw_steps(
    draw: Draw, length: int, end_type: int, held_out: Sequence[int], *, new_composition: bool
) -> tuple[int, ...]:
    """Relations that lead, one after another, to entities of a type.

    Args:
        draw: where choices come from.
        length: how many.
        end_type: type of the entities they lead to.
        held_out: of `held_out_before`.
        new_composition: whether exactly one pair of neighbours is held out, or none; `length` is 2 at least if so.
    """
    steps = [draw.one_of(relations_into(end_type))]
    new_at = draw.one_of(range(1, length)) if new_composition else None
    for place in range(1, length):
        following = steps[-1]
        seldom = held_out[following]
        if place == new_at:
            steps.append(seldom)
        else:
            usual = [number for number in relations_into(RELATIONS[following].source_type) if number != seldom]
            steps.append(draw.one_of(usual))
    return tuple(reversed(steps))
