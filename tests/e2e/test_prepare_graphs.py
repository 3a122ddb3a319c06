"""`strata prepare-corpus` over graphs, as a user runs it."""

import json
from pathlib import Path

import pytest

from strata_core.corpus.graphs.corpus import open_graph_corpus
from strata_core.corpus.graphs.triples.writing import SPLIT_NAMES
from strata_core.manifest import verify
from tests.e2e.test_prepare_corpus import COMMAND, RESULT_KEYS, check_error, kill_when_written, run
from tests.strata_core.corpus.graphs.test_clutrr import CHAIN
from tests.strata_core.corpus.graphs.test_jsonl_preparation import BAD, KIN, changed, write
from tests.strata_core.corpus.graphs.test_triples import BAD_NAMED, NAMED, OPENKE, folder_of
from tests.strata_core.corpus.helpers import SHARED, folder_bytes, write_compressed
from tests.strata_core.corpus.treebanks.helpers import MIXED

SAMPLE = ["--sample", "synthetic-reasoning", "--sample-examples", 60, "--sample-eval-examples", 30]

ASKED = {
    "train": [("ann", "knows", "bob"), ("bob", "knows", "cid"), ("ann", "likes", "dee")],
    "valid": [("ann", "knows", "cid")],
    "test": [("dee", "likes", "bob")],
}
FORMS = {
    ".txt": "{}\t{}\t{}",
    ".tsv.gz": "{}\t{}\t{}",
    ".csv": '"{}",{},"{}"',
    ".csv.zst": "{};{};{}\r",
    ".nt.gz": "<x:{}> <x:{}> <x:{}> . # said",
}
"""The same triples in each form, by suffix."""


def result_of(*arguments: object) -> dict:
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr.decode()
    result = json.loads(done.stdout)
    assert result.keys() >= RESULT_KEYS and result["kind"] == "graph"
    assert not verify(Path(result["corpus_dir"])).faults
    return result


@pytest.mark.parametrize("files", [NAMED, OPENKE])
def test_a_folder_of_triples_is_known_by_its_content(tmp_path: Path, files: dict) -> None:
    result = result_of(folder_of(tmp_path / "kg", files), "--out", tmp_path / "out")
    assert (result["origin"], result["documents"], result["tokens"]) == ("triples", None, None)
    assert result["splits"].keys() == {"train", "val", "test"} and result["skipped"] == {}


def test_repeated_triples_and_unseen_entities_are_counted(tmp_path: Path) -> None:
    result = result_of(folder_of(tmp_path / "kg", NAMED), "--out", tmp_path / "out")
    assert result["findings"]["repeated"] == {"train": 1, "valid": 0, "test": 0}
    assert result["findings"]["unseen_entities"] == {"valid": 0, "test": 2}
    assert (result["entities"], result["relations"], result["splits"]["train"]["examples"]) == (5, 3, 3)


def test_the_order_of_columns_can_be_said(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "kg", dict.fromkeys(NAMED, "knows\tbob\tann\n"))
    result = result_of(folder, "--columns", "relation,tail,head", "--out", tmp_path / "out")
    corpus = open_graph_corpus(result["corpus_dir"])
    assert corpus.names.entities == ("ann", "bob") and corpus.names.relations == ("knows",)


def test_files_of_triples_are_what_their_folder_is(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "kg", NAMED)
    files = [folder / name for name in ("test.txt", "train.txt", "valid.txt")]
    result = result_of(*files, "--out", tmp_path / "files")
    assert result["digest"] == result_of(folder, "--out", tmp_path / "folder")["digest"]
    named = [{"name": f"{split}.txt", "split": short} for split, short in SPLIT_NAMES.items()]
    assert result["understood"] == [{"kind": "triples", "files": named}] and result["not_read"] == []


@pytest.mark.parametrize(("suffix", "form"), FORMS.items())
def test_every_form_of_triples_compressed_or_not_is_the_same_graph(tmp_path: Path, suffix: str, form: str) -> None:
    for split, triples in ASKED.items():
        text = "".join(form.format(*triple) + "\n" for triple in triples)
        write_compressed(tmp_path / "in" / f"kg-{split}{suffix}", text)
    result = result_of(*sorted((tmp_path / "in").iterdir()), "--out", tmp_path / "out")
    counts = {split: facts["examples"] for split, facts in result["splits"].items()}
    assert counts == {"train": 3, "val": 1, "test": 1} and (result["entities"], result["relations"]) == (4, 2)
    names = open_graph_corpus(tmp_path / "out").names
    assert names.entities == tuple(name if suffix != ".nt.gz" else f"x:{name}" for name in ("ann", "bob", "cid", "dee"))


