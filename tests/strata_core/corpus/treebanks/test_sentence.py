"""Text and word spans of a sentence."""

from __future__ import annotations

from strata_core.corpus.treebanks.sentence import detokenise, surface_tokens
from tests.strata_core.corpus.treebanks.helpers import MIXED, read_real, read_text


def test_text_follows_space_after_and_multiword_tokens():
    (first, second), _ = read_text(MIXED)
    assert detokenise(first).text == "Il parle du port."
    assert detokenise(second).text == "(10 000) don't"
    assert [token.form for token in surface_tokens(first)] == ["Il", "parle", "du", "port", "."]


def test_words_spell_their_spans_or_share_their_tokens():
    (first, second), _ = read_text(MIXED)
    text, spans = detokenise(first).text, detokenise(first).word_spans
    assert [text[start:end] for start, end in spans] == ["Il", "parle", "du", "du", "port", "."]
    text, spans = detokenise(second).text, detokenise(second).word_spans
    assert [text[start:end] for start, end in spans] == ["(", "10 000", ")", "do", "n't"]


def test_space_after_of_a_range_counts_and_that_of_its_words_does_not():
    text = (
        "1-2\tdu\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n"
        "1\tde\t_\tX\t_\t_\t0\troot\t_\t_\n2\tle\t_\tX\t_\t_\t1\tdep\t_\t_\n3\t.\t_\tX\t_\t_\t1\tdep\t_\t_\n"
    )
    (sentence,), _ = read_text(text)
    assert detokenise(sentence).text == "du."


def test_real_texts_are_spelt_by_their_tokens():
    findings = [finding for name in ("EWT", "Sequoia") for finding in read_real(name, "dev")[1]]
    assert [finding for finding in findings if finding.kind == "text-differs"] == []
