"""Role-edit probes: answered by the roles, and by nothing else."""

from __future__ import annotations

from collections import defaultdict

import pytest

from strata_core.corpus.generators.lexicon import EVENTS
from strata_core.corpus.generators.role_edits import BALANCED_BLOCK, role_edit_example
from strata_core.corpus.treebanks.dependency_tree import tree_faults
from strata_core.corpus.treebanks.role_swap import swap_core_roles


@pytest.fixture(scope="module")
def examples():
    return [role_edit_example(3, index) for index in range(10 * BALANCED_BLOCK)]


def answer_by_roles(context, words):
    """Answers "The one who (was) chased was the" from the roles alone."""
    past = words[-3]
    event = next(noun for noun, verb in EVENTS if verb == past)
    role = "ARG1" if words[3] == "was" else "ARG0"
    (head,) = [
        argument.head
        for predicate in context.predicates
        if predicate.roleset == f"{event}.01"
        for argument in predicate.arguments
        if argument.role == role
    ]
    return context.forms[head - 1]


def test_an_example_is_a_function_of_seed_and_index(examples):
    assert role_edit_example(3, 77) == examples[77] and role_edit_example(4, 77) != examples[77]


def test_contexts_are_trees_with_two_predicates_that_have_both_roles(examples):
    for example in examples:
        assert tree_faults(example.context.heads) == []
        assert [{a.role for a in p.arguments} for p in example.context.predicates] == [{"ARG0", "ARG1"}] * 2


def test_the_roles_answer_both_probes_and_an_edit_turns_only_its_own(examples):
    for example in examples:
        edited = swap_core_roles(example.context, example.edited)
        placebo = swap_core_roles(example.context, 1 - example.edited)
        probe, unrelated = example.probe, example.unrelated
        assert answer_by_roles(example.context, probe.words) == probe.answer
        assert answer_by_roles(edited, probe.words) == probe.other
        assert answer_by_roles(placebo, probe.words) == probe.answer
        assert answer_by_roles(example.context, unrelated.words) == unrelated.answer
        assert answer_by_roles(edited, unrelated.words) == unrelated.answer


def test_an_edit_leaves_words_and_tree_alone(examples):
    example = examples[0]
    edited = swap_core_roles(example.context, example.edited)
    assert (edited.forms, edited.heads, edited.relations) == (
        example.context.forms,
        example.context.heads,
        example.context.relations,
    )


def surface_features(example):
    """What the words show of an example, without its roles."""
    mentioned = [form for form in example.context.forms if form in (example.probe.answer, example.probe.other)]
    return {
        "question": len(example.probe.words),
        "event": example.edited,
        "first mentioned answers": mentioned[0] == example.probe.answer,
    }


@pytest.mark.parametrize("features", [(), ("question",), ("event",), ("question", "event")])
def test_the_order_of_mention_tells_nothing_even_given_question_and_event(examples, features):
    first_answers = defaultdict(list)
    for example in examples:
        seen = surface_features(example)
        first_answers[tuple(seen[name] for name in features)].append(seen["first mentioned answers"])
    assert all(sum(answers) * 2 == len(answers) for answers in first_answers.values())


def test_the_other_probe_tells_nothing_about_the_probe(examples):
    pairs = defaultdict(int)
    for example in examples:
        first, second = (
            next(form for form in example.context.forms if form in (probe.answer, probe.other)) == probe.answer
            for probe in (example.probe, example.unrelated)
        )
        pairs[first, second, len(example.probe.words), len(example.unrelated.words)] += 1
    assert set(pairs.values()) == {len(examples) // 16} and len(pairs) == 16


def test_both_continuations_are_words_of_the_context_once_each(examples):
    for example in examples:
        for probe in (example.probe, example.unrelated):
            assert example.context.forms.count(probe.answer) == example.context.forms.count(probe.other) == 1
