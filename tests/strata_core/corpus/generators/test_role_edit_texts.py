"""Answered probes as sentences: trees, the right answer, and no roles but the context's."""

from strata_core.corpus.generators.role_edit_texts import answered, other_voice, role_edit_text
from strata_core.corpus.generators.role_edits import BALANCED_BLOCK, role_edit_example
from strata_core.corpus.generators.treebank import synthetic_sentence
from strata_core.corpus.treebanks.dependency_tree import tree_faults
from strata_core.corpus.treebanks.sentence import detokenise


def test_answered_probes_read_as_context_questions_and_right_answers():
    example = role_edit_example(1, 3)
    whole = detokenise(answered(example.context, (example.probe, example.unrelated), "x")).text
    questions = [" ".join((*probe.words, probe.answer)) + "." for probe in (example.probe, example.unrelated)]
    assert whole == " ".join((detokenise(example.context).text, *questions))


def test_answered_probes_are_trees_with_the_roles_of_their_contexts():
    for index in range(BALANCED_BLOCK):
        example = role_edit_example(1, index)
        sentence = answered(example.context, (example.probe, example.unrelated), "x")
        assert tree_faults(sentence.heads) == []
        assert sentence.heads.count(0) == 1
        assert sentence.predicates == example.context.predicates
        assert sentence.heads[: len(example.context.heads)] == example.context.heads
        lengths = {len(getattr(sentence, name)) for name in ("forms", "upos", "heads", "relations", "space_after")}
        assert len(lengths) == 1


def test_the_asked_voice_shows_in_the_tree():
    relations = {}
    for index in range(BALANCED_BLOCK):
        example = role_edit_example(1, index)
        sentence = answered(example.context, [example.probe], "x")
        relations[len(example.probe.words)] = sentence.relations[len(example.context.forms) :]
    active = ("det", "nsubj", "nsubj", "acl:relcl", "cop", "det", "parataxis", "punct")
    passive = ("det", "nsubj", "nsubj:pass", "aux:pass", "acl:relcl", "cop", "det", "parataxis", "punct")
    assert relations == {6: active, 7: passive}


def test_the_other_voice_asks_for_the_other_participant():
    for index in range(4):
        probe = role_edit_example(1, index).probe
        other = other_voice(probe)
        assert {len(probe.words), len(other.words)} == {6, 7}
        assert other.words[-3:] == probe.words[-3:] and (other.answer, other.other) == (probe.other, probe.answer)
        assert other_voice(other) == probe


def test_a_sentence_of_the_set_answers_all_four_questions_of_its_context():
    text = detokenise(role_edit_text(4, 1)).text
    assert text.count("The one who ") == 4 and text.count(".") == 5


def test_every_second_sentence_is_one_of_the_treebank():
    assert [role_edit_text(4, 2 * number) for number in range(5)] == [synthetic_sentence(4, n) for n in range(5)]
    assert all(" involved " in detokenise(role_edit_text(4, 2 * number + 1)).text for number in range(5))
    assert role_edit_text(4, 7) == role_edit_text(4, 7) != role_edit_text(5, 7)
