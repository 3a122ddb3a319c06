"""A sentence as tensors: worked out by hand."""

from dataclasses import replace

import numpy as np

from strata_core.corpus.treebanks.structure_reading import SentenceArrays
from strata_core.tasks.sentence_structure.sentence_tensors import (
    causal_tensors,
    label_counts,
    label_tensors,
    role_cells,
    word_tensors,
)

IGNORED, NONE = -100, -1


def sentence(heads, relations, upos, rolesets, arguments, spans, tokens, has_roles=True):
    return SentenceArrays(
        tokens=np.array(tokens, dtype=np.uint32),
        token_spans=np.array(spans, dtype=np.int32),
        upos=np.array(upos, dtype=np.int32),
        heads=np.array(heads, dtype=np.int32),
        relations=np.array(relations, dtype=np.int32),
        rolesets=np.array(rolesets, dtype=np.int32),
        arguments=np.array(arguments, dtype=np.int32).reshape(-1, 3),
        has_roles=has_roles,
    )


# "cats see dogs": see is the root and a predicate with ARG0 (number 0) cats and ARG1 (number 2) dogs.
ARGUMENTS = [[2, 1, 0], [2, 3, 2]]
WHOLE = sentence([2, 0, 2], [4, 1, 3], [0, 1, 0], [-1, 7, -1], ARGUMENTS, [[0, 2], [2, 3], [3, 5]], range(5))
PARTIAL = sentence([2, -1], [4, 3], [-1, 1], [-1, -1], [], [[0, 1], [1, 1]], [9], has_roles=False)


def test_labels_are_padded_and_left_out_where_nothing_is_annotated():
    batch = label_tensors([WHOLE, PARTIAL], "eisner")
    assert batch["heads"].tolist() == [[2, 0, 2], [2, -1, NONE]]
    assert batch["relations"].tolist() == [[4, 1, 3], [4, NONE, NONE]]
    assert batch["node_types"].tolist() == [[0, 1, 0], [-1, 1, NONE]]
    # cats: head to the right; see: root's dependent with dependents on both sides; dogs: head to the left.
    assert batch["chart_items"].tolist() == [[4, 11, 0], [NONE] * 3]
    assert batch["predicate_labels"].tolist() == [[0, 1, 0], [NONE] * 3]
    assert batch["predicates"].tolist() == [[0, 1]]
    assert batch["roles"].tolist() == [[1, 0, 3]]
    assert batch["real"].tolist() == [[True] * 3, [True, True, False]]


def test_roles_are_padded_to_the_longest_sentence():
    spans = [[place, place + 1] for place in range(4)]
    longer = sentence([0, 1, 2, 3], [0] * 4, [0] * 4, [3, -1, 3, -1], [[3, 4, 1]], spans, range(4))
    batch = label_tensors([WHOLE, longer], None)
    assert batch["predicates"].tolist() == [[0, 1], [1, 0], [1, 2]]
    assert batch["roles"].tolist() == [[1, 0, 3, NONE], [0, 0, 0, 0], [0, 0, 0, 2]]


def test_a_batch_without_predicates_has_none_rather_than_no_tensor():
    batch = label_tensors([PARTIAL], None)
    assert batch["predicates"].shape == (0, 2) and batch["roles"].shape == (0, 2)


def test_a_stand_in_has_nothing_to_learn():
    batch = label_tensors([WHOLE], "eisner", learn=False) | causal_tensors([WHOLE], learn=False)
    for name in ("heads", "relations", "node_types", "predicate_labels", "chart_items"):
        assert (batch[name] == NONE).all(), name
    assert len(batch["predicates"]) == 0
    assert (batch["sentence_labels"] == IGNORED).all()


def test_every_token_but_the_first_is_predicted_and_a_word_is_known_at_its_last_token():
    batch = causal_tensors([WHOLE, PARTIAL], learn=True)
    assert batch["sentence_tokens"].tolist() == [[0, 1, 2, 3, 4], [9, 0, 0, 0, 0]]
    assert batch["sentence_labels"].tolist() == [[1, 2, 3, 4, IGNORED], [IGNORED] * 5]
    assert batch["last_token"].tolist() == [[1, 2, 4], [0, 0, 0]]


def test_words_hold_their_tokens_one_after_another():
    batch = word_tensors([WHOLE, PARTIAL], [("cats", "see", "dogs"), ("a", "b")], 64)
    assert batch["word_tokens"].tolist() == [0, 1, 2, 3, 4, 9]
    assert batch["word_offsets"].tolist() == [0, 2, 3, 5, 6, 6]
    assert batch["word_features"].shape == (2, 3, 4)


def test_labels_of_words_that_only_some_sentences_have():
    tagged = replace(WHOLE, word_labels={"xpos": np.array([5, -1, 2]), "feats": np.array([0, 0, 1])})
    batch = label_tensors([tagged, PARTIAL], None, word_labels=("feats", "lemma_rule"))
    assert batch["feats"].tolist() == [[0, 0, 1], [NONE] * 3]
    assert batch["lemma_rule"].tolist() == [[NONE] * 3] * 2 and "xpos" not in batch
    found = label_counts(tagged, none_weight=0.25, core_roles=())
    assert (found["ud_xpos"], found["ud_feats"], found["ud_lemma"]) == (2, 3, 0)


def test_counts_are_those_of_the_labels():
    found = label_counts(WHOLE, none_weight=0.25, core_roles=(1, 3))
    assert found == {
        "lm": 4,
        "ud_arc": 3,
        "ud_relation": 3,
        "node_type": 3,
        "chart_type": 3,
        "srl_predicate": 3,
        "srl_role": 2.25,
        "srl_core_role": 2,
        "ud_xpos": 0,
        "ud_feats": 0,
        "ud_lemma": 0,
    }
    partial = label_counts(PARTIAL, none_weight=0.25, core_roles=(1, 3))
    assert partial == dict.fromkeys(found, 0) | {"ud_arc": 1, "ud_relation": 1, "node_type": 1}


def test_cells_are_none_where_no_argument_stands():
    assert role_cells(WHOLE).tolist() == [[1, 0, 3]]
