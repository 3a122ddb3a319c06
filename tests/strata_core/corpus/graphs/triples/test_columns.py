"""Files of columns under headers and without, with whatever names people have."""

from __future__ import annotations

import pytest

from strata_core.corpus.graphs.triples.columns import header_places
from strata_core.corpus.graphs.triples.reading import read_triples
from strata_core.errors import DataError, UsageError
from tests.strata_core.corpus.helpers import write_compressed

ROWS = "ann,knows,bob\nbob,knows,cid\nann,likes,cid\n"
THREE = [("ann", "knows", "bob"), ("bob", "knows", "cid"), ("ann", "likes", "cid")]


def named(triples, split="train") -> list[tuple[str, str, str]]:
    """The triples of a split by name."""
    rows = triples.splits[split].tolist()
    return [(triples.entities[h], triples.relations[r], triples.entities[t]) for h, r, t in rows]


def read(folder, name, text, **options):
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_triples([folder / name], **options)


@pytest.mark.parametrize(
    ("cells", "places"),
    [
        (["head", "relation", "tail"], (0, 1, 2)),
        (["Subject", "PREDICATE", "object"], (0, 1, 2)),
        (["source", "target", "type"], (0, 2, 1)),
        (["o", "s", "p"], (1, 2, 0)),
        (["H", "R", "T"], (0, 1, 2)),
        (["id", "head_id", "relation_type", "tail id", "weight"], (1, 2, 3)),
        (["from", "edge", "to"], (0, 1, 2)),
        (["ann", "knows", "bob"], None),
        (["head", "tail"], None),
        (["head", "relation", "tail", "object"], None),
    ],
)
def test_a_header_names_head_relation_and_tail_in_any_case(cells, places) -> None:
    assert header_places(cells) == places


@pytest.mark.parametrize("name", ["train.csv", "train.tsv", "t.csv.gz", "t.tsv.zst"])
@pytest.mark.parametrize("header", ["", "head,relation,tail\n", "Source,Type,Target\n", "von,kante,nach\n"])
def test_a_header_is_no_triple(tmp_path, name, header) -> None:
    text = header + ROWS
    path = write_compressed(tmp_path / name, text.replace(",", "\t") if "tsv" in name else text)
    triples = read_triples([path])
    assert named(triples) == THREE and triples.entities == ("ann", "bob", "cid")
    assert len(triples.notices) == (1 if header else 0)


def test_columns_go_by_a_header_that_names_them_and_the_rest_is_not_read(tmp_path) -> None:
    triples = read(tmp_path, "kg.csv", "id,Target,Source,type,weight\n1,bob,ann,knows,.5\n2,cid,bob,knows,\n")
    assert named(triples) == THREE[:2]
    (notice,) = triples.notices
    assert "head is 'Source', relation is 'type', tail is 'Target'; not read: id, weight" in notice


def test_a_header_of_names_that_are_not_known_leaves_the_columns_where_they_are(tmp_path) -> None:
    for header in ("von,kante,nach", "head,kante,tail"):
        triples = read(tmp_path, "kg.csv", f"{header}\n{ROWS}")
        assert named(triples) == THREE
        assert triples.notices[0].endswith("is a header; columns are read as head, relation, tail")


def test_the_same_header_in_several_files_is_told_once(tmp_path) -> None:
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.csv").write_text("von,kante,nach\n" + ROWS)
    triples = read_triples(tmp_path)
    assert named(triples, "test") == THREE and triples.entities == ("ann", "bob", "cid")
    (notice,) = triples.notices
    assert notice.startswith(", ".join(str(tmp_path / f"{split}.csv") for split in ("train", "valid", "test")))


def test_a_first_triple_on_its_own_is_no_header_where_others_are_on_their_own_too(tmp_path) -> None:
    triples = read(tmp_path, "kg.csv", "a,b,c\nann,knows,bob\nbob,knows,cid\nx,y,z\n")
    assert named(triples)[0] == ("a", "b", "c") and triples.notices == ()


def test_a_header_in_a_text_file_is_a_triple_and_told(tmp_path) -> None:
    triples = read(tmp_path, "train.txt", "head\trelation\ttail\nann\tknows\tbob\n")
    assert named(triples)[0] == ("head", "relation", "tail")
    assert "looks like names of columns" in triples.notices[0]