def test_what_was_understood_is_said_before_anything_else(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "kg", NAMED | {"LICENSE": "free"})
    shown = run(folder, "--out", tmp_path / "out").stderr.decode().splitlines()
    assert shown[:2] == [
        "understood 3 files as triples: train.txt (train), valid.txt (val), test.txt (test)",
        "not read: LICENSE (no file of triples)",
    ]
    write(tmp_path / "g" / "train.jsonl", KIN)
    assert run(tmp_path / "g", "--out", tmp_path / "g-out").stderr.startswith(
        b"understood 1 file as JSON Lines of graphs: train.jsonl (train)"
    )
    write(tmp_path / "c" / "train.jsonl", CHAIN)
    assert run(tmp_path / "c", "--out", tmp_path / "c-out").stderr.startswith(
        b"understood 1 file as CLUTRR: train.jsonl"
    )


def test_one_file_of_triples_says_what_is_held_out_and_what_is_lacking(tmp_path: Path) -> None:
    (tmp_path / "mine.tsv").write_text("".join(f"e{i}\tnext\te{(i + 1) % 60}\n" for i in range(60)))
    done = run(tmp_path / "mine.tsv", "--val-fraction", 0.5, "--out", tmp_path / "out")
    shown = done.stderr.decode()
    assert "of 60 training triples are held out for it" in shown and "no file is for testing" in shown
    assert b"train-graph --recipe graph/umls" in done.stdout and b"evaluation.every" not in done.stdout
    done = run(tmp_path / "mine.tsv", "--val-fraction", 0, "--out", tmp_path / "all")
    assert "nothing can be evaluated during training" in done.stderr.decode()
    assert done.stdout.rstrip().endswith(b"--set evaluation.every=0")


