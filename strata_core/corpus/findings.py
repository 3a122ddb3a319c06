"""What is wrong in an annotated file, collected so that one run names every fault."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from strata_core.errors import DataError, first_problems


class Severity(enum.Enum):
    """What a finding does to the sentence and, in strict reading, to the whole preparation."""

    FAULT = "the sentence is left out; strict reading stops"
    DOUBT = "the sentence is kept without what is doubtful; strict reading stops"
    NOTE = "the sentence is kept; reading goes on"


SEVERITIES = {
    "not-utf8": Severity.FAULT,
    "column-count": Severity.FAULT,
    "empty-column": Severity.FAULT,
    "word-ids": Severity.FAULT,
    "head-not-a-number": Severity.FAULT,
    "head-out-of-range": Severity.FAULT,
    "own-head": Severity.FAULT,
    "several-roots": Severity.FAULT,
    "no-root": Severity.FAULT,
    "cycle": Severity.FAULT,
    "repeated-sent-id": Severity.DOUBT,
    "malformed-roles": Severity.DOUBT,
    "roles-of-other-words": Severity.NOTE,
    "roles-without-sentence": Severity.NOTE,
    "comments-without-words": Severity.NOTE,
    "text-differs": Severity.NOTE,
}
"""Every kind of finding."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: where it is, what kind it is (a key of SEVERITIES), and the value found.

    `sentence_line` is where the sentence begins, so that findings of one sentence can be told from those of the next.
    """

    kind: str
    file: str
    line: int
    sent_id: str | None
    detail: str
    sentence_line: int

    @property
    def severity(self) -> Severity:
        return SEVERITIES[self.kind]

    def __str__(self) -> str:
        sentence = f" (sent_id {self.sent_id})" if self.sent_id is not None else ""
        return f"{self.file}:{self.line}{sentence}: {self.kind}: {self.detail}"


Report = Callable[[Finding], None]
"""Takes each finding as it is made; `list.append` will do."""


def findings_jsonl(findings: Sequence[Finding], names: Mapping[str, str]) -> bytes:
    """JSON Lines of all findings but faults, whose sentences are left out and listed with what else is.

    Args:
        findings: what was found.
        names: for each `Finding.file` the name to write.
    """
    lines = [
        {
            "source": names[finding.file],
            "line": finding.line,
            "sent_id": finding.sent_id,
            "kind": finding.kind,
            "detail": finding.detail,
        }
        for finding in findings
        if finding.severity is not Severity.FAULT
    ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def refuse_findings(findings: Sequence[Finding]) -> None:
    """Strict reading: nothing but notes may have been found.

    Raises:
        DataError: its problems are the faults and doubts, the first of them one by one.
    """
    grave = [finding for finding in findings if finding.severity is not Severity.NOTE]
    if not grave:
        return
    count = "1 problem" if len(grave) == 1 else f"{len(grave):,} problems"
    raise DataError(
        f"{count} in annotated sentences",
        problems=first_problems(grave),
        hint=f"correct them, or go on with --on-error skip, which {_what_skip_does(grave)}",
    )


def _what_skip_does(grave: Sequence[Finding]) -> str:
    kept = ", ".join(sorted({finding.kind for finding in grave if finding.severity is Severity.DOUBT}))
    leaves_out = "leaves these sentences out"
    if not kept:
        return leaves_out
    keeps = "keeps these sentences, without roles that are in doubt"
    if all(finding.severity is Severity.DOUBT for finding in grave):
        return keeps
    return f"{leaves_out}, but for {kept}: such sentences stay, without roles that are in doubt"
