import pytest

from strata_core.errors import DataError
from strata_core.suites.formula import parse_formula

SURPRISALS = {("a", "1"): 1.0, ("b", "1"): 2.0, ("a", "2"): 4.0, ("b", "2"): 4.0, ("a", "*"): 5.0, ("b", "*"): 6.0}


def holds(text):
    return parse_formula(text, where="here").holds(lambda condition, region: SURPRISALS[condition, region])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(1;%a%) < (1;%b%)", True),
        ("(1;%a%)>(1;%b%)", False),
        ("(2;%a%) = (2;%b%)", True),
        # (1 + 4) < (2 + 4)
        ("[ (1;%a%) + (2;%a%) ] < [ (1;%b%) + (2;%b%) ]", True),
        # (2 - 1) + ((4 + 2) - (4 + 1)) > 0
        ("[(1;%b%)-(1;%a%)]+[[(2;%b%)+(1;%b%)]-[(2;%a%)+(1;%a%)]]>0", True),
        # Sums go from the left: 4 - 1 - 2 = 1, not 5.
        ("(2;%a%) - (1;%a%) - (1;%b%) < 1.5", True),
        ("[(1;%a%) < (1;%b%)] & [(2;%a%) < (2;%b%)]", False),
        ("[(1;%a%) < (1;%b%)] | [(2;%a%) < (2;%b%)]", True),
        ("(1;%a%) < 2 & 3 < (2;%a%)", True),
        ("(*;%a%) < (*;%b%)", True),
    ],
)
def test_formulas_worked_by_hand(text, expected):
    assert holds(text) is expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(1;%a%)", "is a number, not a comparison"),
        ("(1;%a%) <", "has its end where a region should be"),
        ("[(1;%a%) < 2", r"has its end where '\]' should be"),
        ("(1;%a%) < 2]", r"has '\]' where nothing more should be"),
        ("[(1;%a%) < 2] + 1 < 3", r"\+ has to stand between numbers"),
        ("1 & 2 < 3", "& has to stand between comparisons"),
        ("__import__('os')", "cannot be read from"),
        ("[" * 500 + "1", "where a region should be"),
        ("", "has its end"),
    ],
)
def test_what_is_no_formula_is_bad_data(text, said):
    with pytest.raises(DataError, match=said):
        parse_formula(text, where="suite.json")
