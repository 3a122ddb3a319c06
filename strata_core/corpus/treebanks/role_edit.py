"""A role edit: a text, an edit of who does what to whom in it, and what the edit must and must not change."""

from __future__ import annotations

from dataclasses import dataclass

from strata_core.corpus.treebanks.sentence import Sentence


@dataclass(frozen=True, slots=True)
class Probe:
    """A sentence cut off before its answer: `words`, then `answer` is right under the roles as they are.

    `other` is the participant of the same event that is wrong now. Under an edit of that event the two change places.
    """

    words: tuple[str, ...]
    answer: str
    other: str


@dataclass(frozen=True, slots=True)
class RoleEdit:
    """A context, an edit of one of its predicates, and what the edit must and must not change.

    Attributes:
        context: a sentence in which both predicates have an ARG0 and an ARG1.
        edited: index in context.predicates of the one whose core roles are swapped (role_swap.swap_core_roles).
        other: index of the one that serves the unrelated probe and the placebo edit of the same size.
        probe: about the edited predicate; its right answer turns from `answer` to `other`.
        unrelated: about the other predicate; its right answer stays.
    """

    context: Sentence
    edited: int
    other: int
    probe: Probe
    unrelated: Probe
