"""Role edits that the annotated sentences of a corpus give, and role edits of any origin as numbers.

An example of a treebank is a predicate whose ARG0 and ARG1 are single words (no word of the tree hangs below them),
with another predicate of its sentence that has both roles too, for the unrelated probe and the placebo. The questions
are in the generator's manner but made of the sentence's own words, since nothing inflects a verb here: 'The one who did
"likes" was' and 'The one whom "likes" was done to was', each answered by one of the two words as the sentence spells
it.

Shapes: T tokens of a piece of text, A edges of a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from strata_core.corpus.generators import lexicon
from strata_core.corpus.treebanks.role_edit import Probe, RoleEdit
from strata_core.corpus.treebanks.role_swap import CORE_ROLES, swap_core_roles
from strata_core.corpus.treebanks.sentence import Predicate, Sentence, detokenise
from strata_core.corpus.treebanks.word_spans import word_token_spans
from strata_core.errors import DataError


def treebank_role_edits(sentence: Sentence) -> Iterator[RoleEdit]:
    """All examples of a sentence: for each predicate that serves, one that asks for ARG0 and one for ARG1.

    Predicates must be told apart by their forms, and the answers to a question too. The other predicate is the nearest
    one that has both roles.
    """
    predicates = sentence.predicates or ()
    forms = [sentence.forms[predicate.word - 1].lower() for predicate in predicates]
    pairs = {
        index: pair
        for index, predicate in enumerate(predicates)
        if forms.count(forms[index]) == 1 and (pair := _core_pair(sentence, predicate)) is not None
    }
    has_dependents = set(sentence.heads)
    for index, pair in pairs.items():
        others = sorted(set(pairs) - {index}, key=lambda place: (abs(place - index), place))
        if not others or not has_dependents.isdisjoint(pair):
            continue
        for asks_agent in (True, False):
            probes = [_quoting_probe(sentence, predicates[p], pairs[p], asks_agent) for p in (index, others[0])]
            yield RoleEdit(sentence, index, others[0], *probes)


def _core_pair(sentence: Sentence, predicate: Predicate) -> tuple[int, int] | None:
    """The words that are ARG0 and ARG1; None where either is missing or double, or no question can be asked."""
    heads = [[a.head for a in predicate.arguments if a.role == role] for role in CORE_ROLES]
    if [len(found) for found in heads] != [1, 1]:
        return None
    agent, patient = heads[0][0], heads[1][0]
    same = sentence.forms[agent - 1].lower() == sentence.forms[patient - 1].lower()
    return None if same or predicate.word in (agent, patient) else (agent, patient)


def _quoting_probe(sentence: Sentence, predicate: Predicate, pair: tuple[int, int], asks_agent: bool) -> Probe:
    quoted = f'"{sentence.forms[predicate.word - 1]}"'
    agent, patient = (sentence.forms[word - 1] for word in pair)
    if asks_agent:
        return Probe(("The", "one", "who", "did", quoted, "was"), agent, patient)
    return Probe(("The", "one", "whom", quoted, "was", "done", "to", "was"), patient, agent)


@dataclass(frozen=True, slots=True)
class EncodedProbe:
    """Tokens, int64 [T] each, of a question and of its two continuations."""

    question: np.ndarray
    answer: np.ndarray
    other: np.ndarray


@dataclass(frozen=True, slots=True)
class EncodedRoleEdit:
    """A role edit at token positions of the context.

    Attributes:
        context: int64 [T].
        original, edited, placebo, no_op: the graph's edges, int64 [A, 3]: predicate, argument, type, in one order
            throughout. The placebo is the same edit of the other predicate, the no-op the edit done twice.
        edited_slots, other_slots: int64 [2], which of the edges the two edits change.
        core_types: the types of ARG0 and ARG1.
        probe, unrelated: see RoleEdit.
    """

    context: np.ndarray
    original: np.ndarray
    edited: np.ndarray
    placebo: np.ndarray
    no_op: np.ndarray
    edited_slots: np.ndarray
    other_slots: np.ndarray
    core_types: tuple[int, int]
    probe: EncodedProbe
    unrelated: EncodedProbe

    @property
    def length(self) -> int:
        """Tokens of the longest sequence that the example is read as."""
        probes = (self.probe, self.unrelated)
        return len(self.context) + max(len(p.question) + max(len(p.answer), len(p.other)) for p in probes)


class Encoding(Protocol):
    """What the `tokenizers` library gives for a text."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class RoleEditEncoder:
    """Gives role edits their tokens, and their edges types.

    Args:
        encode: a text's encoding, without special tokens.
        roles: the role labels of the corpus in the order of their numbers.

    Raises:
        DataError: ARG0 or ARG1 is not among the roles.
    """

    def __init__(self, encode: Callable[[str], Encoding], roles: Sequence[str]) -> None:
        missing = [role for role in CORE_ROLES if role not in roles]
        if missing:
            raise DataError(
                f"the corpus has {len(roles)} role labels, {' and '.join(missing)} not among them",
                hint="role edits swap ARG0 and ARG1: prepare a treebank with PropBank roles (--roles)",
            )
        self._encode = encode
        self._types = {role: edge_type(number) for number, role in enumerate(roles)}

    def encode(self, edit: RoleEdit) -> EncodedRoleEdit:
        """The edit's texts are joined by single spaces: context, question, continuation."""
        text = detokenise(edit.context)
        encoding = self._encode(text.text)
        spans = word_token_spans(text.word_spans, encoding.offsets, text.text)
        positions = last_tokens(spans)
        swapped, other_swapped = (swap_core_roles(edit.context, which) for which in (edit.edited, edit.other))
        graphs = (edit.context, swapped, other_swapped, swap_core_roles(swapped, edit.edited))
        original, edited, placebo, no_op = (self._edges(sentence, positions) for sentence in graphs)
        return EncodedRoleEdit(
            context=np.array(encoding.ids, dtype=np.int64),
            original=original,
            edited=edited,
            placebo=placebo,
            no_op=no_op,
            edited_slots=np.flatnonzero(original[:, 2] != edited[:, 2]),
            other_slots=np.flatnonzero(original[:, 2] != placebo[:, 2]),
            core_types=(self._types[CORE_ROLES[0]], self._types[CORE_ROLES[1]]),
            probe=self._probe(edit.probe),
            unrelated=self._probe(edit.unrelated),
        )

    def longest_generated(self) -> int:
        """Tokens that no example of the generator exceeds: those of its longest words, each by itself."""

        def most(words: Iterable[str]) -> int:
            return max(len(self._encode(f" {word}").ids) for word in words)

        event, past = most(event for event, _ in lexicon.EVENTS), most(past for _, past in lexicon.EVENTS)
        person = most(noun.singular for noun in lexicon.PEOPLE)
        fixed = "An involved the and the , and an involved the and the . The one who was was the"
        return 2 * event + past + 5 * person + sum(most([word]) for word in fixed.split())

    def _edges(self, sentence: Sentence, positions: np.ndarray) -> np.ndarray:
        """Roles that the corpus does not know are left out."""
        edges = [
            (positions[predicate.word - 1], positions[argument.head - 1], self._types[argument.role])
            for predicate in sentence.predicates or ()
            for argument in predicate.arguments
            if argument.role in self._types
        ]
        return np.array(edges, dtype=np.int64).reshape(-1, 3)

    def _probe(self, probe: Probe) -> EncodedProbe:
        pieces = (" ".join(probe.words), probe.answer, probe.other)
        return EncodedProbe(*(np.array(self._encode(f" {piece}").ids, dtype=np.int64) for piece in pieces))


def edge_type(role: int) -> int:
    """The type of an edge whose role has this number in the corpus; 0 is the shared type of untyped edges."""
    return role + 1


def last_tokens(token_spans: np.ndarray) -> np.ndarray:
    """Where the causal pass knows each word, int64 [W]: at its last token; at the token before, if none shows it.

    Args:
        token_spans: integers [W, 2], first token of each word and the one after its last.
    """
    return np.maximum(token_spans[:, 1].astype(np.int64) - 1, 0)
