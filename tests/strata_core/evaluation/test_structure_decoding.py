"""What the heads' scores are turned into, sentence by sentence."""

import itertools

import numpy as np
import torch

from strata_core.corpus.treebanks.dependency_tree import tree_faults
from strata_core.evaluation.structure_decoding import decode_classes, decode_predicates, decode_roles, decode_trees
from strata_core.models import initialise
from strata_core.models.structure_heads import StructureHeads
from tests.strata_core.models.structured import HEADS, WIDTH, enlarge, some_states

REAL = torch.tensor([[True] * 4, [True] * 2 + [False] * 2])


def make() -> StructureHeads:
    heads = StructureHeads(WIDTH, HEADS)
    initialise(heads, 4)
    enlarge(heads)
    return heads.double()


def test_trees_are_the_best_of_all_and_relations_those_of_their_arcs():
    heads, states = make(), some_states(2, 4, WIDTH)
    scores = heads.arcs(states, REAL)
    trees = decode_trees(heads, states, REAL)
    for row, length in enumerate((4, 2)):
        candidates = [
            candidate for candidate in itertools.product(range(length + 1), repeat=length) if not tree_faults(candidate)
        ]
        best = max(candidates, key=lambda tree: sum(scores[row, word, head].item() for word, head in enumerate(tree)))
        assert trees[row].heads.tolist() == list(best)
        padded = torch.zeros(2, 4, dtype=torch.int64)
        padded[row, :length] = torch.tensor(best)
        expected = heads.relations(states, padded)[row, :length].argmax(dim=-1)
        assert trees[row].relations.tolist() == expected.tolist()


def test_the_arc_of_the_root_has_its_relation_and_no_other_arc_has_it():
    heads, states = make(), some_states(2, 4, WIDTH)
    free = decode_trees(heads, states, REAL)
    for root_relation in range(HEADS.n_relations):
        trees = decode_trees(heads, states, REAL, root_relation=root_relation)
        for row, tree in enumerate(trees):
            assert tree.heads.tolist() == free[row].heads.tolist()
            assert ((tree.relations == root_relation) == (tree.heads == 0)).all()
            untouched = (tree.heads != 0) & (free[row].relations != root_relation)
            assert (tree.relations[untouched] == free[row].relations[untouched]).all()


def test_classes_and_predicates_stop_at_the_end_of_a_sentence():
    scores = torch.tensor([[[0, 1], [2, 1], [0, 3], [1, 0]], [[0, 1], [1, 0], [0, 9], [0, 9]]])
    assert [classes.tolist() for classes in decode_classes(scores, REAL)] == [[1, 0, 1, 0], [1, 0]]
    log_odds = torch.tensor([[0.1, -1.0, 2.0, 0.0], [-1.0, 3.0, 5.0, 5.0]])
    assert [words.tolist() for words in decode_predicates(log_odds, REAL)] == [[1, 3], [2]]


def test_roles_are_decoded_for_the_predicates_given():
    heads, states = make(), some_states(2, 4, WIDTH)
    predicates = [np.array([3, 1]), np.array([2])]
    decoded = decode_roles(heads, states, REAL, predicates)
    expected = heads.roles(states, torch.tensor([[0, 2], [0, 0], [1, 1]])).argmax(dim=-1)
    assert decoded[0].tolist() == expected[:2].tolist()
    assert decoded[1].tolist() == expected[2:, :2].tolist()


def test_a_sentence_without_predicates_has_no_rows():
    decoded = decode_roles(make(), some_states(2, 4, WIDTH), REAL, [np.array([], dtype=np.int64)] * 2)
    assert [part.shape for part in decoded] == [(0, 4), (0, 2)]
