"""Role edits as tokens and edges, and those that annotated sentences give."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from strata_core.corpus.generators.role_edits import role_edit_example
from strata_core.corpus.treebanks.role_edit_examples import RoleEditEncoder, last_tokens, treebank_role_edits
from strata_core.corpus.treebanks.sentence import Argument, Predicate, Sentence
from strata_core.errors import DataError

ROLES = ("ARGM-TMP", "ARG1", "ARG0")
"""Types 1, 2 and 3."""


class Characters(NamedTuple):
    """Each character a token, its code point the id."""

    ids: list[int]
    offsets: list[tuple[int, int]]


def by_character(text: str) -> Characters:
    return Characters([ord(character) for character in text], [(place, place + 1) for place in range(len(text))])


def spelt(tokens) -> str:
    return "".join(map(chr, tokens.tolist()))


# "He said she likes old music ." with two predicates; "music" has "old" below it.
WORDS = ("He", "said", "she", "likes", "old", "music", ".")
HEADS = (2, 0, 4, 2, 6, 4, 2)
SAID = Predicate(2, "say.01", (Argument("ARG0", 1), Argument("ARG1", 4)))
LIKES = Predicate(4, "like.01", (Argument("ARG0", 3), Argument("ARG1", 6), Argument("ARGM-TMP", 5)))


def sentence(*predicates, heads=HEADS, words=WORDS) -> Sentence:
    count = len(words)
    return Sentence(words, ("X",) * count, heads, ("dep",) * count, (True,) * count, predicates=predicates)


FLAT = (2, 0, 4, 2, 4, 4, 2)
"""Heads under which only "said" and "likes" have anything below them."""
SINGLE = Predicate(2, "say.01", (Argument("ARG0", 1), Argument("ARG1", 7)))


def test_a_generated_example_edits_one_of_its_predicates_and_asks_about_the_other_too():
    for edit in (role_edit_example(5, index) for index in range(32)):
        assert {edit.edited, edit.other} == {0, 1}
        people = [
            {edit.context.forms[argument.head - 1] for argument in edit.context.predicates[which].arguments}
            for which in (edit.edited, edit.other)
        ]
        assert people == [{probe.answer, probe.other} for probe in (edit.probe, edit.unrelated)]


def test_a_predicate_with_single_words_gives_two_questions_of_the_sentences_own_words():
    edits = list(treebank_role_edits(sentence(SINGLE, LIKES, heads=FLAT)))
    assert [(edit.edited, edit.other) for edit in edits] == [(0, 1), (0, 1), (1, 0), (1, 0)]
    agent, patient = edits[2:]
    assert " ".join(agent.probe.words) == 'The one who did "likes" was'
    assert (agent.probe.answer, agent.probe.other) == ("she", "music")
    assert " ".join(patient.probe.words) == 'The one whom "likes" was done to was'
    assert (patient.probe.answer, patient.probe.other) == ("music", "she")
    assert " ".join(agent.unrelated.words) == 'The one who did "said" was'
    assert (agent.unrelated.answer, agent.unrelated.other) == ("He", ".")


def test_an_argument_of_several_words_serves_the_unrelated_probe_alone():
    edits = list(treebank_role_edits(sentence(SINGLE, LIKES)))
    assert [(edit.edited, edit.other) for edit in edits] == [(0, 1), (0, 1)]


@pytest.mark.parametrize(
    "predicates",
    [
        (SINGLE,),
        (Predicate(2, "say.01", (Argument("ARG0", 1),)), LIKES),
        (Predicate(2, "say.01", (Argument("ARG0", 1), Argument("ARG0", 5), Argument("ARG1", 7))), LIKES),
        (Predicate(2, "say.01", (Argument("ARG0", 1), Argument("ARG1", 2))), LIKES),
    ],
    ids=["alone", "one role only", "a role twice", "an argument that is the predicate"],
)
def test_what_no_question_can_be_asked_about_gives_no_example(predicates):
    assert list(treebank_role_edits(sentence(*predicates, heads=FLAT))) == []


def test_predicates_and_answers_of_one_form_cannot_be_told_apart():
    twice = ("He", "likes", "she", "Likes", "old", "music", ".")
    assert list(treebank_role_edits(sentence(SINGLE, LIKES, heads=FLAT, words=twice))) == []
    same = ("Music", "said", "she", "likes", "old", "music", "music")
    edits = list(treebank_role_edits(sentence(SINGLE, LIKES, heads=FLAT, words=same)))
    assert edits == []


def test_graphs_stand_at_last_tokens_in_one_order_and_differ_in_the_swapped_types():
    (edit, *_) = treebank_role_edits(sentence(SINGLE, LIKES, heads=FLAT))
    encoded = RoleEditEncoder(by_character, ROLES).encode(edit)
    assert spelt(encoded.context) == "He said she likes old music ."
    # Ends of He 1, said 6, she 10, likes 16, old 20, music 26, "." 28.
    assert encoded.original.tolist() == [[6, 1, 3], [6, 28, 2], [16, 10, 3], [16, 26, 2], [16, 20, 1]]
    assert encoded.edited.tolist() == [[6, 1, 2], [6, 28, 3], [16, 10, 3], [16, 26, 2], [16, 20, 1]]
    assert encoded.placebo.tolist() == [[6, 1, 3], [6, 28, 2], [16, 10, 2], [16, 26, 3], [16, 20, 1]]
    assert encoded.no_op.tolist() == encoded.original.tolist()
    assert (encoded.edited_slots.tolist(), encoded.other_slots.tolist()) == ([0, 1], [2, 3])
    assert encoded.core_types == (3, 2)


def test_pieces_of_text_join_by_single_spaces():
    encoded = RoleEditEncoder(by_character, ROLES).encode(role_edit_example(2, 4))
    edit = role_edit_example(2, 4)
    whole = spelt(np.concatenate((encoded.context, encoded.probe.question, encoded.probe.answer)))
    assert whole.endswith(". " + " ".join((*edit.probe.words, edit.probe.answer)))
    assert encoded.length == max(
        len(whole.removesuffix(edit.probe.answer)) + max(len(edit.probe.answer), len(edit.probe.other)),
        len(encoded.context)
        + len(" ".join(("", *edit.unrelated.words, "")))
        + max(len(edit.unrelated.answer), len(edit.unrelated.other)),
    )


def test_no_generated_example_is_longer_than_the_bound():
    encoder = RoleEditEncoder(by_character, ROLES)
    lengths = [encoder.encode(role_edit_example(6, index)).length for index in range(300)]
    assert max(lengths) <= encoder.longest_generated() <= max(lengths) + 40


def test_a_corpus_without_a_core_role_is_refused_by_its_name():
    with pytest.raises(DataError, match="2 role labels, ARG0 not among them"):
        RoleEditEncoder(by_character, ("ARG1", "ARGM-TMP"))


def test_a_role_the_corpus_does_not_know_is_left_out():
    (edit, *_) = treebank_role_edits(sentence(SINGLE, LIKES, heads=FLAT))
    encoded = RoleEditEncoder(by_character, ROLES[1:]).encode(edit)
    assert encoded.original.tolist() == [[6, 1, 2], [6, 28, 1], [16, 10, 2], [16, 26, 1]]


def test_a_word_that_no_token_shows_stands_where_the_token_before_it_ends():
    assert last_tokens(np.array([[0, 0], [0, 2], [2, 2]])).tolist() == [0, 1, 1]
