r"""Predicates and their arguments in the MISC column: `Pred=give.01` and `Args=ARG0:2,ARG1:5`, heads by word number.

CoNLL-U has ten columns and none for roles; its attributes of one's own go to MISC
(https://universaldependencies.org/format.html#miscellaneous). What would end a value is escaped as in the attribute
SpacesAfter: `\s` space, `\p` vertical bar, `\t`, `\n`, `\r`, `\\`; and `\c` for the comma between arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from strata_core.corpus.treebanks.propbank import normalise_role
from strata_core.corpus.treebanks.sentence import Argument, Predicate

PREDICATE_ATTRIBUTE = "Pred"
ARGUMENTS_ATTRIBUTE = "Args"

_ESCAPES = {"\\": r"\\", " ": r"\s", "|": r"\p", ",": r"\c", "\t": r"\t", "\n": r"\n", "\r": r"\r"}
_MEANINGS = {escape: character for character, escape in _ESCAPES.items()}
_ARGUMENT = re.compile(r"(.+):([1-9][0-9]{0,8})", re.DOTALL)


def escape(value: str) -> str:
    """A value as it may stand in MISC, or as one of several there with commas between them."""
    return "".join(_ESCAPES.get(character, character) for character in value)


def unescape(value: str) -> str:
    """The inverse of `escape`; a backslash before any other character stays."""
    return re.sub(r"\\.", lambda match: _MEANINGS.get(match[0], match[0]), value)


def role_attributes(predicate: Predicate | None) -> dict[str, str | None]:
    """The attributes of a word for `misc_with`; None for those that it has not."""
    if predicate is None:
        return {PREDICATE_ATTRIBUTE: None, ARGUMENTS_ATTRIBUTE: None}
    arguments = ",".join(f"{escape(argument.role)}:{argument.head}" for argument in predicate.arguments)
    return {PREDICATE_ATTRIBUTE: escape(predicate.roleset), ARGUMENTS_ATTRIBUTE: arguments or None}


def misc_with(cell: str, attributes: Mapping[str, str | None]) -> str:
    """A MISC cell in which attributes have these values, already escaped, or are absent; all others stay."""
    kept = [] if cell == "_" else [item for item in cell.split("|") if item.partition("=")[0] not in attributes]
    added = [f"{name}={value}" for name, value in attributes.items() if value is not None]
    return "|".join([*kept, *added]) or "_"


def predicates_from_misc(cells: Iterable[str | None]) -> tuple[Predicate, ...] | None:
    """The predicates that the MISC cells of a sentence's words tell of.

    None where no word has `Pred`, so that nothing is known of predicates; also where an `Args` is not in the form
    given above or stands without `Pred`, as attributes of these names may be another project's.
    """
    misc = list(cells)
    if not any(cell is not None and f"{PREDICATE_ATTRIBUTE}=" in cell for cell in misc):
        return None
    attributes = [dict(_items(cell)) for cell in misc]
    predicates: list[Predicate] = []
    for word, found in enumerate(attributes, 1):
        roleset, arguments = found.get(PREDICATE_ATTRIBUTE), found.get(ARGUMENTS_ATTRIBUTE)
        if not roleset:
            if arguments is not None:
                return None
            continue
        matches = [_ARGUMENT.fullmatch(item) for item in arguments.split(",")] if arguments is not None else []
        read = [Argument(normalise_role(unescape(match[1])), int(match[2])) for match in matches if match]
        if len(read) < len(matches) or any(argument.head > len(attributes) for argument in read):
            return None
        predicates.append(Predicate(word, unescape(roleset), tuple(read)))
    return tuple(predicates) or None


def _items(cell: str | None) -> list[tuple[str, str]]:
    items = [item.partition("=") for item in (cell or "").split("|")]
    return [(name, value) for name, equals, value in items if equals]
