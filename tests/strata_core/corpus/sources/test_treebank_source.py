"""Sentences as documents, and documents as text."""

from strata_core.corpus.sources.treebank import document_text, group_by_document
from tests.strata_core.corpus.treebanks.helpers import MIXED, read_text, rows


def sentence(word, *marks, space_after=True):
    misc = "_" if space_after else "SpaceAfter=No"
    return "".join(f"# {mark}\n" for mark in marks) + f"1\t{word}\t_\tX\t_\t_\t0\troot\t_\t{misc}\n\n"


def test_documents_begin_where_the_file_says():
    text = sentence("a", "newdoc") + sentence("b", "newpar") + sentence("c", "newdoc id = x") + sentence("d")
    groups = group_by_document(read_text(text)[0])
    assert [[one.forms[0] for one in group] for group in groups] == [["a", "b"], ["c", "d"]]


def test_sentences_before_any_document_are_documents_of_their_own():
    groups = group_by_document(read_text(sentence("a") + sentence("b") + sentence("c", "newdoc") + sentence("d"))[0])
    assert [[one.forms[0] for one in group] for group in groups] == [["a"], ["b"], ["c", "d"]]


def test_paragraphs_begin_on_a_line_and_sentences_after_a_space_where_there_is_one():
    sentences = [
        sentence("a", "newdoc", "newpar"),
        sentence("b", space_after=False),
        sentence("c"),
        sentence("d", "newpar"),
    ]
    text = "".join(sentences)
    assert document_text(read_text(text)[0]) == "a bc\nd"


def test_a_multiword_token_at_the_end_says_whether_a_space_follows():
    joined = "1-2\tdu\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n" + rows("0", "1")
    assert document_text(read_text(joined + sentence("c"))[0]) == "duc"


def test_the_text_of_a_document_is_that_of_its_tokens():
    assert document_text(read_text(MIXED)[0]) == "Il parle du port. (10 000) don't"
