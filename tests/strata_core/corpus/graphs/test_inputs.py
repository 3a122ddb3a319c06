"""Telling graphs from text by what is in a folder."""

from __future__ import annotations

import json

import pytest

from strata_core.corpus.graphs.inputs import CLUTRR, GRAPHS, TRIPLES, GraphInput, find_graph_input
from strata_core.errors import UsageError
from tests.strata_core.corpus.graphs.test_clutrr import CHAIN
from tests.strata_core.corpus.graphs.test_triples import NAMED, OPENKE, folder_of
from tests.strata_core.corpus.helpers import SHARED, write_compressed

GRAPH = {"id": "g", "num_nodes": 2, "edges": [[0, 1]]}


def lines_of(*records) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.mark.parametrize(
    ("files", "format"),
    [
        (NAMED, TRIPLES),
        (OPENKE, TRIPLES),
        ({"train.jsonl": lines_of(CHAIN), "test_2.jsonl": lines_of(CHAIN)}, CLUTRR),
        ({"train.jsonl": lines_of(GRAPH)}, GRAPHS),
        ({"any.jsonl": lines_of(GRAPH)}, GRAPHS),
        ({"train.jsonl": "no JSON\n", "test.jsonl": lines_of(GRAPH)}, GRAPHS),
        (dict.fromkeys(NAMED, "one line\nof text\n"), None),
        ({"train.txt": NAMED["train.txt"]}, TRIPLES),
        ({"train.txt": NAMED["train.txt"] + "and text\n"}, None),
        ({"train.jsonl": lines_of({"text": "a", "edges": []})}, None),
        ({"train.jsonl": lines_of({"text": "a"})}, None),
        ({}, None),
    ],
)
def test_a_folder_is_what_is_in_it(tmp_path, files, format) -> None:
    found = find_graph_input([folder_of(tmp_path, files)], "auto")
    assert found == (GraphInput(format, tmp_path) if format else None)


def test_a_bad_line_among_triples_does_not_make_them_text(tmp_path) -> None:
    bad = {"train.txt": "ann knows bob\n" + NAMED["train.txt"]}
    assert find_graph_input([folder_of(tmp_path, NAMED | bad)], "auto") == GraphInput(TRIPLES, tmp_path)


def test_a_file_of_graphs_is_told_from_one_of_text(tmp_path) -> None:
    graphs, text = tmp_path / "g.jsonl", tmp_path / "t.jsonl"
    graphs.write_text("\n" + lines_of(GRAPH))
    text.write_text(lines_of({"text": "a"}))
    assert find_graph_input([graphs], "auto") == GraphInput(GRAPHS, graphs)
    assert find_graph_input([text], "auto") is None
    assert find_graph_input([tmp_path / "absent.jsonl"], "auto") is None


@pytest.mark.parametrize("name", ["g.jsonl.gz", "g.ndjson", "g.NDJSON.zst"])
def test_compressed_graphs_and_both_suffixes_are_found(tmp_path, name) -> None:
    path = write_compressed(tmp_path / "in" / name, lines_of(GRAPH))
    assert find_graph_input([path], "auto") == GraphInput(GRAPHS, path)
    assert find_graph_input([tmp_path / "in"], "auto") == GraphInput(GRAPHS, tmp_path / "in")
    path.write_bytes(b"\x1f\x8bdamaged")
    assert find_graph_input([path], "auto") is None


def test_what_somebody_says_wins_over_what_is_there(tmp_path) -> None:
    folder = folder_of(tmp_path, NAMED)
    assert find_graph_input([folder], "text") is None
    assert find_graph_input([folder], "clutrr") == GraphInput(CLUTRR, folder)


def test_graphs_beside_other_inputs_are_refused(tmp_path) -> None:
    folder = folder_of(tmp_path / "kg", NAMED)
    for inputs, format in (([folder, "-"], "auto"), ([folder, folder], "triples"), (["-"], "graphs")):
        with pytest.raises(UsageError):
            find_graph_input(inputs, format)
    assert find_graph_input(["-"], "auto") is None


@pytest.mark.parametrize("name", ["umls", "kinship", "nations", "countries_S3", "wn18rr", "fb15k-237"])
def test_real_folders_of_triples_are_found(name) -> None:
    folder = SHARED / "data" / "kg" / name
    if not folder.exists():
        pytest.skip("the shared data are not here")
    assert find_graph_input([folder], "auto") == GraphInput(TRIPLES, folder)
