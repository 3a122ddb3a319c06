"""New annotation laid over lines that stay as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strata_core.corpus.treebanks.conllu import read_conllu
from strata_core.corpus.treebanks.conllu_overlay import overlay
from strata_core.corpus.treebanks.sentence import Argument, Predicate
from tests.strata_core.corpus.treebanks.helpers import MIXED, SHARED

NARROW = """\
# global.columns = ID FORM HEAD UP:PRED UP:ARGHEADS UP:ARGSPANS MWE
1\ta\t0\tgo.01\tARG0:2|ARGM-TMP:3\tARG0:2-3\t1:x|y
2\tb\t1\t_\t_\t_\t_
3\tc\t1\tbe.01\t_\t_\t*

"""


def sentences_of(text):
    lines = text.encode().splitlines(keepends=True)
    return lines, list(read_conllu(lines, file="t", report=lambda finding: None))


def laid_over(text, change=lambda sentence: sentence, *, plus=False):
    lines, sentences = sentences_of(text)
    starts = [sentence.line - 1 for sentence in sentences]
    return b"".join(overlay(lines, [change(sentence) for sentence in sentences], starts, plus=plus)).decode()


def bare(sentence):
    nothing = (None,) * len(sentence.forms)
    return replace(sentence, upos=nothing, heads=nothing, relations=nothing, predicates=None)


@pytest.mark.parametrize("path", ["UD_English-EWT/en_ewt", "UD_French-Sequoia/fr_sequoia"])
def test_real_treebanks_come_back_byte_for_byte_under_their_own_annotation(path):
    file = SHARED / f"data/ud/{path}-ud-test.conllu"
    if not file.exists():
        pytest.skip(f"{file} is not there")
    source = file.read_bytes().decode()
    assert laid_over(source) == source


def test_what_is_not_annotated_anew_stays():
    assert laid_over(MIXED, bare) == MIXED + "\n"


def test_a_new_head_takes_the_old_relation_away():
    def change(sentence):
        return replace(bare(sentence), heads=(0, 1))

    source = "1\ta\tl\tX\tx\t_\t2\tdep\t_\t_\n2\tb\tl\tX\tx\t_\t0\troot\t_\t_\n\n"
    assert laid_over(source, change) == "1\ta\tl\tX\tx\t_\t0\t_\t_\t_\n2\tb\tl\tX\tx\t_\t1\t_\t_\t_\n\n"


def test_columns_that_conllu_has_not_go_to_misc():
    assert laid_over(NARROW, bare) == (
        "1\ta\t_\t_\t_\t_\t0\t_\t_\tPred=go.01|Args=ARG0:2,ARGM-TMP:3|UP:ARGSPANS=ARG0:2-3|MWE=1:x\\py\n"
        "2\tb\t_\t_\t_\t_\t1\t_\t_\t_\n"
        "3\tc\t_\t_\t_\t_\t1\t_\t_\tPred=be.01|MWE=*\n\n"
    )
    assert sentences_of(laid_over(NARROW, bare))[1][0].predicates == sentences_of(NARROW)[1][0].predicates


def test_new_roles_take_the_place_of_all_that_told_of_the_old_ones():
    def change(sentence):
        return replace(bare(sentence), predicates=(Predicate(2, "Y", (Argument("ARG1", 3),)),))

    assert [line.split("\t")[-1] for line in laid_over(NARROW, change).splitlines() if line] == [
        "MWE=1:x\\py",
        "Pred=Y|Args=ARG1:3",
        "MWE=*",
    ]
    plus = laid_over(NARROW, change, plus=True).splitlines()
    assert plus[0] == (
        "# global.columns = ID FORM HEAD UP:PRED UP:ARGHEADS UP:ARGSPANS MWE LEMMA UPOS XPOS FEATS DEPREL DEPS MISC"
    )
    assert plus[1].split("\t")[:7] == ["1", "a", "0", "_", "_", "_", "1:x|y"]
    assert plus[2].split("\t")[:7] == ["2", "b", "1", "Y", "ARG1:3", "_", "_"]


def test_a_declaration_that_stands_alone_goes_with_its_blank_line():
    header, rest = NARROW.split("\n", 1)
    assert laid_over(f"{header}\n\n{rest}", bare) == laid_over(NARROW, bare)


def test_conllu_plus_declares_its_columns_behind_a_byte_order_mark():
    source = "\ufeff1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
    assert laid_over(source) == source
    expected = "\ufeff# global.columns = ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC\n" + source[1:]
    assert laid_over(source, plus=True) == expected


def test_lemmas_tags_and_features_fill_what_is_open():
    def change(sentence):
        return replace(bare(sentence), lemmas=("l1", "l2"), xpos=("x1", None), feats=("A=1", "_"))

    source = "# c\n1\ta\t_\tX\t_\t_\t2\tdep\t_\t_\n2\tb\tl\tX\tx\t_\t0\troot\t_\t_\n\n"
    assert laid_over(source, change) == source.replace("a\t_\tX\t_\t_", "a\tl1\tX\tx1\tA=1")
    given = source.replace("x\t_\t0", "x\tB=2\t0")
    assert laid_over(given, change) == given.replace("a\t_\tX\t_\t_", "a\tl1\tX\tx1\t_")
