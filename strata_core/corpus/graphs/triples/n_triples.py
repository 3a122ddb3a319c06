"""N-Triples (https://www.w3.org/TR/n-triples/): a line as three names.

An IRI is named by itself, without its angle brackets; a blank node by its label (`_:b0`); a literal by its canonical
N-Triples form (`"Paris"@fr`, `"3"^^<http://www.w3.org/2001/XMLSchema#integer>`), so that no IRI has a literal's name.
Escapes are resolved, language tags are in lower case, and `xsd:string` is left out: one term has one name.
"""

from __future__ import annotations

import re

_XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
_LONG_ESCAPE = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_IRI = rf'<((?:[^\x00-\x20<>"{{}}|^`\\]|{_LONG_ESCAPE})*)>'
_BLANK = r"(_:[\w:](?:[\w:.\-\u00b7]*[\w:\-\u00b7])?)"
_LITERAL = rf'"((?:[^"\\\r\n]|\\[tbnrf"\'\\]|{_LONG_ESCAPE})*)"(?:\^\^{_IRI}|@([A-Za-z]+(?:-[A-Za-z0-9]+)*))?'
_SPACE = r"[ \t]*"
_END = rf"{_SPACE}\.{_SPACE}(?:#.*)?"
_LINE = re.compile(rf"{_SPACE}(?:{_IRI}|{_BLANK}){_SPACE}{_IRI}{_SPACE}(?:{_IRI}|{_BLANK}|{_LITERAL}){_END}", re.DOTALL)
_TERMS = (
    ("subject", re.compile(rf"{_SPACE}(?:{_IRI}|{_BLANK})"), "an IRI in <> or a blank node"),
    ("predicate", re.compile(rf"{_SPACE}{_IRI}"), "an IRI in <>"),
    ("object", re.compile(rf"{_SPACE}(?:{_IRI}|{_BLANK}|{_LITERAL})"), "an IRI in <>, a blank node or a literal"),
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_SHORT_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"})
_SHOWN_CHARACTERS = 40


class NotATriple(Exception):
    """A line that is no triple; `str()` says why."""


def parse_line(text: str) -> tuple[str, str, str] | None:
    """Subject, predicate and object of a line; None for a comment.

    Args:
        text: a line that is not blank, without its end.

    Raises:
        NotATriple: it is neither.
    """
    if text.lstrip(" \t").startswith("#"):
        return None
    match = _LINE.fullmatch(text)
    if match is None:
        raise NotATriple(_fault(text))
    subject, subject_blank, predicate, iri, blank, literal, datatype, language = match.groups()
    head = subject_blank or _resolved(subject)
    tail = _literal(literal, datatype, language) if literal is not None else blank or _resolved(iri)
    return head, _resolved(predicate), tail


def is_literal(name: str) -> bool:
    """Whether a name made here is that of a literal."""
    return name.startswith('"')


def is_blank_node(name: str) -> bool:
    """Whether a name made here is that of a blank node."""
    return name.startswith("_:")


def _literal(text: str, datatype: str | None, language: str | None) -> str:
    quoted = f'"{_resolved(text).translate(_WRITTEN)}"'
    if language is not None:
        return f"{quoted}@{language.lower()}"
    kind = _XSD_STRING if datatype is None else _resolved(datatype)
    return quoted if kind == _XSD_STRING else f"{quoted}^^<{kind}>"


def _resolved(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    digits = match[1] or match[2]
    if digits is None:
        return _SHORT_ESCAPES.get(match[3], match[3])
    number = int(digits, 16)
    if number > 0x10FFFF or 0xD800 <= number < 0xE000:
        raise NotATriple(f"{match[0]} is no character")
    return chr(number)


def _fault(text: str) -> str:
    """What keeps a line from being a triple."""
    at = 0
    for role, pattern, wanted in _TERMS:
        match = pattern.match(text, at)
        if match is None:
            return f"the {role} is not {wanted}: {_shown(text[at:])}"
        at = match.end()
    rest = text[at:].strip(" \t")
    if rest.startswith("."):
        return f"more behind the full stop: {_shown(rest[1:])}"
    return f"no full stop behind the object{f', but {_shown(rest)}' if rest else ''}"


def _shown(text: str) -> str:
    text = text.strip(" \t")
    if not text:
        return "the line ends"
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "...")
