"""Answers to queries: in the numbering of each example's own graph, and the same in any batch."""

import pytest
import torch

from strata_core.corpus.graphs.example import Branch, GraphExample, Mode, Query, Status
from strata_core.tasks.graph_queries.answers import reason
from tests.strata_core.models.graphs.helpers import random_example, reader_of, small_reasoner

torch.set_num_threads(1)


@pytest.fixture
def agreeable():
    """A model that holds every query to be supported, and every path that the search finds."""
    model = small_reasoner().eval()
    with torch.no_grad():
        model.status_head.statuses.outer.bias.copy_(torch.tensor([99.0, 0.0, 0.0]))
        model.path_selector.score.outer.bias.fill_(99.0)
    return model


def test_paths_are_walks_of_the_query_in_the_examples_own_graph(agreeable):
    examples = [random_example(number, 9, 25) for number in range(6)]
    for example, reasoned in zip(examples, reason(agreeable, reader_of(examples).batch(range(6))), strict=True):
        assert reasoned.status == Status.SUPPORTED
        assert sum(reasoned.status_probabilities) == pytest.approx(1, abs=1e-5)
        assert reasoned.answers and all(0 <= node < 9 for node, _ in reasoned.answers)
        for path in reasoned.paths:
            branch = example.query.branches[path.branch]
            here = branch.start
            assert len(path.edges) == len(branch.steps) and path.score > 0
            for source, relation, destination in path.edges:
                assert (source, relation, destination) in example.edges and source == here
                here = destination
    assert any(reasoned.paths for reasoned in reason(agreeable, reader_of(examples).batch(range(6))))


def test_what_is_said_of_an_example_does_not_depend_on_the_batch(agreeable):
    modes = [Mode.ENTITY, Mode.COUNT, Mode.LARGEST, Mode.SMALLEST]
    reader = reader_of([random_example(number, 7, 15, mode=modes[number]) for number in range(4)])
    together = reason(agreeable, reader.batch([3, 1, 0, 2]))
    for place, number in enumerate([3, 1, 0, 2]):
        (alone,) = reason(agreeable, reader.batch([number]))
        assert alone.number == together[place].number
        assert [node for node, _ in alone.answers] == [node for node, _ in together[place].answers]
        assert {path.edges for path in alone.paths} == {path.edges for path in together[place].paths}
        assert alone.confidence == pytest.approx(together[place].confidence, abs=1e-5)
        assert (alone.number is None) == (modes[number] == Mode.ENTITY)


def test_a_graph_without_a_question_gets_a_status_alone(agreeable):
    nothing = GraphExample("nothing", (0, 1), ((0, 2, 1),), Query(Mode.NOTHING))
    (reasoned,) = reason(agreeable, reader_of([nothing]).batch([0]))
    assert reasoned.answers == () and reasoned.paths == () and reasoned.number is None


def test_a_query_that_is_not_supported_has_no_answers(agreeable):
    with torch.no_grad():
        agreeable.status_head.statuses.outer.bias.copy_(torch.tensor([0.0, 0.0, 99.0]))
    example = GraphExample("one", (0, 0), ((0, 0, 1),), Query(Mode.ENTITY, (Branch(0, (0,)),)))
    (reasoned,) = reason(agreeable, reader_of([example]).batch([0]))
    assert reasoned.status == Status.NOT_ENOUGH_INFO and reasoned.answers == ()


def test_the_models_temperatures_flatten_its_probabilities(agreeable):
    reader = reader_of([random_example(2, 7, 15)])
    (sharp,) = reason(agreeable, reader.batch([0]))
    agreeable.status_temperature.fill_(50.0)
    agreeable.confidence_temperature.fill_(1e6)
    (flat,) = reason(agreeable, reader.batch([0]))
    assert max(flat.status_probabilities) < max(sharp.status_probabilities)
    assert flat.confidence == pytest.approx(0.5, abs=1e-3)
