"""The sentences of a file that a model is to annotate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from strata_core.corpus.findings import Finding, Severity
from strata_core.corpus.sources.files import STANDARD_INPUT
from strata_core.corpus.sources.streams import open_stream
from strata_core.corpus.treebanks.conllu import read_conllu
from strata_core.corpus.treebanks.conllu_writing import write_conllu
from strata_core.corpus.treebanks.sentence import Sentence
from strata_core.errors import DataError, UsageError, first_problems
from strata_core.tasks.input_file import SUFFIXES, find_input, format_in_name
from strata_core.tasks.sentence_structure.plain_text import sentences_in_text

FORMATS = ("text", "tokens", "conllu")
"""A sentence a line, words to be cut by rule or separated by spaces; CoNLL-U, whose words are kept."""


@dataclass(frozen=True)
class SentenceFile:
    """The sentences of a file, without annotation, and the file as CoNLL-U.

    Attributes:
        sentences: words with spacing; what else they have is only in `lines`.
        lines: with their ends: as they were read, or those that plain text and words would be written as.
        starts: the place in `lines` where each sentence begins.
    """

    sentences: list[Sentence]
    lines: list[bytes]
    starts: list[int]


def read_sentences(file: str, *, format: str = "auto") -> SentenceFile:
    """A file, or standard input ("-"), which may be compressed (.gz, .zst).

    Args:
        file: its path.
        format: one of FORMATS, or "auto" to go by its name.

    Raises:
        UsageError: there is no such file, or its name does not tell what it holds.
        DataError: it cannot be read, or sentences in it are malformed; all of them are listed.
    """
    chosen = _format_of(file) if format == "auto" else format
    found = find_input(file, chosen)
    with open_stream(found) as stream:
        if chosen == "conllu":
            return _of_conllu(list(stream.content), found.shown)
        return _of_text(sentences_in_text(stream.content, file=found.shown, split_words=chosen == "text"))


def _of_conllu(lines: list[bytes], shown: str) -> SentenceFile:
    findings: list[Finding] = []
    sentences = [_words_alone(sentence) for sentence in read_conllu(lines, file=shown, report=findings.append)]
    _refuse_faults(findings)
    return SentenceFile(sentences, lines, [sentence.line - 1 for sentence in sentences])


def _of_text(sentences: Iterable[Sentence]) -> SentenceFile:
    result = SentenceFile([], [], [])
    for sentence in sentences:
        result.sentences.append(sentence)
        result.starts.append(len(result.lines))
        result.lines.extend("".join(write_conllu([sentence])).encode().splitlines(keepends=True))
    return result


def refuse_queries(file: str, format: str) -> None:
    """Refuses JSON Lines, by the format that is asked for or by the file's name.

    Raises:
        UsageError: they are what is given.
    """
    if format == "jsonl" or (format == "auto" and format_in_name(file) == "jsonl"):
        what = file if format == "auto" else f"--format {format}"
        raise UsageError(
            f"{what}: this model annotates sentences: text, tokens or CoNLL-U",
            hint="name a file of sentences (.txt, .tok, .conllu); --format text, tokens or conllu where its name does "
            "not tell",
        )


def _format_of(file: str) -> str:
    if file == STANDARD_INPUT:
        return "text"
    named = format_in_name(file)
    if named is None:
        suffixes = ", ".join(suffix for suffix, format in SUFFIXES.items() if format in FORMATS)
        raise UsageError(
            f"{file}: its name does not tell what it holds ({suffixes} would, with .gz or .zst behind)",
            hint=f"say --format {', '.join(FORMATS)}, whichever it is",
        )
    return named


def _words_alone(sentence: Sentence) -> Sentence:
    nothing = (None,) * len(sentence.forms)
    bare = replace(sentence, upos=nothing, heads=nothing, relations=nothing, empty_nodes=(), predicates=None)
    return replace(bare, lemmas=None, xpos=None, feats=None)


def _refuse_faults(findings: list[Finding]) -> None:
    faults = [str(finding) for finding in findings if finding.severity is Severity.FAULT]
    if not faults:
        return
    count = "1 fault" if len(faults) == 1 else f"{len(faults):,} faults"
    raise DataError(f"{count} in the sentences to annotate", problems=first_problems(faults), hint="correct them")
