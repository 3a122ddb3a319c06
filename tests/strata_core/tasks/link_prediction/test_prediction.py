"""Missing links of a knowledge graph, against scores that are summed edge by edge."""

import gzip
import json
import shutil

import numpy as np
import pytest
import torch

from strata_core.corpus.graphs.corpus import open_graph_corpus
from strata_core.errors import DataError, UsageError
from strata_core.inference.evaluation import evaluate_trained
from strata_core.inference.prediction import predict_file
from strata_core.inference.trained_task import trained_model
from strata_core.tasks.link_prediction import query_file as link_input
from strata_core.tasks.link_prediction.prediction import RANKED_ENTITIES
from strata_core.tasks.link_prediction.task import LinkPredictionTask
from strata_core.tasks.registry import make_task
from strata_core.training.trained import find_trained
from tests.strata_core.tasks.link_prediction.link_runs import DENSE, SPARSE, ring_triples, train_on_ring, write_ring

SIZES = {"dense": DENSE, "sparse": SPARSE}
SMALL = 12


@pytest.fixture(scope="module", params=SIZES)
def ring(request, tmp_path_factory):
    """A run, and how many entities its graph has."""
    size = SIZES[request.param]
    return train_on_ring(tmp_path_factory.mktemp(request.param), size), size


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run over a graph so small that rankings have all of its entities but the known answers."""
    return train_on_ring(tmp_path_factory.mktemp("links"), SMALL)


def predict(run, tmp_path, records):
    file = tmp_path / "queries.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return [json.loads(line) for line in predict_file(run, str(file), device="cpu").splitlines()]


def slow_scores(run, names, size, query):
    """The score of each entity by name; each message is sent by itself, over each edge of the training triples."""
    model = trained_model(find_trained(run), torch.device("cpu"))
    number_of = {name: number for number, name in enumerate(names.entities)}
    relation = names.relations.index(query["relation"])
    edges = []
    for head, kind, tail in ring_triples(size)["train"]:
        forward = names.relations.index(kind)
        edges.append((number_of[head], forward, number_of[tail]))
        edges.append((number_of[tail], forward + len(names.relations), number_of[head]))
    asked = relation + (0 if "head" in query else len(names.relations))
    start = number_of[query.get("head", query.get("tail"))]
    with torch.no_grad():
        query_W, boundary_D = model._query(torch.tensor([asked]))
        states_ND = torch.zeros(len(number_of), len(boundary_D))
        states_ND[start] = boundary_D
        sums_ND = states_ND
        for layer, messages in enumerate(model.messages):
            states_ND = model.combine[layer - 1](sums_ND, states_ND) if layer else states_ND
            weights_RH = model._weights(messages, query_W)
            sums_ND = torch.zeros_like(states_ND)
            sums_ND[start] += boundary_D
            for source, kind, destination in edges:
                sums_ND[destination] += messages.apply_to(states_ND[[source]], weights_RH[[kind]])[0]
        scores = model.score(sums_ND, states_ND, query_W).tolist()
    return dict(zip(names.entities, scores, strict=True))


def known_answers(size, query):
    trained = ring_triples(size)["train"]
    if "head" in query:
        return {tail for head, relation, tail in trained if (head, relation) == (query["head"], query["relation"])}
    return {head for head, relation, tail in trained if (relation, tail) == (query["relation"], query["tail"])}


def test_rings_are_worked_on_in_the_layout_they_are_here_for(ring):
    run, size = ring
    task = make_task(find_trained(run).recipe(), open_graph_corpus(run.parent / "corpus"))
    assert isinstance(task, LinkPredictionTask)
    assert task.is_dense == (size == DENSE)


def test_rankings_are_a_full_sort_of_scores_summed_edge_by_edge_without_known_answers(ring, tmp_path):
    run, size = ring
    names = open_graph_corpus(run.parent / "corpus").names
    queries = [
        {"id": "three ways", "head": "e0", "relation": "skip"},
        {"id": "held out", "head": f"e{size - 1}", "relation": "skip"},
        {"id": "two ways, backwards", "relation": "next", "tail": "e9"},
        {"id": "of another relation", "head": "e0", "relation": "next"},
        {"id": "held out, backwards", "relation": "skip", "tail": "e1"},
        {"id": "the first again", "head": "e0", "relation": "skip"},
    ]
    told = predict(run, tmp_path, queries)
    assert [len(record["known"]) for record in told] == [3, 0, 2, 1, 0, 3]
    for query, record in zip(queries, told, strict=True):
        assert list(record) == ["id", "head" if "head" in query else "tail", "relation", "known", "ranking"]
        assert {key: record[key] for key in query} == query
        known, scores = known_answers(size, query), slow_scores(run, names, size, query)
        assert sorted(record["known"]) == sorted(known)
        ranked = [entry["entity"] for entry in record["ranking"]]
        assert len(set(ranked)) == RANKED_ENTITIES
        assert not known & set(ranked)
        # Entities that score alike to rounding may change places: each has its own score, and these are the highest.
        found = [entry["score"] for entry in record["ranking"]]
        highest = sorted((score for name, score in scores.items() if name not in known), reverse=True)
        assert found == sorted(found, reverse=True)
        assert found == pytest.approx([scores[name] for name in ranked], abs=1e-4)
        assert found == pytest.approx(highest[:RANKED_ENTITIES], abs=1e-4)
    assert told[5] == told[0] | {"id": "the first again"}


def test_held_out_triples_are_ranked_as_an_evaluation_ranks_them(ring, tmp_path):
    """Each held-out query has one answer, so that an evaluation leaves out what training knows and nothing else."""
    run, size = ring
    queries, answers, places = [], [], []
    for head, relation, tail in ring_triples(size)["test"]:
        queries += [{"head": head, "relation": relation}, {"relation": relation, "tail": tail}]
        answers += [tail, head]
    for record, answer in zip(predict(run, tmp_path, queries), answers, strict=True):
        ranked = [entry["entity"] for entry in record["ranking"]]
        places.append(ranked.index(answer) + 1 if answer in ranked else np.inf)
    measured = evaluate_trained(run, split="test", device="cpu").metrics
    for most in (1, 3, 10):
        assert measured[f"hits_at_{most}"] == pytest.approx(np.mean(np.array(places) <= most))
    assert measured["hits_at_10"] > 0


def test_of_entities_that_score_alike_the_first_of_the_corpus_come_first(tmp_path):
    folder = tmp_path / "strangers"
    run = train_on_ring(folder, SPARSE, test=[("stranger", "skip", "e3")])
    (told,) = predict(run, tmp_path, [{"head": "stranger", "relation": "skip"}])
    names = open_graph_corpus(folder / "corpus").names.entities
    *others, last = [entry for entry in told["ranking"] if entry["entity"] != "stranger"]
    assert told["known"] == []
    assert {entry["score"] for entry in others} == {last["score"]}
    assert [entry["entity"] for entry in (*others, last)] == list(names[: len(others) + 1])


def test_what_a_query_gets_does_not_hang_on_the_others(run, tmp_path):
    queries = [{"head": f"e{i % SMALL}", "relation": ("next", "skip")[i % 2]} for i in range(13)]
    told = predict(run, tmp_path, queries)
    assert [record["id"] for record in told] == list(range(1, 14))
    for number in (0, 7, 12):
        (alone,) = predict(run, tmp_path, [queries[number]])
        scores = {entry["entity"]: entry["score"] for entry in told[number]["ranking"]}
        assert {entry["entity"]: entry["score"] for entry in alone["ranking"]} == pytest.approx(scores, abs=1e-4)
        assert alone["known"] == told[number]["known"]


def test_a_small_graph_has_shorter_rankings(run, tmp_path):
    (told,) = predict(run, tmp_path, [{"head": "e0", "relation": "skip"}])
    assert len(told["known"]) == 3
    assert len(told["ranking"]) == SMALL - 3


def test_lines_are_numbered_and_files_may_be_compressed(run, tmp_path):
    lines = b'\xef\xbb\xbf\n{"head": "e1", "relation": "next", "tail": null}\n\n{"relation": "next", "tail": "e1"}'
    (tmp_path / "queries.jsonl.gz").write_bytes(gzip.compress(lines))
    told = predict_file(run, str(tmp_path / "queries.jsonl.gz"), device="cpu").splitlines()
    assert [json.loads(line)["id"] for line in told] == [2, 4]


def test_faults_are_listed_together_by_line_with_the_nearest_name(run, tmp_path):
    file = tmp_path / "queries.jsonl"
    faulty = {
        '{"id": "a", "head": "e1", "relation": "next"}': None,
        '{"id": "b", "head": "e10x", "relation": "skp"}': (
            "(id b): unknown head 'e10x', did you mean 'e10'?; unknown relation 'skp', did you mean 'skip'?"
        ),
        '{"head": "e1", "relation": "next", "tail": "e2"}': ": head and tail are both given",
        '{"id": "d", "relation": "nothing like it"}': (
            "(id d): neither head nor tail is given; unknown relation 'nothing like it'"
        ),
        '{"id": 5, "head": 5}': ": id is 5, not a string; head is 5, not a name; relation is absent",
        '{"id": "a", "head": "e1", "relation": "next"}\n': "(id a): the id of line 1 again",
        "[1]": ": not a JSON object",
    }
    file.write_text("".join(line.strip() + "\n" for line in faulty))
    with pytest.raises(DataError) as caught:
        predict_file(run, str(file), device="cpu")
    assert caught.value.problems == tuple(
        f"{file}:{number}{' ' if fault[0] == '(' else ''}{fault}"
        for number, fault in enumerate(faulty.values(), 1)
        if fault is not None
    )
    assert caught.value.message == "6 examples cannot be used"
    assert caught.value.hint == "correct these lines, or take them out of the file"


def test_many_unknown_names_are_not_all_compared(run, tmp_path, monkeypatch):
    monkeypatch.setattr(link_input, "_MOST_COMPARED_NAMES", 2 * SMALL)
    with pytest.raises(DataError) as caught:
        predict(run, tmp_path, [{"head": f"e{i}x", "relation": "next"} for i in range(4)])
    assert ["did you mean" in problem for problem in caught.value.problems] == [True, True, False, False]


def test_a_file_without_queries_is_refused(run, tmp_path):
    with pytest.raises(DataError, match="there is no query in it") as refused:
        predict(run, tmp_path, [])
    assert '"head"' in refused.value.hint


def test_other_formats_are_refused(run, tmp_path):
    (tmp_path / "x.txt").write_text("the dog\n")
    with pytest.raises(UsageError) as caught:
        predict_file(run, str(tmp_path / "x.txt"), format="text", device="cpu")
    assert caught.value.hint == "name a file of queries (.jsonl); --format jsonl where its name does not tell"


def test_a_checkpoint_tells_in_its_run_what_the_run_tells_and_nothing_outside(run, tmp_path):
    checkpoint = (run / "checkpoints" / "latest").resolve()
    query = {"id": "q", "head": "e0", "relation": "skip"}
    assert predict(checkpoint, tmp_path, [query]) == predict(run, tmp_path, [query])
    shutil.copytree(checkpoint, tmp_path / "lone")
    with pytest.raises(UsageError, match="not in its run") as caught:
        predict(tmp_path / "lone", tmp_path, [query])
    assert "name the run" in caught.value.hint


def test_a_graph_that_changed_since_training_is_refused(tmp_path):
    run = train_on_ring(tmp_path / "ring", SMALL)
    shutil.rmtree(tmp_path / "ring" / "corpus")
    shutil.rmtree(tmp_path / "ring" / "source")
    write_ring(tmp_path / "ring", SMALL + 1)
    with pytest.raises(UsageError, match="was trained on"):
        predict(run, tmp_path, [{"head": "e0", "relation": "skip"}])


def test_scores_that_are_not_numbers_are_refused(run, tmp_path, monkeypatch):
    monkeypatch.setattr(
        LinkPredictionTask, "score_entities", lambda self, model, heads, *_: torch.full((len(heads), SMALL), torch.nan)
    )
    with pytest.raises(DataError, match="not finite"):
        predict(run, tmp_path, [{"head": "e0", "relation": "skip"}])
