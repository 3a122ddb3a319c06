"""Lines of N-Triples as names; the grammar is that of https://www.w3.org/TR/n-triples/."""

from __future__ import annotations

import pytest

from strata_core.corpus.graphs.triples.n_triples import NotATriple, is_blank_node, is_literal, parse_line

A, P, B = "http://e.org/a", "http://e.org/p", "http://e.org/b"
XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (f"<{A}> <{P}> <{B}> .", (A, P, B)),
        (f"<{A}><{P}><{B}>.", (A, P, B)),
        (f"  <{A}>\t<{P}> <{B}> . # a comment", (A, P, B)),
        (f"_:x <{P}> _:y.z .", ("_:x", P, "_:y.z")),
        (f"_:x <{P}> _:y.", ("_:x", P, "_:y")),
        (f'<{A}> <{P}> "plain" .', (A, P, '"plain"')),
        (f'<{A}> <{P}> "" .', (A, P, '""')),
        (f'<{A}> <{P}> "Löwe"@DE-at .', (A, P, '"Löwe"@de-at')),
        (f'<{A}> <{P}> "3"^^<{XSD}integer> .', (A, P, f'"3"^^<{XSD}integer>')),
        (f'<{A}> <{P}> "s"^^<{XSD}string> .', (A, P, '"s"')),
        (f'<{A}> <{P}> "a . <b> # c" .', (A, P, '"a . <b> # c"')),
        (f'<{A}> <{P}> "caf\\u00E9 \\U0001F40E" .', (A, P, '"café 🐎"')),
        (f"<{A}\\u00e9> <{P}> <{B}> .", (A + "é", P, B)),
        (f'<{A}> <{P}> "a \\"b\\" \\\\ \\n\\t\'\\\'" .', (A, P, '"a \\"b\\" \\\\ \\n\\t\'\'"')),
        (f'<{A}> <{P}> "<{B}>" .', (A, P, f'"<{B}>"')),
        ("# <a> <b> <c> .", None),
        ("\t# x", None),
    ],
)
def test_a_line_is_three_names_or_a_comment(line, names) -> None:
    assert parse_line(line) == names


def test_one_literal_has_one_name_however_it_is_escaped() -> None:
    ways = ['"é\\t"', '"\\u00e9\\u0009"', '"\\U000000E9\t"', f'"é\\t"^^<{XSD}string>']
    assert len({parse_line(f"<{A}> <{P}> {literal} .") for literal in ways}) == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"<{A}> <{P}> <{B}>", "no full stop behind the object"),
        (f"<{A}> <{P}> <{B}> <http://e.org/g> .", "no full stop behind the object, but '<http://e.org/g> .'"),
        (f"<{A}> <{P}> <{B}> . <{A}>", "more behind the full stop"),
        (f'"x" <{P}> <{B}> .', "the subject is not an IRI"),
        (f"<{A}> _:p <{B}> .", "the predicate is not an IRI"),
        (f"<{A}> <{P}>", "the object is not an IRI in <>, a blank node or a literal: the line ends"),
        (f'<{A}> <{P}> "open .', "the object is not"),
        (f'<{A}> <{P}> "a\\x" .', "the object is not"),
        (f"<{A} b> <{P}> <{B}> .", "the subject is not"),
        (f'<{A}> <{P}> "\\uD800" .', "\\uD800 is no character"),
        (f'<{A}> <{P}> "\\U00110000" .', "\\U00110000 is no character"),
        (f"<< <{A}> <{P}> <{B}> >> <{P}> <{B}> .", "the subject is not"),
        ("ann\tknows\tbob", "the subject is not"),
    ],
)
def test_a_line_that_is_no_triple_says_what_is_wrong(line, said) -> None:
    with pytest.raises(NotATriple) as fault:
        parse_line(line)
    assert said in str(fault.value)


def test_kinds_of_terms_are_told_by_their_names() -> None:
    assert is_literal('"x"@en') and not is_literal(A)
    assert is_blank_node("_:b0") and not is_blank_node(A)
