"""Graphs and queries written by hand as JSON Lines."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from strata_core.corpus.graphs.example import Branch, GraphExample, Mode, Query, Status
from strata_core.corpus.graphs.jsonl import GraphFault, read_graph_lines, refuse_faults
from strata_core.corpus.graphs.names import GraphNames
from strata_core.corpus.graphs.reading import GraphReader
from strata_core.corpus.graphs.writing import write_examples
from strata_core.errors import DataError
from tests.strata_core.corpus.graphs.helpers import KIN
from tests.strata_core.corpus.helpers import SHARED

DOCUMENTATION = Path(__file__).resolve().parents[4] / "docs" / "corpus.md"
PLAIN = GraphNames(relations=("edge",), targets=("no", "yes"))
RECORD = {
    "id": "g",
    "num_nodes": 3,
    "edges": [[0, "parent", 1], [1, 0, 2]],
    "query": {"branches": [{"start": 2, "steps": ["parent^-1", 0]}]},
    "status": "supported",
    "answers": [1],
}


def read(*records, names=KIN, asks=True):
    lines = [record if isinstance(record, bytes) else json.dumps(record).encode() + b"\n" for record in records]
    return list(read_graph_lines(lines, file="graphs.jsonl", names=names, asks=asks))


def test_relations_are_read_by_name_by_number_and_backwards() -> None:
    (example,) = read(RECORD)
    assert isinstance(example, GraphExample)
    assert example.edges == ((0, 0, 1), (1, 0, 2)) and example.node_types == (0, 0, 0)
    assert example.query == Query(Mode.ENTITY, (Branch(2, (3, 0)),))
    assert (example.status, example.answers) == (Status.SUPPORTED, (1,))


def test_modes_types_ends_targets_and_numbers_are_read() -> None:
    query = {"mode": "relation", "branches": [{"start": 0}], "end": 2}
    kin = RECORD | {"id": "k", "node_types": ["pet", 0, "person"], "query": query, "target": "uncle"}
    count = {"mode": "count", "branches": [{"start": 0, "steps": ["parent"]}]}
    first, second = read(kin, RECORD | {"id": "c", "query": count, "number": 1})
    assert first.query == Query(Mode.RELATION, (Branch(0),), 2) and first.target == 1 and first.node_types == (1, 0, 0)
    assert second.query.mode == Mode.COUNT and second.number == 1


def test_the_forms_of_queries_in_the_documentation_are_read_as_what_it_says() -> None:
    table = re.findall(
        r"^\| `(\w+)`(?:, `\w+`)? \| .* \| `(\{.*?\})`.* \| `(.*?)` \|$", DOCUMENTATION.read_text(), re.M
    )
    assert [mode for mode, _, _ in table] == ["entity", "count", "largest", "relation"]
    names = GraphNames(relations=("friend", "parent"), targets=("aunt", "uncle"))
    graph = {"id": "g", "num_nodes": 5, "edges": [], "status": "supported"}
    for mode, query, label in table:
        (example,) = read(graph | {"query": json.loads(query)} | json.loads(f"{{{label}}}"), names=names)
        assert isinstance(example, GraphExample) and example.query.mode == Mode[mode.upper()]


def test_a_question_without_labels_is_a_question() -> None:
    bare = {key: RECORD[key] for key in ("id", "num_nodes", "edges", "query")}
    (example,) = read(bare)
    assert example.status == Status.UNKNOWN and example.answers == () and example.supported_probability is None


LABEL = {"mode": "relation", "branches": [{"start": 0}]}
BAD = {
    "not JSON": (b'{"id": the dog}\n', "not JSON from column 8 on: 'the dog}'"),
    "a line of text": (b"The dog barks.\n", "not JSON from column 1 on: 'The dog barks.'"),
    "cut short": (b'{"id": \n', "not JSON: the line ends before the record does"),
    "not UTF-8": (b'{"id": "\xff"}\n', "not UTF-8"),
    "nested too deep": (b"[" * 200_000 + b"\n", "not JSON"),
    "no object": (b"[1]\n", "not a JSON object"),
    "no id": ({"num_nodes": 1}, "id is None, not a string"),
    "no node count": ({key: RECORD[key] for key in RECORD if key != "num_nodes"}, "num_nodes is absent"),
    "node count true": (RECORD | {"num_nodes": True}, "num_nodes is True, not a whole number"),
    "node count negative": (RECORD | {"num_nodes": -1}, "num_nodes is -1"),
    "node count huge": (RECORD | {"num_nodes": 10**12}, "num_nodes is 1000000000000"),
    "zero nodes": (RECORD | {"num_nodes": 0}, "zero nodes"),
    "edges absent": (RECORD | {"edges": None}, "edges is None, not a list"),
    "edge of one": (RECORD | {"edges": [[1]]}, "an edge is [1]"),
    "edge without relation": (RECORD | {"edges": [[0, 1]]}, "edge [0, 1] has no relation, and there are 3"),
    "edge with a fraction": (RECORD | {"edges": [[0, 0, 1.5]]}, "a node is 1.5"),
    "unknown relation": (RECORD | {"edges": [[0, "aunt", 1]]}, "unknown relation 'aunt'"),
    "relation out of range": (RECORD | {"edges": [[0, 7, 1]]}, "edge 0 has relation 7 of 3"),
    "too few types": (RECORD | {"node_types": [0]}, "1 node types for 3 nodes"),
    "no query": (RECORD | {"query": None}, "query is absent"),
    "query a string": (RECORD | {"query": "?"}, "query is '?', not an object"),
    "no branches": (RECORD | {"query": {"start": 0}}, 'the query has no "branches"'),
    "no start": (RECORD | {"query": {"branches": [{"steps": [0]}]}}, 'a branch has no "start"'),
    "no end": (RECORD | {"query": LABEL}, 'a query of mode relation has its second node as "end", beside "branches"'),
    "end in a branch": (RECORD | {"query": {"branches": [{"start": 0, "end": 1}]}}, '"end" stands beside "branches"'),
    "unknown mode": (RECORD | {"query": {"mode": "why", "branches": []}}, "mode is 'why', not one of entity, count"),
    "unknown status": (RECORD | {"status": "maybe"}, "status is 'maybe', not one of supported"),
    "absent start": (RECORD | {"query": {"branches": [{"start": 5}]}}, "the query starts at node 5 of 3"),
    "no answers": (RECORD | {"answers": []}, "supported, and no answer is given"),
}  # fmt: skip


@pytest.mark.parametrize("record, message", BAD.values(), ids=BAD)
def test_a_line_that_cannot_be_used_is_a_fault_and_reading_goes_on(record, message) -> None:
    fault, example = read(record, RECORD | {"id": "next"})
    assert isinstance(fault, GraphFault) and message in str(fault) and str(fault).startswith("graphs.jsonl:1")
    assert isinstance(example, GraphExample)


def test_labels_that_are_not_asked_for_are_not_looked_at() -> None:
    labels = {"status": "maybe", "answers": [9], "number": "x", "target": "of another corpus", "y": 7}
    lines = [
        json.dumps(record).encode() for record in (RECORD | labels, RECORD | {"id": "h", "edges": [[0, "owns", 1]]})
    ]
    example, fault = read_graph_lines(lines, file="graphs.jsonl", names=KIN, labelled=False)
    assert (example.status, example.answers, example.number, example.target) == (Status.UNKNOWN, (), None, None)
    assert example.query == Query(Mode.ENTITY, (Branch(2, (3, 0)),))
    assert str(fault) == "graphs.jsonl:2 (id h): unknown relation 'owns'"


def test_an_id_that_comes_again_is_a_fault() -> None:
    _, again = read(RECORD, RECORD)
    assert str(again) == "graphs.jsonl:2 (id g): the id of line 1 again"


def test_a_mark_at_the_start_and_blank_lines_are_passed_over() -> None:
    assert len(read(b"\xef\xbb\xbf" + json.dumps(RECORD).encode() + b"\r\n", b"\r\n", b"\n")) == 1


def test_strict_reading_names_every_fault() -> None:
    refuse_faults([])
    faults = [GraphFault("f", line, f"b{line}", ("wrong",)) for line in range(1, 26)]
    with pytest.raises(DataError) as refused:
        refuse_faults(faults)
    assert "25 examples cannot be used" in refused.value.message and refused.value.problems[20] == "and 5 more"
    assert refused.value.problems[19] == "f:20 (id b20): wrong"
    assert refused.value.hint == "correct them, or leave them out with --on-error skip"
    with pytest.raises(DataError) as asked:
        refuse_faults(faults, remedy="correct them")
    assert asked.value.hint == "correct them"


def test_what_a_reader_asks_of_an_example_is_a_fault_of_its_line() -> None:
    lines = [json.dumps(RECORD).encode(), json.dumps(RECORD | {"id": "h", "edges": []}).encode()]
    check = lambda example: [] if example.edges else ["has no edge"]  # noqa: E731
    example, fault = read_graph_lines(lines, file="graphs.jsonl", names=KIN, check=check)
    assert isinstance(example, GraphExample)
    assert str(fault) == "graphs.jsonl:2 (id h): has no edge"


def t17(name):
    path = SHARED / "cases" / "T17" / name
    if not path.exists():
        pytest.skip("the shared acceptance cases are not here")
    return path


def test_t17_graphs_as_one_batch(tmp_path) -> None:
    with open(t17("graphs.jsonl"), "rb") as lines:
        examples = list(read_graph_lines(lines, file="graphs.jsonl", names=PLAIN, asks=False))
    write_examples(tmp_path / "graphs", examples, PLAIN)
    reader = GraphReader(tmp_path / "graphs")
    batch = reader.batch(np.arange(4))
    expected = json.loads(t17("expected.json").read_text())["graphs.jsonl as one batch"]
    assert len(reader) == expected["graphs out"]
    assert batch.node_offsets[:-1].tolist() == expected["node offsets"]
    assert batch.node_offsets[-1] == expected["total nodes"]
    assert batch.edges[:, [0, 2]].tolist() == expected["edges"]
    assert batch.node_graphs.tolist() == expected["batch vector"]
    assert batch.targets.tolist() == [1, 0, 1, 0]


def test_t17_bad_graphs_are_named_one_by_one() -> None:
    with open(t17("bad_graphs.jsonl"), "rb") as lines:
        faults = list(read_graph_lines(lines, file="bad_graphs.jsonl", names=PLAIN, asks=False))
    with pytest.raises(DataError) as refused:
        refuse_faults(faults)
    assert refused.value.exit_code == 5
    assert list(refused.value.problems) == [
        "bad_graphs.jsonl:1 (id b0): edge 0 node 2 of 2",
        "bad_graphs.jsonl:2 (id b1): zero nodes; a graph has one at least",
        "bad_graphs.jsonl:3 (id b2): num_nodes is absent; the number of nodes is not guessed from the edges",
        "bad_graphs.jsonl:4 (id b3): edge 0 node -1, a negative index",
    ]
