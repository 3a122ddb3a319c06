"""Plain text as sentences of words: a line is a sentence, words are cut by rule.

White space separates words. Marks stand alone, a run of the same mark together ("...", "--"); a hyphen or a slash
between words is a mark. Numbers keep the marks inside them (3.14, 1,000, 10:30). English clitics are words of their
own, as in the English treebanks of Universal Dependencies: do n't, it 's, they 've. For anything else the words can be
given instead: as CoNLL-U, or separated by spaces.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator

from strata_core.corpus.treebanks.sentence import Sentence
from strata_core.errors import DataError

_WORD = re.compile(
    r"""
      \d+ (?: [.,:] \d+ )+                      # 3.14  1,000  10:30
    | \w+? (?= n['’]t \b )                      # do before n't
    | n['’]t \b
    | ['’] (?: s | m | d | ll | re | ve ) \b
    | \w+
    | (\S) \1*                                  # ...
    """,
    re.VERBOSE | re.IGNORECASE,
)


def sentences_in_text(lines: Iterable[bytes], *, file: str, split_words: bool = True) -> Iterator[Sentence]:
    """The sentences of a text, one a line, without annotation; an empty line begins a paragraph.

    Args:
        lines: lines with their ends, as a file open for binary reading gives them.
        file: the file's name for messages.
        split_words: cut words by rule; otherwise they are what white space separates.

    Raises:
        DataError: a line is not UTF-8.
    """
    count = 0
    starts_paragraph = True
    for number, raw in enumerate(lines, 1):
        try:
            line = (raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw).decode()
        except UnicodeDecodeError as error:
            raise DataError(
                f"{file}:{number}: not UTF-8: byte {error.object[error.start]:#04x} at offset {error.start}",
                hint="convert the file to UTF-8",
            ) from None
        spans = [match.span() for match in (_WORD.finditer(line) if split_words else re.finditer(r"\S+", line))]
        if not spans:
            starts_paragraph = True
            continue
        count += 1
        next_starts = [start for start, _ in spans[1:]] + [len(line) + 1]
        nothing = (None,) * len(spans)
        yield Sentence(
            forms=tuple(line[start:end] for start, end in spans),
            upos=nothing,
            heads=nothing,
            relations=nothing,
            space_after=tuple(end != following for (_, end), following in zip(spans, next_starts, strict=True)),
            sent_id=str(count),
            starts_document=count == 1,
            starts_paragraph=starts_paragraph,
            file=file,
            line=number,
        )
        starts_paragraph = False
