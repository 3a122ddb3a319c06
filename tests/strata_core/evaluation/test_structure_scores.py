"""Scores of a batch worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from strata_core.corpus.treebanks.labels import Labels
from strata_core.corpus.treebanks.structure_reading import SentenceArrays
from strata_core.evaluation.structure_decoding import DecodedTree
from strata_core.evaluation.structure_scores import PredictedStructure, StructureCounts, count_structure

LABELS = Labels({"relation": ["root", "nsubj", "obj", "obj:x"], "upos": ["N", "V"], "role": ["ARG0", "ARG1"]})
LEARNED = ("ud_arc", "ud_relation", "node_type", "srl_predicate", "srl_role", "chart_type")


def sentence(heads, relations, upos, rolesets, arguments, has_roles=True):
    words = len(heads)
    return SentenceArrays(
        tokens=np.arange(words),
        token_spans=np.stack([np.arange(words), np.arange(words) + 1], axis=1),
        upos=np.array(upos),
        heads=np.array(heads),
        relations=np.array(relations),
        rolesets=np.array(rolesets),
        arguments=np.array(arguments).reshape(-1, 3),
        has_roles=has_roles,
    )


GOLD = [
    sentence([2, 0, 2], [1, 0, 2], [0, 1, 0], [-1, 4, -1], [[2, 1, 0], [2, 3, 1]]),
    sentence([0, -1], [0, -1], [-1, 1], [-1, -1], [], has_roles=False),
]
PREDICTED = PredictedStructure(
    trees=[
        DecodedTree(np.array([2, 0, 1]), np.array([1, 0, 3])),
        DecodedTree(np.array([0, 1]), np.array([0, 1])),
    ],
    node_types=[np.array([0, 1, 1]), np.array([0, 0])],
    predicates=[np.array([1, 2]), np.array([1])],
    roles=[np.array([[1, 0, 1]]), np.zeros((0, 2), dtype=int)],
    roles_of_predicted=[np.array([[0, 2, 0], [1, 0, 2]]), np.array([[0, 1]])],
    chart_items=[np.array([4, 11, 4]), np.array([0, 0])],
)


def test_scores_of_two_sentences():
    found = count_structure(PREDICTED, GOLD, LABELS, "eisner").metrics(LEARNED)
    # Heads: 2 of 3 and 1 of 1; both right ones of the first have their relation.
    assert found["uas"] == 3 / 4 and found["las"] == 3 / 4
    # Parts of speech: 2 of 3, and 0 of the one that is annotated.
    assert found["upos"] == 2 / 4
    # Predicates of the sentence that has them: {1, 2} for {2}.
    assert found["predicate_f1"] == pytest.approx(2 * 1 / (1 + 2))
    # Roles to the gold predicate: ARG0 of word 1 is right, ARG0 of word 3 is not.
    assert found["role_f1"] == pytest.approx(2 * 1 / (2 + 2))
    # With predicted predicates both are right and one of the wrong predicate is too many.
    assert found["role_f1_predicted"] == pytest.approx(2 * 2 / (2 + 3))
    # Chart items of the sentence whose tree is whole: 4, 11 and 0.
    assert found["chart"] == 2 / 3
    main = (found["las"], found["upos"], found["predicate_f1"], found["role_f1"], found["chart"])
    assert found["structure"] == pytest.approx(sum(main) / 5)


def test_a_relation_that_differs_in_its_subtype_counts_for_las_and_not_for_full_relations():
    predicted = PredictedStructure(trees=[DecodedTree(np.array([2, 0, 2]), np.array([1, 0, 3]))])
    found = count_structure(predicted, GOLD[:1], LABELS, "eisner").metrics(("ud_arc", "ud_relation"))
    assert (found["las"], found["las_full_relations"]) == (1.0, 2 / 3)


def test_counts_survive_the_way_through_a_list():
    counts = count_structure(PREDICTED, GOLD, LABELS, "eisner")
    assert StructureCounts.from_list(counts.to_list()) == counts
    assert StructureCounts() + counts == counts


def test_what_was_not_learned_has_no_score():
    assert StructureCounts().metrics(()) == {}
    assert set(StructureCounts().metrics(("ud_arc",))) == {"uas"}


def test_tags_features_and_lemmas_by_word():
    labels = Labels({"xpos": ["NN", "VB"], "feats": ["_", "N=1"], "lemma_rule": ["L;;", "K;;", "L;;-", "!be"]})
    of_words = {"xpos": np.array([0, 1, -1]), "feats": np.array([1, 0, 0]), "lemma_rule": np.array([0, 2, -1])}
    gold = [replace(GOLD[0], word_labels=of_words)]
    guesses = {
        "xpos": [np.array([0, 0, 1])],
        "feats": [np.array([1, 0, 1])],
        # "be" of "Dogs" is no "dogs"; "!be" makes the same of "bes" as leaving the s out does.
        "lemma_rule": [np.array([3, 3, 0])],
    }
    predicted = PredictedStructure(node_types=[np.array([0, 1, 1])], word_labels=guesses)
    losses = ("node_type", "ud_xpos", "ud_feats", "ud_lemma")
    counts = count_structure(predicted, gold, labels, "eisner", [("Dogs", "bes", "x")])
    found = counts.metrics(losses)
    assert (found["xpos"], found["ufeats"], found["lemmas"]) == (1 / 2, 2 / 3, 1 / 2)
    # Of the two words that have all three, the first has all three right.
    assert found["alltags"] == 1 / 2
    assert StructureCounts.from_list(counts.to_list()) == counts
    assert counts.metrics(("ud_lemma",)) == {"lemmas": 1 / 2}
