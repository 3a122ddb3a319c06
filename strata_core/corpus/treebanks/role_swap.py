"""Swapping who does and who undergoes: the edit that role-edit examples are made of."""

from __future__ import annotations

from dataclasses import replace

from strata_core.corpus.treebanks.sentence import Argument, Predicate, Sentence

CORE_ROLES = ("ARG0", "ARG1")
"""Who does, and who or what undergoes."""

CORE_SWAP = dict(zip(CORE_ROLES, reversed(CORE_ROLES), strict=True))


def can_swap(predicate: Predicate) -> bool:
    """Whether the predicate has both an ARG0 and an ARG1."""
    return set(CORE_ROLES) <= {argument.role for argument in predicate.arguments}


def swap_core_roles(sentence: Sentence, predicate_index: int) -> Sentence:
    """The sentence with ARG0 and ARG1 of one of its predicates swapped; words, tree and all other roles stay.

    Raises:
        ValueError: the predicate does not have both.
    """
    predicates = list(sentence.predicates or ())
    predicate = predicates[predicate_index]
    if not can_swap(predicate):
        raise ValueError(f"{predicate.roleset} at word {predicate.word} does not have both ARG0 and ARG1")
    swapped = tuple(Argument(CORE_SWAP.get(a.role, a.role), a.head) for a in predicate.arguments)
    predicates[predicate_index] = replace(predicate, arguments=swapped)
    return replace(sentence, predicates=tuple(predicates))
