"""Answers to new queries by a graph reasoner."""

import json

import pytest

from strata_core.corpus.graphs.corpus import open_graph_corpus
from strata_core.corpus.graphs.example import Mode
from strata_core.errors import DataError, UsageError
from strata_core.inference.prediction import predict_file

MODES = {mode: mode.name.lower() for mode in Mode}


def as_record(example, names, *, labels=False):
    n_relations = len(names.relations)

    def step(number):
        return names.relations[number] if number < n_relations else names.relations[number - n_relations] + "^-1"

    record = {
        "id": example.id,
        "num_nodes": len(example.node_types),
        "node_types": [names.node_types[number] for number in example.node_types],
        "edges": [[source, names.relations[relation], target] for source, relation, target in example.edges],
        "query": {
            "mode": MODES[example.query.mode],
            "branches": [
                {"start": branch.start, "steps": [step(number) for number in branch.steps]}
                for branch in example.query.branches
            ],
        },
    }
    if labels:
        record |= {"status": example.status.name.lower(), "answers": list(example.answers), "number": example.number}
    return record


@pytest.fixture(scope="module")
def examples(graph_run):
    corpus = open_graph_corpus(graph_run.parent / "corpus")
    reader = corpus.split("val")
    return [reader.example(number) for number in range(len(reader))], corpus.names


def predict(run, tmp_path, records):
    file = tmp_path / "queries.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return [json.loads(line) for line in predict_file(run, str(file), device="cpu").splitlines()]


def test_every_query_gets_a_record_in_order_with_probabilities_that_sum_to_one(graph_run, examples, tmp_path):
    asked, names = examples
    told = predict(graph_run, tmp_path, [as_record(example, names) for example in asked])
    assert [record["id"] for record in told] == [example.id for example in asked]
    for example, record in zip(asked, told, strict=True):
        chances = record["status_probabilities"]
        assert sum(chances.values()) == pytest.approx(1, abs=1e-5)
        assert record["status"] == max(chances, key=chances.get)
        assert 0 <= record["confidence"] <= 1
        if example.query.mode == Mode.ENTITY:
            likelihood = [entry["probability"] for entry in record["ranking"]]
            assert likelihood == sorted(likelihood, reverse=True)
            assert len(likelihood) == min(10, len(example.node_types))
            wanted = [entry["node"] for entry in record["ranking"] if entry["probability"] >= likelihood[0] / 2]
            assert record["answers"][:10] == (wanted if record["status"] == "supported" else [])
        else:
            assert (record["number"] is None) == (record["status"] != "supported")


def test_selected_paths_are_walks_of_the_graph_from_a_start(graph_run, examples, tmp_path):
    asked, names = examples
    told = predict(graph_run, tmp_path, [as_record(example, names) for example in asked])
    assert any(record["paths"] for record in told)
    for example, record in zip(asked, told, strict=True):
        edges = {(source, names.relations[relation], target) for source, relation, target in example.edges}
        for path in record["paths"]:
            branch = example.query.branches[path["branch"]]
            assert len(path["edges"]) == len(branch.steps)
            assert all(tuple(edge) in edges for edge in path["edges"])
            nodes = [branch.start, *(edge[2] for edge in path["edges"])]
            assert [edge[0] for edge in path["edges"]] == nodes[:-1]
            assert 0.5 < path["probability"] <= 1


def test_answers_do_not_hang_on_labels_or_on_what_else_is_asked(graph_run, examples, tmp_path):
    asked, names = examples
    plain = predict(graph_run, tmp_path, [as_record(example, names) for example in asked])
    labelled = predict(graph_run, tmp_path, [as_record(example, names, labels=True) for example in asked])
    assert labelled == plain
    for number in (0, 7, 29):
        (alone,) = predict(graph_run, tmp_path, [as_record(asked[number], names)])
        assert alone["status_probabilities"] == pytest.approx(plain[number]["status_probabilities"], abs=1e-4)
        # Paths that score alike to rounding may change places, and the search may keep either of them.
        scores = [path["probability"] for path in plain[number]["paths"]]
        assert [path["probability"] for path in alone["paths"]] == pytest.approx(scores, abs=1e-4)


