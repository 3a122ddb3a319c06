"""Generated reasoning examples: their labels are those that a slow reading of the graph gives."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from strata_core.corpus.generators.reasoning import (
    BALANCED_BLOCK,
    NAMES,
    SPLITS,
    ReasoningSettings,
    reasoning_example,
    reasoning_examples,
)
from strata_core.corpus.graphs.example import NUMBER_MODES, Mode, PathKind, Status, example_faults
from tests.strata_core.corpus.graphs.helpers import matching_walks

SETTINGS = ReasoningSettings(seed=11)
RELATION = {name: number for number, name in enumerate(NAMES.relations)}
DOUBTFUL = {RELATION[name]: float(name.split("/")[1]) for name in NAMES.relations if name.startswith("doubtful/")}
DENIALS = {number for name, number in RELATION.items() if name.endswith("/denied")}


def examples_of(split, count=120, settings=SETTINGS):
    return [reasoning_example(settings, split, index) for index in range(count)]


def denied_of(relation):
    return (RELATION[f"{NAMES.relations[relation]}/denied"],)


def relations_of(example, walk):
    return {example.edges[edge][1] for edge in walk}


def ends_of(example, walks):
    return {example.edges[walk[-1]][2] for walk in walks}


def executed(example, *, doubtful_holds):
    """Status and answers by trying every walk of every branch over the graph."""
    supporting, contradicting = [], []
    for branch in example.query.branches:
        doubtful = DOUBTFUL if doubtful_holds else ()
        walks = matching_walks(example.edges, branch.start, branch.steps, denied_of=denied_of, doubtful=doubtful)
        clean = [walk for walk in walks if not relations_of(example, walk) & DENIALS]
        supporting.append(ends_of(example, clean))
        contradicting.append(ends_of(example, walks))
    answers = set.intersection(*supporting)
    if answers:
        return Status.SUPPORTED, answers
    return (Status.REFUTED if set.intersection(*contradicting) else Status.NOT_ENOUGH_INFO), set()


def levels_of(example, nodes):
    return [
        int(NAMES.relations[relation].split("/")[1])
        for source, relation, destination in example.edges
        if source == destination and source in nodes and NAMES.relations[relation].startswith("level/")
    ]


def is_uncertain(example):
    return 0 < example.supported_probability < 1


@pytest.mark.parametrize("split", SPLITS)
def test_status_and_answers_are_what_the_graph_says(split) -> None:
    for example in examples_of(split):
        assert example_faults(example, NAMES) == []
        holds = example.status == Status.SUPPORTED
        assert executed(example, doubtful_holds=holds) == (example.status, set(example.answers)), example.id
        if not is_uncertain(example):
            assert executed(example, doubtful_holds=not holds)[0] == example.status


@pytest.mark.parametrize("split", SPLITS)
def test_numbers_are_counts_and_extremes_of_levels(split) -> None:
    for example in examples_of(split):
        if example.status != Status.SUPPORTED or example.query.mode not in NUMBER_MODES:
            assert example.number is None
        elif example.query.mode == Mode.COUNT:
            assert example.number == len(example.answers)
        else:
            levels = levels_of(example, example.answers)
            assert len(levels) == len(example.answers)
            assert example.number == (max if example.query.mode == Mode.LARGEST else min)(levels)


@pytest.mark.parametrize("split", SPLITS)
def test_supporting_paths_are_all_the_walks_to_answers(split) -> None:
    for example in examples_of(split):
        found = {(path.branch, path.edges) for path in example.paths if path.kind == PathKind.SUPPORTING}
        expected = {
            (number, walk)
            for number, branch in enumerate(example.query.branches)
            for walk in matching_walks(example.edges, branch.start, branch.steps, doubtful=DOUBTFUL)
            if example.edges[walk[-1]][2] in example.answers
        }
        assert found == expected


def test_contradicting_paths_are_the_steps_of_the_query_over_a_denied_link() -> None:
    for example in examples_of("train", 300):
        contradicting = [path for path in example.paths if path.kind == PathKind.CONTRADICTING]
        assert bool(contradicting) == (example.status == Status.REFUTED)
        for path in contradicting:
            branch = example.query.branches[path.branch]
            assert path.edges in matching_walks(example.edges, branch.start, branch.steps, denied_of=denied_of)
            assert relations_of(example, path.edges) & DENIALS


def test_competing_paths_share_the_start_and_often_more() -> None:
    supported = [example for example in examples_of("train", 300) if example.status == Status.SUPPORTED]
    sharing_prefix = sharing_end = 0
    for example in supported:
        supporting = [path for path in example.paths if path.kind == PathKind.SUPPORTING]
        competing = [path for path in example.paths if path.kind == PathKind.COMPETING]
        assert competing
        sharing_prefix += any(one.edges[0] == other.edges[0] for one in supporting for other in competing)
        ends = {example.edges[path.edges[-1]][2] for path in supporting}
        sharing_end += any(example.edges[path.edges[-1]][2] in ends for path in competing)
    assert sharing_prefix > 0.3 * len(supported) and sharing_end > 0.2 * len(supported)


def relation_counts(example):
    return Counter(relation for _, relation, _ in example.edges)


def test_a_twin_is_the_same_question_with_the_missing_edge_in_place() -> None:
    twins = 0
    for example in examples_of("train", 300):
        if example.twin is None:
            continue
        twins += 1
        twin = reasoning_example(SETTINGS, "train", example.twin)
        assert (example.status, twin.status) == (Status.NOT_ENOUGH_INFO, Status.SUPPORTED)
        assert example.query.mode == twin.query.mode
        assert [branch.steps for branch in example.query.branches] == [branch.steps for branch in twin.query.branches]
        assert Counter(example.node_types) == Counter(twin.node_types)
        assert relation_counts(example) == relation_counts(twin)
    assert twins > 70


def test_one_edge_makes_an_example_that_lacks_one_supported() -> None:
    for example in examples_of("train", 60):
        if example.twin is None:
            continue
        nodes = range(len(example.node_types))
        relations = {step for branch in example.query.branches for step in branch.steps}
        edges = [(one, relation, other) for one in nodes for relation in relations for other in nodes]
        repaired = (replace(example, edges=(*example.edges, edge)) for edge in edges)
        assert any(executed(one, doubtful_holds=False)[0] == Status.SUPPORTED for one in repaired)


def test_graphs_of_a_group_have_the_same_relations_whatever_the_status() -> None:
    examples = examples_of("train", 300)
    for at in range(0, 300, 3):
        one, other, third = (relation_counts(example) for example in examples[at : at + 3])
        assert one == other == third


@pytest.mark.parametrize("split", SPLITS)
def test_each_block_has_each_status_equally_often_for_each_kind_of_query(split) -> None:
    kinds = Counter(
        (example.query.mode, len(example.query.branches), example.status)
        for example in examples_of(split, BALANCED_BLOCK)
    )
    for mode, n_branches, groups in (
        (Mode.ENTITY, 1, 4),
        (Mode.ENTITY, 2, 2),
        (Mode.COUNT, 1, 2),
        (Mode.LARGEST, 1, 1),
        (Mode.SMALLEST, 1, 1),
    ):
        for status in (Status.SUPPORTED, Status.REFUTED, Status.NOT_ENOUGH_INFO):
            assert kinds.pop((mode, n_branches, status)) == groups
    assert not kinds


def test_uncertain_labels_hold_as_often_as_they_are_said_to() -> None:
    uncertain = [example for example in examples_of("test-doubt", 3000) if is_uncertain(example)]
    by_chance = Counter(round(example.supported_probability, 2) for example in uncertain)
    supported = Counter(
        round(example.supported_probability, 2) for example in uncertain if example.status == Status.SUPPORTED
    )
    assert set(by_chance) == set(DOUBTFUL.values())
    for chance, count in by_chance.items():
        assert count > 300
        assert supported[chance] / count == pytest.approx(chance, abs=0.08)  # three standard deviations


def test_uncertain_examples_are_those_with_a_doubtful_edge_on_the_way() -> None:
    for example in examples_of("test-doubt", 200):
        on_the_way = False
        for branch in example.query.branches:
            for walk in matching_walks(example.edges, branch.start, branch.steps, doubtful=DOUBTFUL):
                doubts = relations_of(example, walk) & DOUBTFUL.keys()
                on_the_way |= bool(doubts)
                assert all(DOUBTFUL[doubt] == pytest.approx(example.supported_probability) for doubt in doubts)
        assert on_the_way == is_uncertain(example)


def bigrams(example):
    return {pair for branch in example.query.branches for pair in pairwise(branch.steps)}


def test_compositions_of_their_split_are_never_seen_in_training() -> None:
    examples = examples_of("train", 900) + examples_of("val") + examples_of("test")
    seen = set().union(*map(bigrams, examples))
    for example in examples_of("test-composition", 150):
        assert all(len(set(pairwise(branch.steps)) - seen) >= 1 for branch in example.query.branches)
        steps = {step for branch in example.query.branches for step in branch.steps}
        assert steps <= {step for pair in seen for step in pair}, "each relation alone is seen"


def test_hops_and_sizes_are_those_of_the_split() -> None:
    def hops(split):
        queries = [example.query for example in examples_of(split, 300)]
        single = {len(query.branches[0].steps) for query in queries if len(query.branches) == 1}
        several = {len(branch.steps) for query in queries if len(query.branches) > 1 for branch in query.branches}
        return single, several

    assert hops("train") == ({1, 2, 3, 4}, {1, 2})
    assert hops("test-length") == ({5, 6, 7, 8}, {3, 4})
    largest_seen = max(len(example.node_types) for example in examples_of("train", 300))
    sizes = [len(example.node_types) for example in examples_of("test-size", 90)]
    assert min(sizes) >= 70 and max(sizes) > 2 * largest_seen


def test_hops_of_training_can_be_chosen() -> None:
    settings = ReasoningSettings(seed=1, longest_hops=3)
    assert max(len(e.query.branches[0].steps) for e in examples_of("train", 90, settings)) == 3
    assert max(len(e.query.branches[0].steps) for e in examples_of("test-length", 90, settings)) == 6


def test_nodes_are_numbered_at_random() -> None:
    starts = Counter(example.query.branches[0].start for example in examples_of("train", 600))
    assert starts[0] < 60 and len(starts) > 30


def test_an_example_depends_on_seed_and_index_alone() -> None:
    few = ReasoningSettings(seed=11, n_examples={"train": 10})
    assert list(reasoning_examples(few, "train")) == examples_of("train", 10)
    assert reasoning_example(SETTINGS, "train", 7) == reasoning_example(few, "train", 7)
    assert reasoning_example(ReasoningSettings(seed=12), "train", 7) != reasoning_example(SETTINGS, "train", 7)
    assert reasoning_example(SETTINGS, "val", 7).edges != reasoning_example(SETTINGS, "train", 7).edges


def test_graphs_have_isolated_nodes_self_loops_and_parallel_edges() -> None:
    isolated = loops = parallel = 0
    for example in examples_of("train", 300):
        touched = {node for source, _, destination in example.edges for node in (source, destination)}
        isolated += len(touched) < len(example.node_types)
        loops += any(source == destination for source, _, destination in example.edges)
        parallel += len({(source, destination) for source, _, destination in example.edges}) < len(example.edges)
        assert len(set(example.edges)) == len(example.edges)
    assert min(isolated, loops, parallel) > 30
