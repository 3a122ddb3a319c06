"""What is recommended to train on a corpus, once it is made and once it is verified."""

import json

import pytest

from strata_cli import main
from strata_core.recipes import load_recipe
from strata_core.tasks.data import open_data
from strata_core.tasks.registry import make_task
from tests.strata_core.corpus.graphs.test_clutrr import CHAIN
from tests.strata_core.corpus.graphs.test_jsonl_preparation import KIN, changed, write
from tests.strata_core.corpus.graphs.test_triples import NAMED, folder_of
from tests.strata_core.tasks.sentence_structure.treebank_corpus import write_treebank

LABEL = {"mode": "relation", "branches": [{"start": 0}], "end": 2}
RELATED = [changed(f"r{n}", query=LABEL, target="aunt", answers=[]) for n in range(3)]


def source_of(folder, kind):
    match kind:
        case "text":
            folder.mkdir()
            (folder / "a.txt").write_text("one text\n")
        case "triples":
            folder_of(folder, NAMED)
        case "clutrr":
            write(folder / "train.jsonl", CHAIN)
        case "roles" | "trees":
            write_treebank(folder / "x-train.conllu", range(20), roles=kind == "roles")
            write_treebank(folder / "x-dev.conllu", range(20, 24), roles=kind == "roles")
        case "labels":
            write(folder / "train.jsonl", *RELATED)
        case _:
            write(folder / "train.jsonl", KIN)
    return folder


@pytest.mark.parametrize(
    ("kind", "command", "validates", "task"),
    [
        ("text", "train-lm --recipe lm/small", False, None),
        ("roles", "train-lm --recipe lm/mixed", True, None),
        ("trees", "train-lm --recipe lm/ud", True, None),
        ("triples", "train-graph --recipe graph/umls", True, "knowledge-graph"),
        ("clutrr", "train-graph --recipe graph/clutrr", False, "path-composition"),
        ("labels", "train-graph --recipe graph/clutrr", False, "path-composition"),
        ("queries", "train-graph --recipe graph/synthetic", False, "graph-reasoner"),
    ],
)
def test_the_recipe_goes_with_what_the_corpus_asks_for(tmp_path, capsys, kind, command, validates, task):
    corpus = tmp_path / "my corpus"
    assert main.run(["prepare-corpus", str(source_of(tmp_path / "in", kind)), "--out", str(corpus)]) == 0
    wanted = f"strata {command} --set corpus.path='{corpus}'" + ("" if validates else " --set evaluation.every=0")
    assert capsys.readouterr().out.splitlines()[-2:] == ["next:", f"  {wanted}"]
    for place in (corpus, corpus / "manifest.json"):
        assert main.run(["verify-manifest", str(place)]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == f"next: {wanted}"
    if task is not None:
        settings = [f"corpus.path={json.dumps(str(corpus))}", "evaluation.metric=loss"]
        recipe = load_recipe(command.split()[-1], "graph", settings)
        assert make_task(recipe, open_data(recipe)).kind == task


@pytest.mark.parametrize("sample", ["synthetic-reasoning", "synthetic-treebank"])
def test_a_format_beside_a_sample_is_refused(tmp_path, capsys, sample):
    out = ["--out", str(tmp_path / "out")]
    assert main.run(["prepare-corpus", "--sample", sample, "--format", "conllu", *out]) == 2
    assert "--format conllu: a sample has a form of its own" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
