"""What an inspection can hold against a checkpoint, and the verdict that follows."""

from __future__ import annotations

from dataclasses import dataclass

from strata_core.errors import DataError

UNSAFE = "unsafe"
CORRUPT = "corrupt"
NUMERIC = "numeric"
UNKNOWN_GLOBAL = "unknown-global"
OK = "ok"

GRAVEST_FIRST = (UNSAFE, CORRUPT, NUMERIC, UNKNOWN_GLOBAL)


class Malformed(DataError):
    """A part of a file breaks the rules of its format. Readers raise it; the inspection records it as a finding."""


@dataclass(frozen=True)
class Finding:
    """One reason against a checkpoint: its kind is one of GRAVEST_FIRST, its text names the place and the fact."""

    kind: str
    text: str


def verdict_of(findings: list[Finding]) -> str:
    """The gravest kind among the findings, or "ok"."""
    kinds = {finding.kind for finding in findings}
    return next((kind for kind in GRAVEST_FIRST if kind in kinds), OK)


def printable(text: str, *, limit: int = 120) -> str:
    """Text of unknown origin made fit for one line of a message: escaped, and cut in the middle when long."""
    if len(text) <= limit and text.isprintable():
        return text
    shown = "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text[: limit * 2])
    if len(text) <= limit * 2 and len(shown) <= limit:
        return shown
    return f"{shown[: limit // 2]}...({len(text):,} characters)"
