"""Queries about links as JSON Lines."""

import pytest

from strata_core.corpus.graphs.names import GraphNames
from strata_core.errors import DataError
from strata_core.tasks.link_prediction.query_file import LinkQuery, read_link_queries

NAMES = GraphNames(("knows", "likes", "likes"), entities=("ann", "bob", "ann", "cid", "ann", "ann"))


def test_a_name_of_several_entities_or_relations_is_refused_with_their_numbers(tmp_path):
    path = tmp_path / "queries.jsonl"
    path.write_text('{"head": "ann", "relation": "knows"}\n{"tail": "bob", "relation": "likes"}\n')
    with pytest.raises(DataError) as caught:
        read_link_queries(str(path), NAMES)
    assert [problem.partition(": ")[2] for problem in caught.value.problems] == [
        "head 'ann' is the name of 4 numbers (0, 2, 4, ...) and tells none of them",
        "relation 'likes' is the name of 2 numbers (1, 2) and tells none of them",
    ]


def test_names_that_are_their_own_are_asked_about_beside_shared_ones(tmp_path):
    path = tmp_path / "queries.jsonl"
    path.write_text('{"head": "cid", "relation": "knows"}\n')
    assert read_link_queries(str(path), NAMES) == [LinkQuery(1, 3, 0, asks_for_tail=True)]
