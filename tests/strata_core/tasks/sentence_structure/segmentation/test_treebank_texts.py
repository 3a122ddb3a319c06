"""The raw text of a treebank: spaces, paragraphs and documents as its sentences tell, and what is to be marked."""

from strata_core.corpus.treebanks.sentence import MultiwordToken, Sentence
from strata_core.tasks.sentence_structure.segmentation.treebank_texts import marks_of, treebank_texts


def sentence(forms, space_after=None, ranges=(), **flags):
    nothing = (None,) * len(forms)
    spaces = space_after or (True,) * len(forms)
    return Sentence(tuple(forms), nothing, nothing, nothing, spaces, tuple(ranges), **flags)


SENTENCES = [
    sentence(["Go", "."], (False, True), starts_document=True, starts_paragraph=True),
    sentence(["de", "le", "x", "!"], (True, True, False, False), [MultiwordToken(1, 2, "du")]),
    sentence(["10 000"], (True,)),
    sentence(["End"], starts_paragraph=True),
    sentence(["Next"], starts_document=True, starts_paragraph=True),
]


def test_sentences_spell_their_documents():
    one, other = treebank_texts(SENTENCES)
    assert one.text == "Go. du x!10 000\n\nEnd"
    assert other.text == "Next"
    spelt = [[(one.text[token.start : token.end], token.words) for token in tokens] for tokens in one.sentences]
    assert spelt == [
        [("Go", ("Go",)), (".", (".",))],
        [("du", ("de", "le")), ("x", ("x",)), ("!", ("!",))],
        [("10 000", ("10 000",))],
        [("End", ("End",))],
    ]


def test_marks_tell_tokens_sentences_and_multiword_tokens():
    text = next(treebank_texts([*SENTENCES[:2], sentence(["à", "le"], None, [MultiwordToken(1, 2, "au")])]))
    assert text.text == "Go. du x!au"
    assert marks_of(text).tolist() == [0, 1, 2, 0, 0, 3, 0, 1, 2, 0, 4]


def test_no_sentences_are_no_text():
    assert list(treebank_texts([])) == []
