"""Examples written to flat arrays, read back, and laid out as batches."""

from __future__ import annotations

import json

import numpy as np
import pytest

from strata_core.corpus.generators.reasoning import NAMES, ReasoningSettings, reasoning_example
from strata_core.corpus.graphs.batch import cut_rows
from strata_core.corpus.graphs.example import Branch, GraphPath, Mode, PathKind, Query, Status
from strata_core.corpus.graphs.layout import ARRAYS
from strata_core.corpus.graphs.names import GraphNames
from strata_core.corpus.graphs.reading import GraphReader
from strata_core.corpus.graphs.writing import write_examples
from strata_core.errors import DataError, StorageError
from tests.strata_core.corpus.graphs.helpers import KIN, grandchild


def lonely(identifier="lonely"):
    """One node, no edge, and a question that it cannot answer."""
    return grandchild(
        identifier,
        node_types=(1,),
        edges=(),
        query=Query(Mode.COUNT, (Branch(0, (1,)),)),
        status=Status.NOT_ENOUGH_INFO,
        answers=(),
        paths=(),
        supported_probability=None,
        twin=0,
    )


def two_branches(identifier="meeting"):
    return grandchild(
        identifier,
        query=Query(Mode.ENTITY, (Branch(0, (0,)), Branch(2, (1, 4)))),
        answers=(1, 3),
        paths=(GraphPath(PathKind.COMPETING, 1, (3,)),),
    )


def written(folder, examples, names=KIN):
    write_examples(folder, examples, names)
    return GraphReader(folder)


def one_by_one(examples, n_relations):
    """What a batch should be, said in plain words: lists of global edges, answers, starts and paths."""
    first_nodes = np.cumsum([0, *(len(example.node_types) for example in examples)]).tolist()
    edges = [
        (source + first, relation, destination + first)
        for example, first in zip(examples, first_nodes, strict=False)
        for source, relation, destination in example.edges
    ]
    by_relation = [edge for wanted in range(n_relations) for edge in edges if edge[1] == wanted]
    answers = [
        {answer + first for answer in example.answers} for example, first in zip(examples, first_nodes, strict=False)
    ]
    paths = [
        [
            (path.kind, path.branch, [tuple_of(example.edges[edge], first) for edge in path.edges])
            for path in example.paths
        ]
        for example, first in zip(examples, first_nodes, strict=False)
    ]
    return first_nodes, by_relation, answers, paths


def tuple_of(edge, first):
    return edge[0] + first, edge[1], edge[2] + first


def test_examples_come_back_whole(tmp_path) -> None:
    settings = ReasoningSettings(seed=3)
    examples = [reasoning_example(settings, "train", index) for index in range(90)]
    reader = written(tmp_path / "train", examples, NAMES)
    back = [reader.example(index) for index in range(len(reader))]
    as_float32 = [np.float32(example.supported_probability) for example in examples]
    assert [example.supported_probability for example in back] == as_float32
    assert [example.paths for example in back] == [example.paths for example in examples]
    for one, other in zip(back, examples, strict=True):
        assert (one.id, one.edges, one.query, one.answers) == (other.id, other.edges, other.query, other.answers)
        assert (one.status, one.number, one.twin) == (other.status, other.number, other.twin)


def test_what_an_example_lacks_comes_back_as_lacking(tmp_path) -> None:
    kin = grandchild("kin", query=Query(Mode.RELATION, (Branch(0),), 2), target=1)
    examples = [grandchild(), lonely(), two_branches(), kin]
    reader = written(tmp_path / "train", examples)
    assert [reader.example(index) for index in range(4)] == examples
    assert reader.node_counts.tolist() == [4, 1, 4, 4] and reader.edge_counts.tolist() == [4, 0, 4, 4]
    assert reader.hop_counts.tolist() == [2, 1, 2, 0]


def test_a_batch_is_the_examples_side_by_side_with_edges_sorted_by_relation(tmp_path) -> None:
    settings = ReasoningSettings(seed=4)
    examples = [reasoning_example(settings, "train", index) for index in range(60)]
    reader = written(tmp_path / "train", examples, NAMES)
    chosen = np.random.default_rng(1).permutation(60)[:40]
    batch = reader.batch(chosen)
    wanted = [examples[index] for index in chosen]
    first_nodes, edges, answers, paths = one_by_one(wanted, len(NAMES.relations))
    assert batch.node_offsets.tolist() == first_nodes
    assert [tuple(edge) for edge in batch.edges.tolist()] == edges
    assert batch.node_types.tolist() == [node_type for example in wanted for node_type in example.node_types]
    assert (batch.node_graphs[batch.edges[:, 0]] == batch.edge_graphs).all()
    assert [set(batch.answers[slice(*batch.answer_offsets[at : at + 2])].tolist()) for at in range(40)] == answers
    for at in range(40):
        found = []
        for path in range(*batch.path_offsets[at : at + 2]):
            walk = batch.path_edges[slice(*batch.path_edge_offsets[path : path + 2])]
            branch = batch.path_branches[path] - batch.branch_offsets[at]
            found.append((batch.path_kinds[path], branch, [tuple(batch.edges[edge].tolist()) for edge in walk]))
        assert found == paths[at]
        for row, branch in enumerate(wanted[at].query.branches, int(batch.branch_offsets[at])):
            assert batch.branch_starts[row] == branch.start + first_nodes[at]
            assert tuple(batch.steps[slice(*batch.step_offsets[row : row + 2])].tolist()) == branch.steps


