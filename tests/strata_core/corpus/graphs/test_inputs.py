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


TEXT = "A line of text.\nAnother\twith\ttabs\n"


@pytest.mark.parametrize("names", [list(NAMED), ["kg.txt"], ["train.tsv", "dev.csv"], ["all.nt.gz"], ["kg.csv.zst"]])
def test_files_of_triples_are_triples(tmp_path, names) -> None:
    kinds = {".csv": "a,b,c\n", ".nt": "<a> <b> <c> .\n"}
    paths = [tmp_path / "in" / name for name in names]
    for path in paths:
        text = next((text for suffix, text in kinds.items() if suffix in path.name), "ann\tknows\tbob\n")
        write_compressed(path, text)
    assert find_graph_input(paths, "auto") == GraphInput(TRIPLES, paths[0], tuple(paths[1:]))
    assert find_graph_input([tmp_path / "in"], "auto") == GraphInput(TRIPLES, tmp_path / "in")


def test_a_text_with_some_lines_of_three_columns_is_text(tmp_path) -> None:
    path = tmp_path / "train.txt"
    for text in (TEXT, "ann\tknows\tbob\n" * 5 + TEXT, "ann\t\tbob\n", "", "\n\n"):
        path.write_text(text)
        assert find_graph_input([path], "auto") is None


def test_beside_triples_a_file_with_a_bad_line_or_none_is_one_of_triples_too(tmp_path) -> None:
    folder = folder_of(tmp_path, {"train.txt": "a\tb\tc\n" * 3, "dev.txt": "a\tb\tc\n" * 3 + "a b\n", "test.txt": ""})
    paths = [folder / name for name in ("train.txt", "dev.txt", "test.txt")]
    assert find_graph_input(paths, "auto") == GraphInput(TRIPLES, paths[0], tuple(paths[1:]))


def test_files_of_openke_are_triples(tmp_path) -> None:
    folder = folder_of(tmp_path, OPENKE)
    paths = [folder / name for name in OPENKE if name != "relation2id.txt"]
    assert find_graph_input(paths, "auto") == GraphInput(TRIPLES, paths[0], tuple(paths[1:]))


def test_inputs_of_different_kinds_are_refused_with_the_files_of_each(tmp_path) -> None:
    folder = folder_of(
        tmp_path,
        {"train.txt": "a\tb\tc\n" * 3, "novel.txt": TEXT, "x.conllu": "", "g.jsonl": lines_of(GRAPH)},
    )
    train, novel, treebank, graphs = (folder / name for name in ("train.txt", "novel.txt", "x.conllu", "g.jsonl"))
    with pytest.raises(UsageError, match="inputs of different kinds") as refused:
        find_graph_input([train, novel, treebank, graphs, "-"], "auto")
    assert refused.value.problems == (
        f"triples: {train}",
        f"text: {novel} (line 1 has 1 column)",
        f"annotated sentences (CoNLL-U): {treebank}",
        f"JSON Lines of graphs: {graphs}",
        "standard input: -",
    )
    assert find_graph_input([train, novel], "text") is None
    assert find_graph_input([train, novel], "triples") == GraphInput(TRIPLES, train, (novel,))


def test_a_folder_of_text_and_of_triples_for_training_is_refused(tmp_path) -> None:
    folder = folder_of(tmp_path, {"train.tsv": "a\tb\tc\n", "novel.txt": TEXT})
    with pytest.raises(UsageError, match="files of different kinds") as refused:
        find_graph_input([folder], "auto")
    assert refused.value.problems == (f"triples: {folder / 'train.tsv'}", f"something else: {folder / 'novel.txt'}")
    (folder / "train.tsv").rename(folder / "table.tsv")
    assert find_graph_input([folder], "auto") is None, "a table beside texts is not read, as ever"


def test_documentation_beside_triples_is_no_other_kind(tmp_path) -> None:
    folder = folder_of(tmp_path, {"kg.tsv": "a\tb\tc\n", "README.txt": TEXT, "LICENSE": TEXT})
    assert find_graph_input([folder], "auto") == GraphInput(TRIPLES, folder)


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
