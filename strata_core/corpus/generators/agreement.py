"""Minimal pairs on number agreement: two sentences that differ in one verb form, of which one is English.

The verb has to agree with its subject and not with the noun before it (Linzen, Dupoux and Goldberg 2016). Every block
of BALANCED_BLOCK consecutive indices has each condition with each number of subject and of the other noun once.
"""

from __future__ import annotations

from dataclasses import dataclass

from strata_core.corpus.generators import lexicon
from strata_core.corpus.generators.draw import Draw

CONDITIONS = ("adjacent", "prepositional phrase", "subject relative", "object relative")
BALANCED_BLOCK = 4 * len(CONDITIONS)


@dataclass(frozen=True, slots=True)
class MinimalPair:
    """Two sentences, equal but for the word at index `position`.

    Attributes:
        right, wrong: the words of either sentence, the full stop last.
        position: index of the verb that differs.
        condition: one of CONDITIONS.
        attracted: whether the noun nearest before the verb has the number of the wrong form.
    """

    right: tuple[str, ...]
    wrong: tuple[str, ...]
    position: int
    condition: str
    attracted: bool


def agreement_pair(seed: int, index: int) -> MinimalPair:
    """Pair number `index` of the set that `seed` names."""
    draw = Draw(seed, "agreement", index)
    cell = index % BALANCED_BLOCK
    plural, other_plural = bool(cell & 1), bool(cell & 2)
    condition = CONDITIONS[cell >> 2]
    subject_noun, other_noun = draw.several_of(lexicon.PEOPLE, 2)
    subject, other = subject_noun.form(plural=plural), other_noun.form(plural=other_plural)
    relative_verb = draw.one_of(lexicon.TRANSITIVE)
    between = {
        "adjacent": (),
        "prepositional phrase": (draw.one_of(("near", "with")), "the", other),
        "subject relative": ("who", relative_verb.past, "the", other),
        "object relative": ("whom", "the", other, relative_verb.past),
    }[condition]
    if draw.chance(0.5):
        adjective = draw.one_of(lexicon.ADJECTIVES)
        forms, rest = ("is", "are"), (adjective,)
    else:
        verb = draw.one_of(lexicon.INTRANSITIVE)
        forms, rest = (verb.singular, verb.plural), (draw.one_of(lexicon.TIME_ADVERBS),)
    start = ("The", subject, *between)
    return MinimalPair(
        right=(*start, forms[plural], *rest, "."),
        wrong=(*start, forms[not plural], *rest, "."),
        position=len(start),
        condition=condition,
        attracted=condition != "adjacent" and other_plural != plural,
    )