def test_an_order_that_is_said_wins_over_the_header(tmp_path) -> None:
    triples = read(tmp_path, "kg.csv", "head,relation,tail\nbob,knows,ann\n", columns=("tail", "relation", "head"))
    assert named(triples) == [("ann", "knows", "bob")]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_commas_semicolons_or_tabs_part_the_columns_of_a_csv_file(tmp_path, delimiter) -> None:
    assert named(read(tmp_path, "kg.csv", ROWS.replace(",", delimiter))) == THREE


ODD = ["New  York", "nan", "None", "NULL", "", "it's", 'say "hi"', "a;b", "1e5", "naïve 日本", "#1", "0"]


def test_every_name_is_a_name_in_tab_separated_files(tmp_path) -> None:
    odd = [name or "N/A" for name in ODD] + ['"quoted"', "a,b", " led by a space"]
    rows = [(name, "is like", odd[0]) for name in odd]
    for file in ("train.txt", "train.tsv"):
        assert named(read(tmp_path, file, "".join("\t".join(row) + "\n" for row in rows))) == rows


def test_every_name_is_a_name_in_comma_separated_files(tmp_path) -> None:
    import csv
    import io

    odd = [name or "N/A" for name in ODD] + ["a,b", 'a, "b"', '"quoted"']
    rows = [(name, "is like", odd[0]) for name in odd]
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    assert named(read(tmp_path, "train.csv", text.getvalue())) == rows


def test_spaces_behind_a_comma_belong_to_no_name(tmp_path) -> None:
    assert named(read(tmp_path, "t.csv", 'ann, knows, bob\nbob, knows, "cid, jr"\n'))[1] == ("bob", "knows", "cid, jr")


def test_byte_order_mark_windows_ends_and_blank_lines_are_no_part_of_names(tmp_path) -> None:
    text = b"\xef\xbb\xbfhead,relation,tail\r\n\r\nann,knows,bob\r\n\n"
    assert named(read(tmp_path, "t.csv", text)) == THREE[:1]
    assert named(read(tmp_path, "t.txt", b"\xef\xbb\xbfann\tknows\tbob\r\n \r\n")) == THREE[:1]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("t.csv", "ann,knows\n", "t.csv:1: 2 columns where a triple has 3 names"),
        ("t.csv", "ann,knows,bob\n\nann,,bob\n", "t.csv:3: an empty column"),
        ("t.csv", 'ann,knows,bob\nann,"knows,bob\n', "t.csv:2: a quote that is not closed in its line"),
        ("t.csv", 'ann,"kn"ows,bob\nann,knows,bob\n', "t.csv:1: "),
        ("t.csv", "id,head,relation,tail\n1,ann,knows\n", "t.csv:2: 3 columns where the header has 4"),
        ("t.csv", "1,ann,knows,bob\n", "t.csv:1: 4 columns where a triple has 3 names"),
        ("t.tsv", "ann\tknows\tbob\nann knows bob\n", "t.tsv:2: 1 columns where a triple has 3 names"),
        ("t.tsv", b"ann\tknows\tb\xff\n", "t.tsv:1: byte 0xff is not UTF-8"),
        ("t.tsv", "ann\tknows\tbob\n".encode("utf-16"), "t.tsv: UTF-16, not UTF-8"),
        ("t.nt", "<a> <b> <c> .\n<a> <b>\n", "t.nt:2: the object is not"),
        ("t.nt", "# nothing\n", "no triples to train on"),
        ("t.tsv.gz", "no gzip", "t.tsv.gz: the content is not gzip"),
    ],
)
def test_a_bad_line_is_named_by_file_and_line(tmp_path, name, text, said) -> None:
    with pytest.raises(DataError) as refused:
        read(tmp_path, name, text)
    assert said in refused.value.message


def test_an_order_of_columns_means_nothing_for_n_triples(tmp_path) -> None:
    with pytest.raises(UsageError, match="N-Triples"):
        read(tmp_path, "t.nt", "<a> <b> <c> .\n", columns=("head", "relation", "tail"))
