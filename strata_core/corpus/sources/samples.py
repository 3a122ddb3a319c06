"""Built-in samples: real text that comes with the interpreter, so that nothing has to be downloaded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from strata_core.corpus.format import SourceInfo
from strata_core.corpus.sources.jsonl import JsonLines
from strata_core.errors import UsageError

SAMPLES = ("python-topics",)
SAMPLE_TEXT_KEY = "text"


def sample_documents(name: str) -> list[str]:
    """The documents of a built-in sample, in a fixed order.

    "python-topics" is the text behind the interactive `help()` of this interpreter (CPython's `pydoc_data.topics`), one
    document a topic, sorted by topic. It differs between versions of Python.

    Raises:
        UsageError: no sample has that name.
    """
    if name not in SAMPLES:
        raise UsageError(f"there is no sample {name!r}", hint=f"samples: {', '.join(SAMPLES)}")
    from pydoc_data.topics import topics

    return [topics[topic] for topic in sorted(topics)]


def sample_lines(name: str) -> Iterator[JsonLines]:
    """A sample as JSON Lines with the key `SAMPLE_TEXT_KEY`, one document each time.

    Raises:
        UsageError: no sample has that name.
    """
    for number, text in enumerate(sample_documents(name), 1):
        yield JsonLines(name, number, [json.dumps({SAMPLE_TEXT_KEY: text}).encode() + b"\n"])


def sample_info(name: str) -> SourceInfo:
    """The sample as a source: size and digest of its documents' UTF-8, each followed by a zero byte.

    Raises:
        UsageError: no sample has that name.
    """
    data = b"".join(text.encode() + b"\0" for text in sample_documents(name))
    return SourceInfo(name, len(data), hashlib.sha256(data).hexdigest())
