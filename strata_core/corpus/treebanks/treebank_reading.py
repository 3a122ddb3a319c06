"""Treebank files and their stand-off roles read once: sentences into documents, and all that was found wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from strata_core.corpus.findings import Finding, Report, Severity
from strata_core.corpus.format import SourceInfo
from strata_core.corpus.sources.files import InputFile
from strata_core.corpus.sources.records import BYTE_ORDER_MARK, Skip
from strata_core.corpus.sources.streams import Stream, open_stream
from strata_core.corpus.sources.treebank import (
    AnnotatedDocument,
    DocumentText,
    TreebankSource,
    document_text,
    group_by_document,
    spool_documents,
)
from strata_core.corpus.splits import document_hash, named_split, split_of
from strata_core.corpus.stage import Stage, shown_stage
from strata_core.corpus.treebanks.column_blocks import COLUMN_DECLARATION, comment_value
from strata_core.corpus.treebanks.conll2009 import read_conll2009
from strata_core.corpus.treebanks.conllu import read_conllu, repeated_sent_ids
from strata_core.corpus.treebanks.propbank import StandOffRoles
from strata_core.corpus.treebanks.sentence import Sentence
from strata_core.errors import UsageError
from strata_core.observer import Observer

_READERS: dict[str, Callable[..., Iterator[Sentence]]] = {"conllu": read_conllu, "conll2009": read_conll2009}
TREEBANK_FORMATS = tuple(_READERS)
"""The formats of files that hold annotated sentences (InputFile.format)."""

_DECLARATION_BYTES = 1 << 12


@dataclass(frozen=True)
class Treebanks:
    """Treebank files that have been read.

    Attributes:
        sources: one a file, in the order of the files.
        role_files: what the roles were read from.
        names: for each `Finding.file` what `corpus.json` calls the file.
        findings: all that was found, in reading order; `Finding.file` is what messages call the file.
    """

    sources: tuple[TreebankSource, ...]
    role_files: tuple[SourceInfo, ...]
    names: Mapping[str, str]
    findings: tuple[Finding, ...]


def is_role_file(file: InputFile) -> bool:
    """Whether a CoNLL-U Plus file declares columns without a FORM: roles, to be joined to the sentences of other files.

    Raises:
        DataError: the file cannot be read.
    """
    if file.format != "conllu":
        return False
    with open_stream(file) as stream:
        line = stream.content.readline(_DECLARATION_BYTES).removeprefix(BYTE_ORDER_MARK)
    declared = comment_value(line.decode(errors="replace").removeprefix("#"), COLUMN_DECLARATION)
    return declared is not None and "FORM" not in declared.split()


def read_treebanks(
    files: Sequence[InputFile], role_files: Sequence[InputFile], *, work: Path, val_fraction: float, observer: Observer
) -> Treebanks:
    """Reads treebank files, with the predicates of the role files joined to their sentences by sent_id.

    A file whose name tells a split (splits.named_split) belongs to it; elsewhere documents are split by their text.

    Args:
        files: of TREEBANK_FORMATS.
        role_files: stand-off files for all of them.
        work: a folder for what is read.
        val_fraction: the share of documents to hold out where no name tells the split.
        observer: told about progress.

    Raises:
        UsageError: roles without a treebank.
        DataError: a file that cannot be read, or does not have the columns it needs.
        StorageError: the work folder cannot be written.
    """
    if role_files and not files:
        raise UsageError(f"{role_files[0].shown}: roles without a treebank", hint="give the treebank's files as inputs")
    findings: list[Finding] = []
    total_bytes = sum(file.size_bytes for file in (*files, *role_files))
    with shown_stage(observer, "reading annotated sentences", total_bytes) as stage:
        repeated = repeated_sent_ids(_all_lines(files)) if role_files else frozenset()
        roles = StandOffRoles(repeated_sent_ids=repeated, report=findings.append)
        role_infos = [_read_roles(file, roles, stage) for file in role_files]
        sources = []
        for number, file in enumerate(files):
            spool = work / f"treebank-{number}"
            sources.append(_read_treebank(file, roles, spool, val_fraction, findings.append, stage))
        roles.report_unused()
    names = {file.shown: file.name for file in (*files, *role_files)}
    return Treebanks(tuple(sources), tuple(role_infos), names, tuple(findings))


def left_out_sentences(findings: Iterable[Finding]) -> list[Skip]:
    """One record for each sentence that has a fault: the first one's place and kind, and what all of them are."""
    faults: dict[tuple[str, int], list[Finding]] = {}
    for finding in findings:
        if finding.severity is Severity.FAULT:
            faults.setdefault((finding.file, finding.sentence_line), []).append(finding)
    return [
        Skip(first.kind, "; ".join([first.detail, *map(_with_line, others)]), first.file, first.line, first.sent_id)
        for first, *others in faults.values()
    ]


def _with_line(finding: Finding) -> str:
    return f"line {finding.line}: {finding.detail}"


def _all_lines(files: Sequence[InputFile]) -> Iterator[bytes]:
    for file in files:
        with open_stream(file) as stream:
            yield from stream.content


def _read_roles(file: InputFile, roles: StandOffRoles, stage: Stage) -> SourceInfo:
    with open_stream(file) as stream:
        roles.read(_shown_lines(stream, stage), file=file.shown)
        return stream.finish()


def _read_treebank(
    file: InputFile, roles: StandOffRoles, spool: Path, val_fraction: float, report: Report, stage: Stage
) -> TreebankSource:
    with open_stream(file) as stream:
        sentences = _READERS[file.format](_shown_lines(stream, stage), file=file.shown, report=report)
        with_features: list[bool] = []
        joined = _noting_features(map(roles.join, sentences), with_features)
        text_bytes = spool_documents(_documents(joined, named_split(file.name), val_fraction), spool)
        return TreebankSource(file, spool, stream.finish(), text_bytes, has_features=bool(with_features))


def _noting_features(sentences: Iterable[Sentence], found: list[bool]) -> Iterator[Sentence]:
    """The sentences; one entry is added to `found` when the first with FEATS comes by."""
    for sentence in sentences:
        if sentence.feats is not None and not found:
            found.append(True)
        yield sentence


def _shown_lines(stream: Stream, stage: Stage) -> Iterator[bytes]:
    before_bytes = stage.done
    for line in stream.content:
        stage.reach(before_bytes + stream.position_bytes, stream.file.shown)
        yield line


def _documents(sentences: Iterable[Sentence], split: str | None, val_fraction: float) -> Iterator[AnnotatedDocument]:
    for group in group_by_document(sentences):
        text = document_text(group)
        own_split = split or split_of(document_hash(text.encode()).digest(), val_fraction)
        yield AnnotatedDocument(group, DocumentText(text, own_split))