def test_a_batch_names_twins_by_their_place_in_it(tmp_path) -> None:
    examples = [grandchild("a"), grandchild("b", twin=0), grandchild("c"), grandchild("d", twin=2)]
    reader = written(tmp_path / "train", examples)
    assert reader.batch(np.array([3, 1, 2])).twins.tolist() == [2, -1, -1]
    assert reader.batch(np.array([0, 1, 2, 3])).twins.tolist() == [-1, 0, -1, 2]


def test_a_graph_without_edges_or_with_one_node_shifts_no_other(tmp_path) -> None:
    reader = written(tmp_path / "train", [lonely("a"), grandchild("b"), lonely("c"), lonely("d"), grandchild("e")])
    batch = reader.batch(np.arange(5))
    assert batch.node_offsets.tolist() == [0, 1, 5, 6, 7, 11]
    assert batch.node_graphs.tolist() == [0, 1, 1, 1, 1, 2, 3, 4, 4, 4, 4]
    assert batch.edges[batch.edges[:, 1] == 1].tolist() == [[3, 1, 3], [9, 1, 9]]
    assert batch.answers.tolist() == [3, 9] and batch.branch_starts.tolist() == [0, 1, 5, 6, 7]


def test_a_batch_of_nothing_is_empty(tmp_path) -> None:
    batch = written(tmp_path / "train", [grandchild()]).batch(np.array([], dtype=np.int64))
    assert batch.node_offsets.tolist() == [0] and batch.edges.shape == (0, 3) and batch.twins.tolist() == []


def test_rows_of_owners_are_cut_in_the_order_asked_for() -> None:
    rows, cuts = cut_rows(np.array([0, 2, 2, 5]), np.array([2, 1, 0, 2]))
    assert rows.tolist() == [2, 3, 4, 0, 1, 2, 3, 4] and cuts.tolist() == [0, 3, 3, 5, 8]


def test_a_bad_example_is_refused_by_id_and_leaves_no_header(tmp_path) -> None:
    with pytest.raises(DataError, match="example b3: edge 0 node -1"):
        write_examples(tmp_path / "train", [grandchild(), grandchild("b3", edges=((0, 0, -1),), paths=())], KIN)
    with pytest.raises(DataError, match=r"header\.json: cannot be read"):
        GraphReader(tmp_path / "train")


def test_the_same_examples_give_the_same_bytes(tmp_path) -> None:
    for name in ("one", "two"):
        written(tmp_path / name, [grandchild(), lonely(), two_branches()])
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert len(files) == len(ARRAYS) + 1
    assert all((tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes() for file in files)


def test_a_cut_file_is_refused_by_name_and_size(tmp_path) -> None:
    written(tmp_path / "train", [grandchild()])
    path = tmp_path / "train" / "edges.bin"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(DataError, match=r"edges\.bin: 44 bytes, 48 bytes expected"):
        GraphReader(tmp_path / "train")
    path.unlink()
    with pytest.raises(DataError, match=r"edges\.bin: missing, 48 bytes expected"):
        GraphReader(tmp_path / "train")


def test_offsets_that_do_not_fit_are_refused(tmp_path) -> None:
    written(tmp_path / "train", [grandchild(), grandchild("again")])
    path = tmp_path / "train" / "edge_offsets.bin"
    for offsets in ([0, 4, 9], [0, 9, 8], [1, 4, 8]):
        path.write_bytes(np.array(offsets, dtype="<i8").tobytes())
        with pytest.raises(DataError, match=r"edge_offsets\.bin: does not cut the 8 rows of edges"):
            GraphReader(tmp_path / "train")


def test_headers_of_another_version_or_shape_are_refused(tmp_path) -> None:
    written(tmp_path / "train", [grandchild()])
    header = tmp_path / "train" / "header.json"
    value = json.loads(header.read_text())
    header.write_text(json.dumps(value | {"format_version": 99}))
    with pytest.raises(DataError, match="format version 99, this strata reads 1"):
        GraphReader(tmp_path / "train")
    del value["rows"]
    header.write_text(json.dumps(value))
    with pytest.raises(DataError, match="rows missing"):
        GraphReader(tmp_path / "train")


def test_an_empty_split_is_read(tmp_path) -> None:
    assert len(written(tmp_path / "val", [])) == 0


def test_names_come_back(tmp_path) -> None:
    names = GraphNames(relations=("élève", "b"), entities=("x",), targets=())
    names.write(tmp_path)
    assert GraphNames.read(tmp_path) == names


def test_a_place_that_cannot_be_written_is_a_storage_error(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        write_examples(tmp_path / "file" / "train", [], KIN)
