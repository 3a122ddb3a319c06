"""Words of plain text, and the text that they spell."""

import pytest

from strata_core.corpus.treebanks.sentence import detokenise
from strata_core.errors import DataError
from strata_core.tasks.sentence_structure.plain_text import sentences_in_text


def read(text, **settings):
    data = text if isinstance(text, bytes) else text.encode()
    return list(sentences_in_text(data.splitlines(keepends=True), file="x.txt", **settings))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The dog barks.", "The dog barks ."),
        ("Don't we've it's can't dogs' won’t", "Do n't we 've it 's ca n't dogs ' wo n’t"),
        ("3.14, 1,000,000 at 10:30; 5.", "3.14 , 1,000,000 at 10:30 ; 5 ."),
        ("well-known and/or (yes)!!", "well - known and / or ( yes ) !!"),
        ("wait... --no", "wait ... -- no"),
        ("Été à l'œuvre", "Été à l ' œuvre"),
        ("日本語 ok", "日本語 ok"),
    ],
)
def test_words_are_cut_by_rule(text, words):
    assert list(read(text)[0].forms) == words.split(" ")


def test_given_words_are_kept_as_they_are():
    assert read("Mr. O'Neill  won't\tgo .", split_words=False)[0].forms == ("Mr.", "O'Neill", "won't", "go", ".")


def test_words_spell_the_line_again_with_single_spaces():
    line = '  He said: "don\'t -- 3.5 (or so)",   and left...'
    assert detokenise(read(line)[0]).text == " ".join(line.split())


def test_a_line_is_a_sentence_and_an_empty_line_begins_a_paragraph():
    sentences = read("\ufeffOne.\r\nTwo.\n \n\nThree.")
    assert [sentence.forms[0] for sentence in sentences] == ["One", "Two", "Three"]
    assert [sentence.sent_id for sentence in sentences] == ["1", "2", "3"]
    assert [sentence.line for sentence in sentences] == [1, 2, 5]
    assert [sentence.starts_paragraph for sentence in sentences] == [True, False, True]
    assert [sentence.starts_document for sentence in sentences] == [True, False, False]


def test_bytes_that_are_no_text_are_named_by_line():
    with pytest.raises(DataError, match=r"x\.txt:2: not UTF-8: byte 0xff at offset 3"):
        read(b"fine\nabc\xff\n")