def test_graphs_that_cannot_be_used_are_refused_by_line_and_id(graph_run, examples, tmp_path):
    good = as_record(examples[0][0], examples[1])
    bad = [good, {**good, "id": "b", "edges": [[0, "unheard of", 1]]}, {**good, "id": "c", "query": None}]
    with pytest.raises(DataError) as caught:
        predict(graph_run, tmp_path, bad)
    assert caught.value.problems == (
        f"{tmp_path / 'queries.jsonl'}:2 (id b): unknown relation 'unheard of'",
        f"{tmp_path / 'queries.jsonl'}:3 (id c): query is absent",
    )


def test_queries_of_kinds_that_training_had_none_of_are_refused_by_line_and_id(graph_run, examples, tmp_path):
    good = as_record(examples[0][0], examples[1])
    backwards = {"branches": [{"start": 0, "steps": [examples[1].relations[0] + "^-1"]}]}
    label = {"mode": "relation", "branches": [{"start": 0, "steps": []}], "end": 1}
    with pytest.raises(DataError) as caught:
        asked = [good, {**good, "id": "b", "query": backwards}, {**good, "id": "c", "query": label}]
        predict(graph_run, tmp_path, asked)
    file = tmp_path / "queries.jsonl"
    modes = "entity, count, largest, smallest"
    assert caught.value.problems == (
        f"{file}:2 (id b): walks a relation backwards (^-1), which no training query did",
        f"{file}:3 (id c): asks for relation, which this model cannot tell: it answers {modes}",
    )
    assert caught.value.hint == "correct these lines, or take them out of the file"


@pytest.mark.parametrize(("name", "format"), [("x.txt", "text"), ("x.txt", "auto"), ("x.conllu.gz", "auto")])
def test_sentences_are_nothing_for_a_graph_reasoner(graph_run, tmp_path, name, format):
    (tmp_path / name).write_text("the dog\n")
    with pytest.raises(UsageError, match="this model answers queries in JSON Lines") as refused:
        predict_file(graph_run, str(tmp_path / name), format=format, device="cpu")
    assert refused.value.hint == "name a file of queries (.jsonl); --format jsonl where its name does not tell"


@pytest.mark.parametrize(("name", "format"), [("x.txt", "jsonl"), ("x.jsonl", "auto"), ("x.ndjson.zst", "auto")])
def test_queries_are_nothing_for_a_model_of_sentences(structured_run, tmp_path, name, format):
    (tmp_path / name).write_text("the dog\n")
    with pytest.raises(UsageError, match="this model annotates sentences: text, tokens or CoNLL-U") as refused:
        predict_file(structured_run, str(tmp_path / name), format=format, device="cpu")
    assert refused.value.hint == (
        "name a file of sentences (.txt, .tok, .conllu); --format text, tokens or conllu where its name does not tell"
    )


def test_text_that_is_called_queries_is_refused_by_line(graph_run, tmp_path):
    (tmp_path / "x.txt").write_text("the dog\n")
    with pytest.raises(DataError) as refused:
        predict_file(graph_run, str(tmp_path / "x.txt"), format="jsonl", device="cpu")
    assert refused.value.problems == (f"{tmp_path / 'x.txt'}:1: not JSON from column 1 on: 'the dog'",)


def test_a_file_without_queries_is_refused_with_what_one_looks_like(graph_run, tmp_path):
    with pytest.raises(DataError, match="there is no query in it") as refused:
        predict(graph_run, tmp_path, [])
    assert '"num_nodes"' in refused.value.hint


def test_a_file_that_is_not_there_is_refused_with_a_remedy(graph_run, tmp_path):
    with pytest.raises(UsageError, match="there is no such file") as refused:
        predict_file(graph_run, str(tmp_path / "absent.jsonl"), device="cpu")
    assert refused.value.hint == "check the path; - is standard input"
