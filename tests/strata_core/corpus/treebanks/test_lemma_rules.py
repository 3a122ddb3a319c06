"""Lemmas as rules: what a rule says, and that it gives back the lemma it was made from."""

import pytest

from strata_core.corpus.treebanks.lemma_rules import apply_rule, is_rule, lemma_by, rule_of
from tests.strata_core.corpus.treebanks.helpers import MIXED, SHARED, read_text

BY_HAND = [
    ("cities", "city", "L;;---+y"),
    ("Cities", "city", "L;;---+y"),
    ("dog", "dog", "L;;"),
    ("Dog", "dog", "L;;"),
    ("Paris", "Paris", "K;;"),
    ("McDonald", "McDonald", "K;;"),
    ("Browns", "Brown", "K;;-"),
    ("GOOGLE", "Google", "T;;"),
    ("nasa", "NASA", "U;;"),
    ("ebay", "eBay", "@1;;"),
    ("was", "be", "!be"),
    ("10", "10", "L;;"),
    ("gegangen", "gehen", "L;;----+h=="),
    ("aufgemacht", "aufmachen", "L;===--;-+e+n"),
]


@pytest.mark.parametrize(("form", "lemma", "rule"), BY_HAND)
def test_rules_worked_out_by_hand(form, lemma, rule):
    assert rule_of(form, lemma) == rule
    assert apply_rule(rule, form) == lemma


def test_a_rule_serves_forms_it_was_not_made_from():
    assert apply_rule(rule_of("Cities", "city"), "parties") == "party"
    assert apply_rule(rule_of("aufgemacht", "aufmachen"), "Ausgelacht") == "auslachen"


@pytest.mark.parametrize(
    ("form", "lemma"),
    [
        *((form, lemma) for form, lemma, _ in BY_HAND),
        ("İstanbul", "istanbul"),
        ("ΣΟΦΟΣ", "σοφός"),
        ("straße", "STRASSE"),
        ("a;b+c", "a;b+c=-"),
        ("x", ";"),
        ("!", "!"),
        ("_", "_"),
        ("10 000", "10000"),
        ("😀", ":)"),
        ("aaaa", "aaaaaaaa"),
    ],
)
def test_every_lemma_comes_back(form, lemma):
    assert apply_rule(rule_of(form, lemma), form) == lemma


def test_where_a_rule_cannot_be_applied_the_form_stands():
    assert apply_rule("L;;---+y", "no") is None
    assert apply_rule("L;;---", "dog") is None
    assert (lemma_by("L;;---+y", "No"), lemma_by(None, "No"), lemma_by("L;;-", "No")) == ("No", "No", "n")


def test_what_is_no_rule_is_told():
    assert all(is_rule(rule) for _, _, rule in BY_HAND)
    assert not any(is_rule(text) for text in ("", "L", "L;", "X;;", "L;;;", "L;x;", "L;;+"))
    with pytest.raises(ValueError, match="'L;x;' is no lemma rule"):
        apply_rule("L;x;", "form")


def test_the_lemmas_of_a_small_treebank_come_back():
    sentences, _ = read_text(MIXED)
    pairs = [pair for one in sentences for pair in zip(one.forms, one.lemmas, strict=True)]
    assert len(pairs) == 11 and all(apply_rule(rule_of(form, lemma), form) == lemma for form, lemma in pairs)


def test_rules_of_a_real_training_split_cover_its_test_split():
    rules = []
    for split in ("train", "test"):
        path = SHARED / f"data/ud/UD_English-EWT/en_ewt-ud-{split}.conllu"
        if not path.exists():
            pytest.skip(f"{path} is not there")
        rows = (line.split("\t") for line in path.read_text().splitlines() if "\t" in line)
        pairs = [(cells[1], cells[2]) for cells in rows if cells[0].isdigit() and cells[2] != "_"]
        rules.append([rule_of(form, lemma) for form, lemma in pairs])
        assert all(apply_rule(rule_of(form, lemma), form) == lemma for form, lemma in dict.fromkeys(pairs))
    known = set(rules[0])
    covered = sum(rule in known for rule in rules[1]) / len(rules[1])
    assert len(known) < 600 and covered > 0.997
