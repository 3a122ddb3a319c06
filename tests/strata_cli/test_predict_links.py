"""`strata predict` of a knowledge graph's model as a shell sees it."""

import json

import pytest

from strata_cli import main
from tests.strata_core.tasks.link_prediction.link_runs import DENSE, train_on_ring


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return str(train_on_ring(tmp_path_factory.mktemp("links"), DENSE))


def test_answers_are_json_lines_from_a_file_and_from_standard_input(run, strata, tmp_path, capsys):
    (tmp_path / "x.jsonl").write_text(
        '{"id": "q1", "head": "e0", "relation": "next"}\n{"relation": "next", "tail": "e0"}\n'
    )
    assert main.run(["predict", run, str(tmp_path / "x.jsonl"), "--device", "cpu"]) == 0
    captured = capsys.readouterr()
    first, second = [json.loads(line) for line in captured.out.splitlines()]
    assert (first["id"], first["head"], first["relation"], first["known"]) == ("q1", "e0", "next", ["e1"])
    assert (second["id"], second["tail"], second["known"]) == (2, "e0", [f"e{DENSE - 1}"])
    assert len(first["ranking"]) == len(second["ranking"]) == 10
    assert "answering: done, 2 queries" in captured.err
    with open(tmp_path / "x.jsonl", "rb") as opened:
        piped = strata("predict", run, "-", "--device", "cpu", "--quiet", stdin=opened)
    assert (piped.returncode, piped.stderr) == (0, b"")
    assert [json.loads(line) for line in piped.stdout.splitlines()] == [first, second]


def test_unknown_names_are_bad_data_and_leave_no_file(run, tmp_path, capsys):
    (tmp_path / "x.jsonl").write_text('{"head": "e0", "relation": "nxt"}\n{"relation": "skip", "tail": "f3"}\n')
    out = tmp_path / "out.jsonl"
    assert main.run(["predict", run, str(tmp_path / "x.jsonl"), "--out", str(out), "--device", "cpu"]) == 5
    captured = capsys.readouterr()
    assert f"{tmp_path / 'x.jsonl'}:1: unknown relation 'nxt', did you mean 'next'?" in captured.err
    assert f"{tmp_path / 'x.jsonl'}:2: unknown tail 'f3'" in captured.err
    assert captured.out == ""
    assert not out.exists()
