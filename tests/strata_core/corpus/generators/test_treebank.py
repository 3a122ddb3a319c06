"""The synthetic treebank: well-formed, reproducible, and readable off its words."""

from __future__ import annotations

import hashlib
from collections import defaultdict

import pytest

from strata_core.corpus.generators import lexicon
from strata_core.corpus.generators.treebank import GENERATOR_VERSION, synthetic_sentence
from strata_core.corpus.treebanks.conllu_writing import write_conllu
from strata_core.corpus.treebanks.dependency_tree import crossing_words, tree_faults
from strata_core.corpus.treebanks.sentence import detokenise
from tests.strata_core.corpus.treebanks.helpers import read_text


@pytest.fixture(scope="module")
def treebank():
    return [synthetic_sentence(7, index) for index in range(3000)]


def test_a_sentence_is_a_function_of_seed_and_index(treebank):
    assert synthetic_sentence(7, 1234) == treebank[1234]
    assert synthetic_sentence(8, 1234).forms != treebank[1234].forms


def test_a_version_has_the_same_sentences_for_ever(treebank):
    digest = hashlib.sha256("".join(write_conllu(treebank[:500], roles=True)).encode()).hexdigest()
    # Goes up with GENERATOR_VERSION: corpora name the version they were made with.
    assert (GENERATOR_VERSION, digest[:16]) == (1, "d3fa443a744a1cf9")


def test_every_sentence_is_a_tree_and_some_are_not_projective(treebank):
    assert all(tree_faults(sentence.heads) == [] for sentence in treebank)
    share = sum(bool(crossing_words(sentence.heads)) for sentence in treebank) / len(treebank)
    assert 0.03 < share < 0.2


def test_the_reader_finds_nothing_wrong_and_reads_the_same(treebank):
    again, findings = read_text("".join(write_conllu(treebank, roles=True)))
    assert findings == []
    assert [(s.forms, s.heads, s.predicates, s.multiword_tokens) for s in again] == [
        (s.forms, s.heads, s.predicates, s.multiword_tokens) for s in treebank
    ]


def test_a_form_has_one_part_of_speech(treebank):
    parts = defaultdict(set)
    for sentence in treebank:
        for form, upos in zip(sentence.forms, sentence.upos, strict=True):
            parts[form.lower()].add(upos)
    assert [form for form, found in parts.items() if len(found) > 1] == []
    assert {upos for found in parts.values() for upos in found} == {
        "DET", "NOUN", "PROPN", "PRON", "VERB", "AUX", "ADJ", "ADV", "ADP", "PART", "SCONJ", "CCONJ", "PUNCT",
    }  # fmt: skip


def test_present_verbs_agree_with_their_subjects(treebank):
    singular_verbs = {verb.singular for verb in (*lexicon.TRANSITIVE, *lexicon.INTRANSITIVE, *lexicon.CLAUSAL)}
    plurals = {noun.plural for noun in (*lexicon.PEOPLE, *lexicon.THINGS)}
    checked = 0
    for sentence in treebank:
        arcs = list(zip(sentence.heads, sentence.relations, strict=True))
        for word, (head, relation) in enumerate(arcs, 1):
            if relation == "nsubj" and sentence.forms[head - 1] in singular_verbs:
                conjoined = (word, "conj") in arcs
                assert sentence.forms[word - 1].lower() not in plurals and not conjoined, detokenise(sentence).text
                checked += 1
    assert checked > 100


def test_who_stands_for_the_nearest_person_and_which_for_the_nearest_thing(treebank):
    people = {form for noun in lexicon.PEOPLE for form in noun}
    things = {form for noun in lexicon.THINGS for form in noun}
    pronouns = 0
    for sentence in treebank:
        for word, form in enumerate(sentence.forms, 1):
            if form in ("who", "whom", "which"):
                clause = sentence.heads[word - 1]
                kind = things if form == "which" else people
                nearest = max(place for place in range(1, word) if sentence.forms[place - 1] in kind)
                assert sentence.heads[clause - 1] == nearest, detokenise(sentence).text
                pronouns += 1
    assert pronouns > 300


def test_places_belong_to_the_nearest_verb_and_noun_prepositions_to_the_noun_before(treebank):
    for sentence in treebank:
        for word, form in enumerate(sentence.forms, 1):
            noun = sentence.heads[word - 1]
            if form in lexicon.PLACE_PREPOSITIONS:
                assert sentence.heads[noun - 1] == max(p for p in range(1, word) if sentence.upos[p - 1] == "VERB")
            elif form in lexicon.NOUN_PREPOSITIONS:
                assert sentence.heads[noun - 1] == word - 1


def test_roles_follow_the_words(treebank):
    for sentence in treebank:
        for predicate in sentence.predicates:
            core = [argument.role for argument in predicate.arguments if not argument.role.startswith("ARGM")]
            assert core and len(core) == len(set(core))
        verbs = [word for word, upos in enumerate(sentence.upos, 1) if upos == "VERB"]
        assert [predicate.word for predicate in sentence.predicates] == verbs


def test_sentences_hardly_ever_repeat(treebank):
    assert len({detokenise(sentence).text for sentence in treebank}) > 0.98 * len(treebank)
