import gzip
import json

import pytest

from strata_core.errors import DataError, UsageError
from strata_core.suites.blimp import read_blimp
from strata_core.suites.pair_file import read_pair_file
from strata_core.suites.pairs import Pair
from strata_core.suites.zorro import read_zorro

ONE = {"UID": "u", "linguistics_term": "t", "sentence_good": "g", "sentence_bad": "b"}


def test_blimp_is_read_from_compressed_files(tmp_path):
    file = tmp_path / "blimp.jsonl.gz"
    file.write_bytes(gzip.compress((json.dumps(ONE) + "\n\n" + json.dumps({**ONE, "UID": "v"})).encode()))
    assert list(read_blimp(tmp_path)) == [Pair("t", "u", "g", "b", f"{file}:1"), Pair("t", "v", "g", "b", f"{file}:3")]


def test_of_zorros_lines_the_second_is_good(tmp_path):
    (tmp_path / "agreement-across.txt").write_text("the dog bark .\nthe dog barks .\n")
    (pair,) = read_zorro(tmp_path)
    assert (pair.phenomenon, pair.paradigm, pair.good, pair.bad) == (
        "agreement",
        "agreement-across",
        "the dog barks .",
        "the dog bark .",
    )


def test_a_file_of_ones_own_has_tabs_or_json(tmp_path):
    (tmp_path / "a.tsv").write_text("sentence_bad\tsentence_good\tphenomenon\nb\tg\tp\n")
    (tmp_path / "a.jsonl").write_text('{"sentence_good": "g", "sentence_bad": "b"}\n')
    assert [(p.phenomenon, p.good, p.bad) for p in read_pair_file(tmp_path / "a.tsv")] == [("p", "g", "b")]
    assert [(p.phenomenon, p.good, p.bad) for p in read_pair_file(tmp_path / "a.jsonl")] == [("all", "g", "b")]


@pytest.mark.parametrize(
    ("read", "name", "content", "said"),
    [
        (read_blimp, "a.jsonl", "[1]", "a.jsonl:1: a JSON object expected"),
        (read_blimp, "a.jsonl", json.dumps(ONE) + "\n{", "a.jsonl:2: not JSON"),
        (read_blimp, "a.jsonl", '{"UID": "u"}', "a.jsonl:1: no column 'linguistics_term'"),
        (read_blimp, "a.jsonl", json.dumps({**ONE, "sentence_bad": ""}), "sentence_bad is '', not a text"),
        (read_zorro, "a.txt", "x\ny\nz\n", "an odd number of lines"),
        (read_zorro, "a.txt", "x\n\n", "a.txt:2: an empty line"),
        (read_pair_file, "a.tsv", "good\tbad\nx\ty\n", "a.tsv:2: unknown column 'good'"),
        (read_pair_file, "a.tsv", "sentence_good\tsentence_bad\nx\n", "a.tsv:2: 1 cells"),
    ],
)
def test_faults_are_told_by_file_and_line(tmp_path, read, name, content, said):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=said):
        list(read(tmp_path / name))


@pytest.mark.parametrize("read", [read_blimp, read_zorro])
def test_a_place_without_files_is_a_usage_error(tmp_path, read):
    for place in (tmp_path, tmp_path / "absent"):
        with pytest.raises(UsageError):
            list(read(place))
