"""CoNLL-2009: columns by position, a column of roles for each predicate."""

from __future__ import annotations

import pytest

from strata_core.corpus.treebanks.conll2009 import read_conll2009
from strata_core.corpus.treebanks.sentence import Argument, Predicate


def line(number, form, pos, head, relation, predicate="_", *roles):
    fill = "_" if predicate == "_" else "Y"
    features = "num=pl" if pos == "NNS" else "_"
    cells = [
        number,
        form,
        form.lower(),
        "_",
        pos,
        "_",
        features,
        "_",
        head,
        "_",
        relation,
        "_",
        fill,
        predicate,
        *roles,
    ]
    return "\t".join(cells) + "\n"


GOOD = (
    line("1", "Dogs", "NNS", "2", "SBJ", "_", "A0", "A0")
    + line("2", "want", "VBP", "0", "ROOT", "want.01", "_", "_")
    + line("3", "to", "TO", "2", "OPRD", "_", "A1", "_")
    + line("4", "bark", "VB", "3", "IM", "bark.01", "_", "_")
    + "\n"
)


def read(text):
    findings = []
    return list(read_conll2009(text.encode().splitlines(keepends=True), file="c", report=findings.append)), findings


def test_trees_and_roles_are_read():
    (sentence, _), findings = read(GOOD + GOOD.rstrip("\n"))
    assert findings == []
    assert sentence.forms == ("Dogs", "want", "to", "bark")
    assert sentence.heads == (2, 0, 2, 3)
    assert sentence.upos == ("NNS", "VBP", "TO", "VB") and sentence.relations[1] == "ROOT"
    assert sentence.lemmas == ("dogs", "want", "to", "bark") and sentence.feats == ("num=pl", "_", "_", "_")
    assert sentence.predicates == (
        Predicate(2, "want.01", (Argument("ARG0", 1), Argument("ARG1", 3))),
        Predicate(4, "bark.01", (Argument("ARG0", 1),)),
    )


def test_a_sentence_without_predicates_has_none_of_their_columns():
    (sentence,), findings = read(line("1", "Yes", "UH", "0", "ROOT"))
    assert findings == [] and sentence.predicates == ()


@pytest.mark.parametrize(
    ("text", "kind", "number"),
    [
        (line("1", "a", "X", "0", "ROOT", "a.01"), "column-count", 1),
        (line("1", "a", "X", "0", "ROOT") + line("2", "b", "X", "1", "D", "_", "A0"), "column-count", 2),
        ("1\ta\tX\n", "column-count", 1),
        (line("1", "a", "X", "0", "ROOT") + line("3", "b", "X", "1", "D"), "word-ids", 2),
        (line("1", "a", "X", "x", "ROOT"), "head-not-a-number", 1),
        (line("1", "a", "X", "0", "ROOT") + line("2", "b", "X", "7", "D"), "head-out-of-range", 2),
    ],
)
def test_faults_are_named_by_line(text, kind, number):
    sentences, findings = read(text)
    assert sentences == []
    assert (findings[0].kind, findings[0].line) == (kind, number)
