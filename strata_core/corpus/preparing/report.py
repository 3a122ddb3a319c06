"""What a person is told about a corpus that has been made, beyond its counts."""

from __future__ import annotations

from collections.abc import Sequence

from strata_core.corpus.findings import Finding, Severity
from strata_core.corpus.format import FINDINGS_JSONL, VAL, CorpusInfo
from strata_core.corpus.preparing.output import CorpusOutput
from strata_core.corpus.sources.files import PassedOver
from strata_core.observer import Observer

_FINDINGS_SHOWN = 3


def report(
    info: CorpusInfo,
    output: CorpusOutput,
    findings: Sequence[Finding],
    passed_over: Sequence[PassedOver],
    observer: Observer,
) -> None:
    """Tells what a person would want to know beyond the counts."""
    if passed_over:
        observer.notice("not read: " + _listed([f"{one.name} ({one.reason})" for one in passed_over]))
    for skip in output.first_skips:
        observer.warning(f"skipped {skip.place}: {skip.detail}")
    if output.skipped:
        counts = ", ".join(f"{count} {reason}" for reason, count in sorted(output.skipped.items()))
        observer.notice(f"records left out: {counts}; each is listed in skipped.jsonl")
    _report_findings(findings, observer)
    if info.literal_special_tokens:
        observer.notice(f"special tokens spelled in the text: {info.literal_special_tokens}, encoded as ordinary text")
    if info.lossy_documents:
        observer.warning(
            f"the tokenizer does not give back {info.lossy_documents} of {info.documents} documents exactly;"
            f" the first begins {output.first_lossy!r}"
        )
    wanted = info.tokenizer.requested_vocab_size
    if wanted is not None and info.vocab_size < wanted:
        observer.warning(
            f"the text has pairs for {info.vocab_size} tokens only, not the {wanted} asked for; give more text, or ask "
            "for fewer with --vocab-size"
        )
    if info.val_fraction and not info.splits[VAL].documents:
        observer.warning(f"none of {info.documents} documents fell into the validation split ({info.val_fraction:g})")


def _report_findings(findings: Sequence[Finding], observer: Observer) -> None:
    """Doubts and notes: the first few of each kind in full, and how many there are."""
    by_kind: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.severity is not Severity.FAULT:
            by_kind.setdefault(finding.kind, []).append(finding)
    for found in by_kind.values():
        for finding in found[:_FINDINGS_SHOWN]:
            observer.warning(str(finding))
    if by_kind:
        counts = ", ".join(f"{len(found)} {kind}" for kind, found in sorted(by_kind.items()))
        observer.notice(f"found in annotated files: {counts}; each is listed in {FINDINGS_JSONL}")


def _listed(names: list[str], most: int = 20) -> str:
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
