"""SyntaxGym's formulas (Gauthier et al. 2020): comparisons of summed surprisals of regions, joined by and, or.

    any      := all ("|" all)*            holds := sum ("<" | ">" | "=") sum
    all      := part ("&" part)*          sum   := term (("+" | "-") term)*
    part     := holds, or any in brackets
    term     := number, "(" region ";%" condition "%)", or sum in brackets

Brackets are round or square. A region is its number, or * for all of a condition.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from strata_core.errors import DataError

Region = tuple[str, str]
"""The name of a condition, and the number of a region of it or "*"."""

Lookup = Callable[[str, str], float]
"""The surprisal of a region: (condition, number)."""

_TOKEN = re.compile(r"\s*(?:\(\s*(\d+|\*)\s*;\s*%([^%]+)%\s*\)|(\d+(?:\.\d+)?)|([\[\]()<>=+\-&|]))")
_OPERATORS: dict[str, Callable[..., float | bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
    "+": operator.add,
    "-": operator.sub,
    "&": lambda left, right: left and right,
    "|": lambda left, right: left or right,
}
_LEVELS = ("|", "&", "<>=", "+-")
_BRACKETS = {"[": "]", "(": ")"}
_DEEPEST = 50


@dataclass(frozen=True)
class _Part:
    """A piece of a formula: its value of the regions' surprisals, and whether that is a truth."""

    value: Callable[[Lookup], float | bool]
    is_truth: bool


@dataclass
class Formula:
    """A formula that has been read.

    Attributes:
        text: as it is written.
        regions: those that it asks for.
    """

    text: str
    regions: list[Region] = field(default_factory=list)
    _part: _Part | None = None

    def holds(self, surprisal: Lookup) -> bool:
        """Whether it is true of these surprisals."""
        assert self._part is not None
        return bool(self._part.value(surprisal))


def parse_formula(text: str, *, where: str) -> Formula:
    """Reads a formula.

    Raises:
        DataError: it is not one; `where` names its place.
    """
    formula = Formula(text)
    parser = _Parser(text, formula.regions, where)
    part = parser.level(0, 0)
    if parser.next is not None:
        raise parser.fault("nothing more")
    if not part.is_truth:
        raise DataError(f"{where}: the formula {text!r} is a number, not a comparison")
    formula._part = part
    return formula


class _Parser:
    def __init__(self, text: str, regions: list[Region], where: str) -> None:
        self._text, self._regions, self._where = text, regions, where
        self._place = 0
        self.next: re.Match[str] | None = None
        self._advance()

    def fault(self, wanted: str) -> DataError:
        found = repr(self.next.group().strip()) if self.next else "its end"
        return DataError(f"{self._where}: the formula {self._text!r} has {found} where {wanted} should be")

    def _advance(self) -> None:
        self.next = _TOKEN.match(self._text, self._place)
        if self.next is not None:
            self._place = self.next.end()
        elif rest := self._text[self._place :].strip():
            raise DataError(f"{self._where}: the formula {self._text!r} cannot be read from {rest[:20]!r} on")

    def _sign(self) -> str:
        return (self.next.group(4) or "") if self.next else ""

    def level(self, number: int, depth: int) -> _Part:
        """What stands at one level of precedence, the loosest being 0."""
        if number == len(_LEVELS):
            return self._term(depth)
        left = self.level(number + 1, depth)
        while (sign := self._sign()) and sign in _LEVELS[number]:
            self._advance()
            left = self._joined(sign, left, self.level(number + 1, depth))
        return left

    def _joined(self, sign: str, left: _Part, right: _Part) -> _Part:
        of_truths = sign in "&|"
        if left.is_truth != of_truths or right.is_truth != of_truths:
            wanted = "comparisons" if of_truths else "numbers"
            raise DataError(f"{self._where}: in the formula {self._text!r} {sign} has to stand between {wanted}")
        join = _OPERATORS[sign]
        return _Part(lambda lookup: join(left.value(lookup), right.value(lookup)), sign in "&|<>=")

    def _term(self, depth: int) -> _Part:
        found = self.next
        if found is None or depth > _DEEPEST:
            raise self.fault("a region")
        region, condition, number, sign = found.groups()
        if sign and sign not in _BRACKETS:
            raise self.fault("a region")
        self._advance()
        if number:
            return _Part(lambda _: float(number), False)
        if region:
            self._regions.append((condition.strip(), region))
            return _Part(lambda lookup: lookup(condition.strip(), region), False)
        inner = self.level(0, depth + 1)
        if self._sign() != _BRACKETS[sign]:
            raise self.fault(repr(_BRACKETS[sign]))
        self._advance()
        return inner
