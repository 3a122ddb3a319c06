"""Built-in samples, so that nothing has to be downloaded: text that comes with Python, and generated sentences."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from strata_core.corpus.format import SourceInfo
from strata_core.corpus.sources.files import InputFile
from strata_core.corpus.sources.jsonl import JsonLines
from strata_core.errors import UsageError
from strata_core.files import storage_errors

SYNTHETIC_TREEBANK = "synthetic-treebank"
SYNTHETIC_ROLE_EDITS = "synthetic-role-edits"
SAMPLES = ("python-topics", SYNTHETIC_TREEBANK, SYNTHETIC_ROLE_EDITS)
SYNTHETIC_REASONING = "synthetic-reasoning"
GRAPH_SAMPLES = (SYNTHETIC_REASONING,)
"""Samples of graphs; SAMPLES are those of text."""

SAMPLE_TEXT_KEY = "text"
DEFAULT_SENTENCES = 4096
DEFAULT_SEED = 1


@dataclass(frozen=True)
class TreebankSample:
    """A generated treebank: the first `sentences` sentences of the sample `name` under `seed`."""

    name: str
    sentences: int
    seed: int


def check_sample(name: str, *, sentences: int | None = None, seed: int | None = None) -> TreebankSample | None:
    """What to generate for a sample; None for one that is text.

    Args:
        name: of the sample.
        sentences, seed: of a generated one; None for its own.

    Raises:
        UsageError: no sample has that name, or a size or seed is given for one that is not generated.
    """
    if name not in SAMPLES:
        raise UsageError(f"there is no sample {name!r}", hint=f"samples: {', '.join((*SAMPLES, *GRAPH_SAMPLES))}")
    if name in (SYNTHETIC_TREEBANK, SYNTHETIC_ROLE_EDITS):
        return TreebankSample(name, sentences or DEFAULT_SENTENCES, DEFAULT_SEED if seed is None else seed)
    if sentences is not None or seed is not None:
        raise UsageError(
            f"the sample {name} has neither size nor seed", hint=f"{SYNTHETIC_TREEBANK} and {SYNTHETIC_ROLE_EDITS} have"
        )
    return None


def sample_documents(name: str) -> list[str]:
    """The documents of a built-in sample of text, in a fixed order.

    "python-topics" is the text behind the interactive `help()` of this interpreter (CPython's `pydoc_data.topics`), one
    document a topic, sorted by topic. It differs between versions of Python.

    Raises:
        UsageError: no sample has that name.
    """
    check_sample(name)
    from pydoc_data.topics import topics

    return [topics[topic] for topic in sorted(topics)]


def sample_lines(name: str) -> Iterator[JsonLines]:
    """A sample of text as JSON Lines with the key `SAMPLE_TEXT_KEY`, one document each time.

    Raises:
        UsageError: no sample has that name.
    """
    for number, text in enumerate(sample_documents(name), 1):
        yield JsonLines(name, number, [json.dumps({SAMPLE_TEXT_KEY: text}).encode() + b"\n"])


def sample_info(name: str) -> SourceInfo:
    """A sample of text as a source: size and digest of its documents' UTF-8, each followed by a zero byte.

    Raises:
        UsageError: no sample has that name.
    """
    data = b"".join(text.encode() + b"\0" for text in sample_documents(name))
    return SourceInfo(name, len(data), hashlib.sha256(data).hexdigest())


def sample_version(name: str) -> str:
    """What changes whenever the content of a sample, at its own size and seed, does.

    Raises:
        UsageError: no sample has that name.
    """
    generated = check_sample(name)
    return sample_info(name).sha256 if generated is None else _source_name(generated)


def write_treebank_sample(sample: TreebankSample, folder: Path) -> InputFile:
    """Generates a treebank as a CoNLL-U Plus file, each sentence a document of its own.

    Raises:
        StorageError: the file system refused.
    """
    from strata_core.corpus.generators.role_edit_texts import role_edit_text
    from strata_core.corpus.generators.treebank import synthetic_sentence
    from strata_core.corpus.treebanks.conllu_writing import write_conllu

    make_sentence = synthetic_sentence if sample.name == SYNTHETIC_TREEBANK else role_edit_text
    path = folder / f"{sample.name}.conllup"
    sentences = (make_sentence(sample.seed, index) for index in range(sample.sentences))
    with storage_errors(path), open(path, "wb") as file:
        for text in write_conllu(sentences, roles=True):
            file.write(text.encode())
    return InputFile(path, sample.name, _source_name(sample), "conllu", "none", path.stat().st_size)


def _source_name(sample: TreebankSample) -> str:
    from strata_core.corpus.generators.treebank import GENERATOR_VERSION

    return f"{sample.name} version={GENERATOR_VERSION} seed={sample.seed} sentences={sample.sentences}"
