import tomllib

import pytest

from strata_core.recipes.key_lines import find_key_lines

EVERY_FORM = '''\
# a comment = [with] {marks}
plain = 1 # trailing = comment
dotted."quo.ted".'raw' = "a # no comment"
'"' = 'single'

[table]
number = 1_000
date = 1979-05-27 07:32:00
text = """one = 1
two "quoted" \\""" still
"""
raw = \'\'\'
[not a table]
it''s
\'\'\'
list = [
  1,
  [2, 3],  # nested
  { x = 1, "y z" = { deep = "}" } },
]

[ table . "sub table" ]
key = true
[[array]]
n = 1
[array.inner]
k = 2
[[array]]
[[array.more]]
z = 1
'''


def paths_of(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from paths_of(inner, (*path, key))


def test_finds_every_key_that_the_toml_parser_finds_and_no_other():
    assert set(find_key_lines(EVERY_FORM)) == set(paths_of(tomllib.loads(EVERY_FORM)))


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("plain",), 2),
        (("dotted", "quo.ted", "raw"), 3),
        (('"',), 4),
        (("table",), 6),
        (("table", "date"), 8),
        (("table", "raw"), 12),
        (("table", "list"), 16),
        (("table", "list", 0), 17),
        (("table", "list", 1, 1), 18),
        (("table", "list", 2, "y z", "deep"), 19),
        (("table", "sub table", "key"), 23),
        (("array", 0, "n"), 25),
        (("array", 0, "inner", "k"), 27),
        (("array", 1), 28),
        (("array", 1, "more", 0, "z"), 30),
    ],
)
def test_names_the_line_a_key_is_written_on(path, line):
    assert find_key_lines(EVERY_FORM)[path] == line


def test_a_table_opened_by_a_dotted_header_counts_from_that_header():
    assert find_key_lines("\n[a.b]\nc = 1\n") == {("a",): 2, ("a", "b"): 2, ("a", "b", "c"): 3}


def test_escapes_in_quoted_keys_are_read_as_toml_reads_them():
    assert ("A\t",) in find_key_lines('"\\u0041\\t" = 1\n')
