"""A report as SARIF 2.1.0 (OASIS), which code hosts and editors show: a rule for each kind of finding."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from strata_core.audit.findings import CORRUPT, GRAVEST_FIRST, NUMERIC, UNKNOWN_GLOBAL, UNSAFE, Finding
from strata_core.audit.report import Report

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_RULES = {
    UNSAFE: ("error", "Loading the file runs code, or could."),
    CORRUPT: ("error", "The file breaks the rules of its format, was changed, or is read differently by two readers."),
    NUMERIC: ("error", "The file holds numbers that cannot be: NaN, Inf, or an impossible moment."),
    UNKNOWN_GLOBAL: ("warning", "The file names a class that is not part of how the format writes state."),
}
_BYTE = re.compile(r"\bbyte ([0-9][0-9,]*)")


def to_sarif(report: Report) -> dict[str, Any]:
    """One run with one result a finding; byte offsets are given where the finding tells one of the file itself."""
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "strata inspect-ckpt", "version": _version(), "rules": _rules()}},
                "artifacts": [{"location": {"uri": _uri(report.path)}, "roles": ["analysisTarget"]}],
                "results": [_result(finding, report) for finding in report.findings],
                "properties": {"format": report.format, "verdict": report.verdict},
                "columnKind": "unicodeCodePoints",
            }
        ],
    }


def _rules() -> list[dict[str, Any]]:
    return [
        {
            "id": kind,
            "name": "".join(word.capitalize() for word in kind.split("-")),
            "shortDescription": {"text": _RULES[kind][1]},
            "defaultConfiguration": {"level": _RULES[kind][0]},
        }
        for kind in GRAVEST_FIRST
    ]


def _result(finding: Finding, report: Report) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(report.path), "index": 0}}
    offset = _BYTE.search(finding.text)
    is_of_file = finding.text.startswith(
        (f"{PurePath(report.path).name},", f"{PurePath(report.path).name}: the pickle")
    )
    if offset and is_of_file:
        place["region"] = {"byteOffset": int(offset[1].replace(",", ""))}
    return {
        "ruleId": finding.kind,
        "ruleIndex": GRAVEST_FIRST.index(finding.kind),
        "level": _RULES[finding.kind][0],
        "message": {"text": finding.text},
        "locations": [{"physicalLocation": place}],
    }


def _uri(path: str) -> str:
    """A path as a URI: relative ones stay relative, as SARIF's viewers resolve them against the sources."""
    posix = PurePath(path).as_posix()
    quoted = quote(posix.encode("utf-8", "surrogateescape"), safe="/")
    return f"file://{quoted}" if posix.startswith("/") else quoted


def _version() -> str:
    try:
        return version("strata")
    except PackageNotFoundError:
        return "unknown"
