"""Labels between two nodes of new graphs: relations are the numbers modulo 3, composed by adding them."""

import itertools
import json
import shutil

import pytest

from strata_core.errors import DataError
from strata_core.inference.evaluation import evaluate_trained
from strata_core.inference.prediction import predict_file
from strata_core.launch.starting import train
from strata_core.recipes import load_recipe
from tests.strata_core.tasks.relation_prediction.test_task import NAMES, chain, write_corpus

TESTS = [chain(f"t{number}", numbers) for number, numbers in enumerate(itertools.product(range(3), repeat=4))]
RECIPE = """kind = "graph"
[model]
d_model = 16
longest_path = 6
[evaluation]
bracketings = 3
[batch]
batch_size = 16
num_workers = 0
[run]
max_steps = 10
[optimizer]
lr = 0.01
warmup_steps = 2
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    examples = [chain(f"{n}-{i}", i) for n in (2, 3) for i in itertools.product(range(3), repeat=n)]
    corpus = write_corpus(folder, {"train": examples, "test_4": TESTS})
    (folder / "recipe.toml").write_text(f"{RECIPE}[corpus]\npath = {str(corpus.path)!r}\n")
    train(load_recipe(folder / "recipe.toml", "graph"), folder / "run", device="cpu")
    return folder / "run"


def query(record, **changes):
    start, end = record["query"]
    asked = {"mode": "relation", "branches": [{"start": start, "steps": []}], "end": end}
    return {"id": record["id"], "num_nodes": end + 1, "edges": record["edges"], "query": asked} | changes


def predict(run, tmp_path, records):
    file = tmp_path / "queries.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return [json.loads(line) for line in predict_file(run, str(file), device="cpu").splitlines()]


def test_labels_are_right_as_often_as_an_evaluation_says(run, tmp_path):
    told = predict(run, tmp_path, [query(record) for record in TESTS])
    right = sum(found["label"] == record["target"] for found, record in zip(told, TESTS, strict=True))
    accuracy = evaluate_trained(run, split="test-04", device="cpu").metrics["accuracy"]
    assert right / len(TESTS) == pytest.approx(accuracy)
    for found, record in zip(told, TESTS, strict=True):
        assert found["id"] == record["id"]
        assert found["paths"] == [[relation for _, relation, _ in record["edges"]]]
        assert sum(entry["probability"] for entry in found["ranking"]) == pytest.approx(1, abs=1e-5)
        assert {entry["label"] for entry in found["ranking"]} == set(NAMES)
        assert found["label"] == found["ranking"][0]["label"]


def test_two_nodes_without_a_path_get_a_guess_that_shows_no_path(run, tmp_path):
    (found,) = predict(run, tmp_path, [query(TESTS[0], edges=[])])
    assert found["paths"] == []
    assert found["label"] in NAMES


def test_a_checkpoint_outside_its_run_tells_what_it_tells_inside(run, tmp_path):
    beyond = chain("beyond", (1, 2, 0, 1, 2, 1, 1))
    shutil.copytree((run / "checkpoints" / "latest").resolve(), tmp_path / "lone")
    queries = [query(record) for record in (*TESTS, beyond)]
    told = predict(tmp_path / "lone", tmp_path, queries)
    assert told == predict(run, tmp_path, queries)
    assert told[-1]["paths"] == []


def test_other_questions_are_refused_by_line_and_id(run, tmp_path):
    other = query(TESTS[1], query={"mode": "count", "branches": [{"start": 0, "steps": ["one"]}]})
    with pytest.raises(DataError) as caught:
        predict(run, tmp_path, [query(TESTS[0]), other])
    assert caught.value.problems == (
        f"{tmp_path / 'queries.jsonl'}:2 (id t1): asks for count, which this model cannot tell: it answers relation",
    )
