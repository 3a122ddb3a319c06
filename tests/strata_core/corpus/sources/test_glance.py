"""What files look like at their beginning."""

from strata_core.corpus.sources.files import find_files
from strata_core.corpus.sources.glance import Glance, glance
from tests.strata_core.corpus.helpers import write_compressed


def look(path) -> Glance:
    return glance(find_files([path])[0][0])


def test_three_columns_in_every_line_are_triples(tmp_path) -> None:
    path = write_compressed(tmp_path / "a.txt", "\ufeffa\tb\tc\r\n\n \nd\te\tf")
    assert look(path) == Glance(2, 2) and look(path).is_triples


def test_the_first_line_that_is_none_is_told(tmp_path) -> None:
    path = write_compressed(tmp_path / "a.txt", "a\tb\tc\n\na\tb\na\t\tc\na\tb\tc\n")
    assert look(path) == Glance(4, 2, "line 3 has 2 columns") and not look(path).is_mostly_triples
    assert look(write_compressed(tmp_path / "b.txt", "a\tb\t\n")).odd == "line 1 has an empty column"
    assert look(write_compressed(tmp_path / "c.txt", "a")).odd == "line 1 has 1 column"


def test_a_hundred_lines_are_looked_at_also_of_compressed_files(tmp_path) -> None:
    path = write_compressed(tmp_path / "a.txt.gz", "a\tb\tc\n" * 100 + "text\n")
    assert look(path) == Glance(100, 100)


def test_a_line_without_end_is_not_read_whole(tmp_path) -> None:
    assert look(write_compressed(tmp_path / "a.txt", "a\tb\t" + "c" * (1 << 21))) == Glance(1, 1)
    cut = write_compressed(tmp_path / "b.txt", "a\tb\tc\n" + "d" * (1 << 21))
    assert look(cut) == Glance(1, 1), "of a line that is cut nothing is known"


def test_nothing_looks_blank(tmp_path) -> None:
    assert look(write_compressed(tmp_path / "a.txt", " \n\n")).is_blank
    assert not look(tmp_path / "a.txt").is_triples
