"""Chart items against a parser that is really run."""

from __future__ import annotations

import random

import pytest

from strata_core.corpus.treebanks.chart_items import CHART_SCHEMES, eisner_items, projectivised, reduce_counts
from strata_core.corpus.treebanks.dependency_tree import crossing_words, tree_faults
from tests.strata_core.corpus.treebanks.helpers import SHARED, random_tree


def arc_standard_reductions(heads):
    """Runs an arc-standard parser that reduces as soon as the tree allows, and counts reductions after each shift."""
    pending = [heads.count(word) for word in range(len(heads) + 1)]
    stack, counts = [0], []
    for word in range(1, len(heads) + 1):
        stack.append(word)
        reductions = 0
        while len(stack) > 1:
            below, top = stack[-2:]
            if below and heads[below - 1] == top and not pending[below]:
                stack.pop(-2)
                pending[top] -= 1
            elif heads[top - 1] == below and not pending[top]:
                stack.pop()
                pending[below] -= 1
            else:
                break
            reductions += 1
        counts.append(reductions)
    assert stack == [0]
    return counts


def test_eisner_classes_by_hand():
    # "the dog saw a cat": the<-dog<-saw->cat->a. 4 * direction + 2 * left dependents + right dependents.
    assert eisner_items([2, 3, 0, 5, 3]) == [4 + 0, 4 + 2, 8 + 3, 4 + 0, 0 + 2]


def test_eisner_has_twelve_classes():
    generator = random.Random(1)
    seen = {item for _ in range(2000) for item in eisner_items(random_tree(generator.randint(1, 6), generator))}
    assert seen == set(range(12)) and CHART_SCHEMES["eisner"][0] == 12


def test_reduce_counts_are_those_of_a_parser():
    generator = random.Random(2)
    tried = 0
    while tried < 300:
        heads = random_tree(generator.randint(1, 8), generator)
        if not crossing_words(heads):
            tried += 1
            assert reduce_counts(heads) == [min(count, 4) for count in arc_standard_reductions(heads)]


def test_more_than_four_reductions_are_four():
    # Five words hang below the last one, and it below the root: 5 + 1 reductions after its shift.
    assert reduce_counts([6, 6, 6, 6, 6, 0]) == [0, 0, 0, 0, 0, 4]


def test_lifting_gives_a_projective_tree_and_leaves_projective_ones_alone():
    generator = random.Random(5)
    for _ in range(300):
        heads = random_tree(generator.randint(1, 10), generator)
        lifted = projectivised(heads)
        assert tree_faults(lifted) == [] and crossing_words(lifted) == []
        if not crossing_words(heads):
            assert lifted == heads


def test_the_crossing_arc_is_lifted_to_the_heads_head():
    # 4 -> 1 crosses the root arc of 3 and the arc 3 -> 2; its head 4 hangs below 3.
    assert projectivised([4, 3, 0, 3]) == [3, 3, 0, 3]


def test_majority_baselines_of_a_real_treebank():
    path = SHARED / "data/ud/UD_English-EWT/en_ewt-ud-train.conllu"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    counts = {scheme: [0] * classes for scheme, (classes, _) in CHART_SCHEMES.items()}
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        cells = [line.split("\t") for line in block.split("\n") if line and not line.startswith("#")]
        heads = [int(row[6]) for row in cells if row[0].isdigit()]
        for scheme, (_, items) in CHART_SCHEMES.items():
            for item in items(heads) if heads else ():
                counts[scheme][item] += 1
    shares = {scheme: max(count) / sum(count) for scheme, count in counts.items()}
    assert {scheme: round(share, 3) for scheme, share in shares.items()} == {"eisner": 0.516, "reduce-count": 0.56}
