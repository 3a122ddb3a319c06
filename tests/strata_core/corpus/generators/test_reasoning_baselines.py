"""Baselines that see half of an example: they find what leans, and nothing in what the generator makes."""

from __future__ import annotations

import numpy as np
import pytest

from strata_core.corpus.generators.reasoning import NAMES, SPLITS, ReasoningSettings, reasoning_examples
from strata_core.corpus.generators.reasoning_baselines import Baselines, CountingClassifier
from strata_core.corpus.generators.reasoning_report import balance, reasoning_report
from strata_core.corpus.graphs.example import Branch, GraphExample, Mode, Query, Status
from strata_core.corpus.graphs.names import GraphNames
from strata_core.corpus.graphs.reading import GraphReader
from strata_core.corpus.graphs.writing import write_examples


def test_a_counting_classifier_has_the_probabilities_of_a_count_by_hand() -> None:
    features, labels = np.array([[0], [0], [1], [1]]), np.array([0, 0, 0, 1])
    scores = CountingClassifier(features, labels).scores(np.array([[1]]))
    # Priors 4/6 and 2/6; of 3 examples with label 0 one has value 1, of 1 with label 1 one; 16 values.
    expected = np.log([4 / 6 * (1 + 1) / (3 + 16), 2 / 6 * (1 + 1) / (1 + 16)])
    np.testing.assert_allclose(scores, [expected])


def test_values_beyond_the_largest_count_as_it() -> None:
    classifier = CountingClassifier(np.array([[15], [0]]), np.array([1, 0]))
    assert classifier.scores(np.array([[400]])).argmax() == 1


def leaning(count):
    """Graphs whose relation gives the status away, and answers that are the only node with an edge in."""
    for number in range(count):
        supported = number % 2 == 0
        yield GraphExample(
            id=str(number),
            node_types=(0,) * 4,
            edges=((0, 0 if supported else 1, 3),),
            query=Query(Mode.ENTITY, (Branch(0, (0,)),)),
            status=Status.SUPPORTED if supported else Status.NOT_ENOUGH_INFO,
            answers=(3,) if supported else (),
        )


def test_what_leans_is_found(tmp_path) -> None:
    write_examples(tmp_path / "train", leaning(40), GraphNames(relations=("yes", "no")))
    reader = GraphReader(tmp_path / "train")
    found = Baselines(reader, 2).accuracies(reader)
    assert (found["status"].chance, found["status"].no_graph, found["status"].no_query) == (0.5, 0.5, 1.0)
    assert (found["answer"].chance, found["answer"].no_graph, found["answer"].no_query) == (0.25, 0.25, 1.0)
    assert "number" not in found


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    settings = ReasoningSettings(seed=2, n_examples=dict.fromkeys(SPLITS, 900) | {"train": 3000})
    folder = tmp_path_factory.mktemp("generated")
    for split in SPLITS:
        write_examples(folder / split, reasoning_examples(settings, split), NAMES)
    return {split: GraphReader(folder / split) for split in SPLITS}


def test_generated_examples_give_baselines_next_to_nothing(generated) -> None:
    report = reasoning_report(generated, NAMES)
    for split in SPLITS[1:]:
        baselines = report[split]["baselines"]
        for one in ("no_graph", "no_query"):
            assert baselines["status"][one] < 1 / 3 + 0.05, split
            assert baselines["number"][one] < 1 / 5 + 0.12, split
            assert baselines["answer"][one] < baselines["answer"]["chance"] + 0.1, split


def test_the_balance_is_the_count_of_examples(generated) -> None:
    found = balance(generated["test"], NAMES)
    examples = [generated["test"].example(index) for index in range(900)]
    assert found["examples"] == 900
    assert found["status"] == {"supported": 300, "refuted": 300, "not_enough_info": 300}
    assert found["mode"] == {"entity": 540, "count": 180, "largest": 90, "smallest": 90}
    assert found["intersections"] == sum(len(example.query.branches) > 1 for example in examples) == 180
    assert found["twins"] == sum(example.twin is not None for example in examples)
    assert found["uncertain"] == sum(0 < example.supported_probability < 1 for example in examples)
    assert sum(found["numbers"].values()) == sum(example.number is not None for example in examples)
    assert found["nodes"]["max"] == max(len(example.node_types) for example in examples)
    hops = [max(len(branch.steps) for branch in example.query.branches) for example in examples]
    assert found["hops"] == {str(number): hops.count(number) for number in (1, 2, 3, 4)}