def test_a_large_graph_is_recommended_the_recipe_for_large_graphs(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("".join(f"e{i}\tnext\te{i + 1}\n" for i in range(11_000)))
    done = run(tmp_path / "train.tsv", "--out", tmp_path / "out")
    assert b"strata train-graph --recipe graph/wn18rr" in done.stdout


def test_mixed_inputs_and_formats_that_are_not_read_end_with_2(tmp_path: Path) -> None:
    folder, out = folder_of(tmp_path / "kg", NAMED), ["--out", tmp_path / "out"]
    (tmp_path / "x-dev.conllu").write_text(MIXED)
    (tmp_path / "kg.ttl").write_text("<a> <b> <c> .")
    train, treebank = folder / "train.txt", tmp_path / "x-dev.conllu"
    check_error(run(train, treebank, *out), 2, f"triples: {train}", f"annotated sentences (CoNLL-U): {treebank}")
    check_error(run(tmp_path / "kg.ttl", *out), 2, "its format is not read", "rdflib")
    check_error(run(tmp_path / "kg.ttl", "--format", "triples", *out), 2, "its format is not read", "rdflib")
    check_error(run(tmp_path / "absent.nt", *out), 2, "absent.nt: there is no such file or folder")
    check_error(run(folder, folder, *out), 2, "several graphs")
    assert not (tmp_path / "out").exists()


def test_clutrr_is_known_by_its_content(tmp_path: Path) -> None:
    write(tmp_path / "in" / "train.jsonl", *(CHAIN | {"id": f"c{number}"} for number in range(40)))
    write(tmp_path / "in" / "test_2.jsonl", CHAIN)
    result = result_of(tmp_path / "in", "--val-fraction", 0.5, "--out", tmp_path / "out")
    assert result["origin"] == "clutrr" and result["splits"].keys() == {"train", "val", "test-02"}
    assert 5 < result["splits"]["val"]["examples"] < 35


def test_a_generated_sample_is_as_large_and_long_as_asked(tmp_path: Path) -> None:
    result = result_of(*SAMPLE, "--sample-seed", 5, "--sample-longest-hops", 2, "--out", tmp_path / "out")
    assert result["splits"]["train"]["examples"] == 60 and result["splits"]["test-doubt"]["examples"] == 30
    assert (result["generator"]["seed"], result["generator"]["longest_hops"]) == (5, 2)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["train"]["balance"]["hops"].keys() == {"1", "2"}


def test_a_recipe_is_the_same_as_its_options(tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text(
        'kind = "corpus"\n[prepare]\nsample = "synthetic-reasoning"\nsample_examples = 60\nsample_eval_examples = 30\n'
    )
    assert run("--recipe", recipe, "--out", tmp_path / "one").returncode == 0
    assert run(*SAMPLE, "--out", tmp_path / "two").returncode == 0
    assert folder_bytes(tmp_path / "one") == folder_bytes(tmp_path / "two")


def test_the_result_names_the_command_that_trains_on_it(tmp_path: Path) -> None:
    done = run(folder_of(tmp_path / "kg", NAMED), "--out", tmp_path / "out")
    assert f"strata train-graph --recipe graph/umls --set corpus.path={tmp_path / 'out'}" in done.stdout.decode()
    quiet = run(folder_of(tmp_path / "kg", NAMED), "--out", tmp_path / "quiet", "--quiet")
    assert quiet.stdout == b"" and b"warning" in quiet.stderr


@pytest.mark.parametrize("case", BAD_NAMED)
def test_a_line_that_is_no_triple_ends_with_5_by_file_and_line(tmp_path: Path, case: str) -> None:
    files, said = BAD_NAMED[case]
    folder = folder_of(tmp_path / "kg", NAMED | files)
    check_error(run(folder, "--format", "triples", "--out", tmp_path / "out"), 5, said.replace("\\", ""))
    assert [path.name for path in tmp_path.iterdir()] == ["kg"]


def test_every_bad_graph_is_named_by_file_line_and_id_or_left_out(tmp_path: Path) -> None:
    records = [KIN, *(changed(name, **values) for name, values in BAD.items() if name != "strange-relation")]
    path = write(tmp_path / "graphs.jsonl", *records)
    named = [f"{path}:{line} (id {record['id']})" for line, record in enumerate(records, 1)][1:]
    check_error(run(path, "--out", tmp_path / "out"), 5, *named)
    assert not (tmp_path / "out").exists()
    result = result_of(path, "--on-error", "skip", "--val-fraction", 0, "--out", tmp_path / "out")
    assert result["skipped"] == {"bad-example": len(named)} and result["examples"] == 1


def test_case_t17_graphs_of_any_shape_are_kept_and_bad_ones_named(tmp_path: Path) -> None:
    folder = SHARED / "cases" / "T17"
    if not folder.exists():
        pytest.skip("the shared acceptance cases are not here")
    result = result_of(folder / "graphs.jsonl", "--val-fraction", 0, "--out", tmp_path / "out")
    assert result["splits"]["train"] == {"graphs": 4, "nodes": 10, "edges": 3, "examples": 4, "answers": 0, "paths": 0}
    said = [
        "(id b0): edge 0 node 2 of 2",
        "(id b1): zero nodes",
        "(id b2): num_nodes is absent",
        "(id b3): edge 0 node -1, a negative index",
    ]
    check_error(run(folder / "bad_graphs.jsonl", "--out", tmp_path / "bad"), 5, *said)


def test_options_that_mean_nothing_for_the_input_are_refused(tmp_path: Path) -> None:
    kg, out = folder_of(tmp_path / "kg", NAMED), ["--out", tmp_path / "out"]
    text = tmp_path / "a.txt"
    text.write_text("text")
    check_error(run(kg, "--vocab-size", 300, *out), 2, "--vocab-size", "--columns")
    check_error(run(kg, "--val-fraction", 0.1, *out), 2, "--val-fraction")
    check_error(run(text, "--columns", "head,tail,relation", *out), 2, "--columns")
    check_error(run(kg, "--columns", "head,tail", *out), 2, "columns head tail")
    check_error(run(kg, text, *out), 2, "inputs of different kinds", f"triples: {kg}", f"text: {text}")
    check_error(run("-", "--format", "graphs", *out), 2, "from a pipe")
    check_error(run(tmp_path / "absent", "--format", "clutrr", *out), 2, "absent")
    check_error(run(*SAMPLE, "--sample-sentences", 5, *out), 2, "--sample-sentences")
    check_error(run(*SAMPLE, "--sample-longest-hops", 9, *out), 2, "--sample-longest-hops")
    assert not (tmp_path / "out").exists()


def test_a_place_that_is_taken_ends_with_6(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    check_error(run(folder_of(tmp_path / "kg", NAMED), "--out", tmp_path / "out"), 6, "out exists already")
    check_error(run(*SAMPLE, "--out", tmp_path / "out"), 6, "out exists already")
    assert (tmp_path / "out").read_text() == "mine"


def test_killed_in_the_middle_and_run_again_gives_the_same_bytes(tmp_path: Path) -> None:
    options = [*SAMPLE[:2], "--sample-examples", 900, "--sample-eval-examples", 30]
    assert run(*options, "--out", tmp_path / "undisturbed").returncode == 0
    command = [*COMMAND, *options, "--out", tmp_path / "out"]
    kill_when_written(command, tmp_path / ".out.partial", "graphs/train/header.json")
    assert not (tmp_path / "out").exists()
    assert run(*options, "--out", tmp_path / "out").returncode == 0
    assert folder_bytes(tmp_path / "out") == folder_bytes(tmp_path / "undisturbed")
