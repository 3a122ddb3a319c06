"""The outcome of an inspection, and its JSON form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from strata_core.audit.findings import CORRUPT, GRAVEST_FIRST, NUMERIC, UNKNOWN_GLOBAL, UNSAFE, Finding, verdict_of
from strata_core.audit.names import WrapperReport
from strata_core.audit.pickles.safety import GlobalUse
from strata_core.audit.tensors import Tensor

_EXIT_CODES = {UNSAFE: 4, NUMERIC: 4, CORRUPT: 5}


@dataclass
class Report:
    """What `inspect_checkpoint` found.

    `tensors` are those asked for; `totals` cover all of them: tensors, parameters (tied ones once, without optimizer
    and random state), elements (all, tied ones once), bytes (of the storages). `stats` has one table a tensor when
    asked for, and `checksums` what was verified for them.
    """

    path: str
    format: str
    findings: list[Finding]
    globals: list[GlobalUse]
    tensors: list[Tensor]
    totals: dict[str, int]
    step: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    optimizer: dict[str, Any] | None = None
    sharing: list[list[str]] = field(default_factory=list)
    wrappers: WrapperReport = field(default_factory=WrapperReport)
    notes: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    files: list[dict[str, Any]] = field(default_factory=list)
    stats: dict[str, dict[str, Any]] | None = None
    checksums: list[dict[str, Any]] | None = None

    @property
    def verdict(self) -> str:
        """ "ok", "unknown-global", "unsafe", "corrupt" or "numeric": the gravest of the findings."""
        return verdict_of(self.findings)

    def reasons(self) -> list[str]:
        """The findings in words, gravest first."""
        ordered = sorted(self.findings, key=lambda finding: GRAVEST_FIRST.index(finding.kind))
        return list(dict.fromkeys(finding.text for finding in ordered))

    def exit_code(self, *, strict: bool) -> int:
        """0 for ok and unknown-global (4 when strict), 4 for unsafe and numeric, 5 for corrupt."""
        if self.verdict == UNKNOWN_GLOBAL:
            return 4 if strict else 0
        return _EXIT_CODES.get(self.verdict, 0)

    def to_json(self) -> dict[str, Any]:
        """Plain values for json.dumps, names verbatim."""
        shown: dict[str, Any] = {
            "path": self.path,
            "format": self.format,
            "verdict": self.verdict,
            "reasons": self.reasons(),
            "findings": [{"kind": finding.kind, "text": finding.text} for finding in self.findings],
            "globals": sorted({use.name for use in self.globals}),
            "global_uses": [
                {
                    "name": use.name,
                    "standing": use.standing.value,
                    "use": use.use,
                    "member": use.member,
                    "position": use.position,
                }
                for use in self.globals
            ],
            "tensors": [self._tensor_json(tensor) for tensor in self.tensors],
            "totals": self.totals,
            "step": self.step,
            "settings": self.settings,
            "versions": self.versions,
            "optimizer": self.optimizer,
            "sharing": self.sharing,
            "wrappers": self.wrappers.wrappers,
            "notes": self.notes,
            "details": self.details,
            "files": self.files,
        }
        if self.stats is not None:
            shown["checksums"] = self.checksums
        return shown

    def _tensor_json(self, tensor: Tensor) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "name": tensor.name,
            "dtype": tensor.element_type.name,
            "shape": list(tensor.shape),
            "bytes": tensor.size_bytes,
            "elements": tensor.elements,
            "layout": tensor.layout,
        }
        if tensor.storage is not None:
            shown["storage"] = tensor.storage.name
            shown["storage_bytes"] = tensor.storage.size_bytes
            shown["stored_elements"] = tensor.storage.size_bytes * 8 // tensor.element_type.bits
            if not tensor.is_contiguous or tensor.offset:
                shown["stride"], shown["offset"] = list(tensor.stride), tensor.offset
            shown["overlaps_itself"] = tensor.overlaps_itself
        if tensor.name in self.wrappers.plain_names:
            shown["plain_name"] = self.wrappers.plain_names[tensor.name]
        if tensor.file is not None:
            shown["file"] = tensor.file
        if self.stats is not None:
            shown["stats"] = self.stats.get(stats_key(tensor))
        return shown


def stats_key(tensor: Tensor) -> str:
    """How a tensor is called in the table of statistics: names are unique within one file only."""
    return tensor.name if tensor.file is None else f"{tensor.file}:{tensor.name}"
