"""What a verification finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

FaultKind = Literal["changed", "missing", "extra", "other"]
FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)


@dataclass(frozen=True)
class Fault:
    """One difference between what a manifest says and what is there.

    Attributes:
        kind: changed (content or size), missing, extra (there, but not listed) or other.
        path: relative to the folder that is verified, as listed or as found there; not escaped.
        what: the fault in words.
        expected: the value that the manifest gives, empty where there is none.
        found: the value found.
    """

    kind: FaultKind
    path: str
    what: str
    expected: str = ""
    found: str = ""


@dataclass(frozen=True)
class ParentReport:
    """Where the chain leads from here, one link of it.

    Attributes:
        describes: "corpus", "run" or "checkpoint".
        digest: of the manifest that the child names.
        path: where it was looked for, None when the child does not say.
        status: "ok" (content checked), "digest ok" (manifest checked, contents left out), "failed" or
            "not found here".
    """

    describes: str
    digest: str
    path: str | None
    status: Literal["ok", "digest ok", "failed", "not found here"]


@dataclass(frozen=True)
class Report:
    """The outcome of a verification.

    Attributes:
        path: what was verified, as given.
        describes: "corpus", "run", "checkpoint", or "listing" for a plain list of checksums.
        digest: the identity of its manifest, None for a plain list.
        quick: whether contents were left out.
        checked: number of files looked at.
        checked_bytes: bytes hashed.
        faults: sorted by path.
        notes: one line each about what is no fault but worth knowing.
        parents: see `ParentReport`.
    """

    path: str
    describes: str
    digest: str | None
    quick: bool
    checked: int
    checked_bytes: int
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]
    parents: tuple[ParentReport, ...]

    @property
    def ok(self) -> bool:
        return not self.faults

    def paths(self, kind: FaultKind) -> list[str]:
        """The paths with a fault of one kind, each once."""
        return list(dict.fromkeys(fault.path for fault in self.faults if fault.kind == kind))

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values; paths are not escaped."""
        return {
            "verdict": "ok" if self.ok else "failed",
            "path": self.path,
            "describes": self.describes,
            "digest": self.digest,
            "quick": self.quick,
            "checked": self.checked,
            "checked_bytes": self.checked_bytes,
            **{kind: self.paths(kind) for kind in FAULT_KINDS},
            "faults": [vars(fault) for fault in self.faults],
            "notes": list(self.notes),
            "parents": [vars(parent) for parent in self.parents],
        }
