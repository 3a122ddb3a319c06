"""Attachment scores by the rules of CoNLL 2018, by hand and by an independent scorer."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from strata_core.corpus.generators.treebank import synthetic_sentence
from strata_core.corpus.treebanks.conllu_writing import write_conllu
from strata_core.evaluation.attachment import AttachmentCounts, count_attachments
from strata_core.evaluation.trees import decode_tree


def test_subtypes_count_only_for_full_relations_and_punctuation_counts_like_any_word():
    gold = [2, 0, 2, 2], ["nsubj:pass", "root", "obl", "punct"]
    # Head and relation right but for the subtype; right; head right, relation wrong; head wrong, relation right.
    counts = count_attachments(*gold, [2, 0, 2, 3], ["nsubj", "root", "obj", "punct"])
    assert counts == AttachmentCounts(words=4, heads=3, relations=2, full_relations=1)
    assert (counts.uas, counts.las, counts.las_full_relations) == (3 / 4, 2 / 4, 1 / 4)


def test_words_without_a_gold_head_are_left_out():
    counts = count_attachments([None, 0, 2], [None, "root", None], [2, 0, 2], ["x", "root", "y"])
    assert counts == AttachmentCounts(words=2, heads=2, relations=1, full_relations=1)


def test_counts_of_sentences_add_up_so_that_long_ones_weigh_more():
    short = AttachmentCounts(1, 0, 0, 0)
    long = AttachmentCounts(3, 3, 3, 0)
    assert (short + long).uas == 3 / 4
    assert sum([short, long], AttachmentCounts()) == AttachmentCounts(4, 3, 3, 0)


def test_no_words_have_no_score():
    assert math.isnan(AttachmentCounts().uas) and math.isnan(AttachmentCounts().las)


def test_sentences_of_other_lengths_are_refused():
    with pytest.raises(ValueError):
        count_attachments([0], ["root"], [0, 1], ["root", "x"])


def test_an_independent_scorer_counts_the_same(tmp_path):
    udeval = pytest.importorskip("udtools.udeval", reason="the scorer of udtools is not installed")
    generator = np.random.default_rng(2)
    gold = [synthetic_sentence(1, index) for index in range(200)]
    predicted, total = [], AttachmentCounts()
    for sentence in gold:
        n_words = len(sentence.forms)
        scores = generator.normal(size=(n_words, n_words + 1))
        scores[np.arange(n_words), list(sentence.heads)] += 2
        heads = decode_tree(scores).tolist()
        kept = generator.random(n_words) < 0.7
        relations = tuple(r.split(":")[0] if keep else "dep" for r, keep in zip(sentence.relations, kept, strict=True))
        predicted.append(replace(sentence, heads=tuple(heads), relations=relations))
        total += count_attachments(sentence.heads, sentence.relations, heads, relations)
    for name, sentences in (("gold", gold), ("predicted", predicted)):
        (tmp_path / name).write_text("".join(write_conllu(sentences)), encoding="utf-8")
    scored = udeval.evaluate(*(udeval.load_conllu_file(str(tmp_path / name)) for name in ("gold", "predicted")))
    assert (scored["UAS"].correct, scored["LAS"].correct, scored["UAS"].gold_total) == (
        total.heads,
        total.relations,
        total.words,
    )
