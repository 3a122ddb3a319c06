"""What is written is what was read, in the columns that strata keeps."""

from __future__ import annotations

import pytest

from strata_core.corpus.treebanks.conllu_writing import write_conllu
from strata_core.corpus.treebanks.sentence import Argument, Predicate
from tests.strata_core.corpus.treebanks.helpers import MIXED, SHARED, read_real, read_text


def kept_columns(text):
    """ID, FORM, UPOS, HEAD, DEPREL of each line; a range has nothing but ID and FORM."""
    cells = [line.split("\t") for line in text.split("\n") if line and not line.startswith("#")]
    return [(row[0], row[1], "_" if "-" in row[0] else row[3], row[6], row[7]) for row in cells]


def test_the_kept_columns_come_back():
    sentences, _ = read_text(MIXED)
    written = "".join(write_conllu(sentences))
    assert kept_columns(written) == kept_columns(MIXED)
    assert written.endswith("\n\n")


def test_reading_what_was_written_gives_the_same_sentences():
    sentences, _ = read_text(MIXED)
    again, findings = read_text("".join(write_conllu(sentences)))
    assert findings == []
    assert [(s.forms, s.space_after, s.multiword_tokens, s.empty_nodes, s.sent_id) for s in again] == [
        (s.forms, s.space_after, s.multiword_tokens, s.empty_nodes, s.sent_id) for s in sentences
    ]


def test_roles_are_written_as_columns_that_are_read_again():
    declaration = "# global.columns = ID FORM HEAD UP:PRED UP:ARGHEADS\n"
    sentences, _ = read_text(declaration + "1\ta\t0\tgo.01\tARG0:2|ARGM-TMP:1\n2\tb\t1\t_\t_\n3\tc\t1\tbe.01\t_\n")
    written = "".join(write_conllu(sentences, roles=True))
    assert written.splitlines()[0].endswith("= ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC UP:PRED UP:ARGHEADS")
    (again,), findings = read_text(written)
    assert findings == []
    assert again.predicates == (
        Predicate(1, "go.01", (Argument("ARG0", 2), Argument("ARGM-TMP", 1))),
        Predicate(3, "be.01"),
    )


@pytest.mark.parametrize(
    ("treebank", "path"), [("EWT", "UD_English-EWT/en_ewt"), ("Sequoia", "UD_French-Sequoia/fr_sequoia")]
)
def test_real_sentences_come_back(treebank, path):
    sentences, _ = read_real(treebank, "test")
    source = (SHARED / f"data/ud/{path}-ud-test.conllu").read_text(encoding="utf-8")
    assert kept_columns("".join(write_conllu(sentences))) == kept_columns(source)
