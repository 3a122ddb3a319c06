"""`strata prepare-corpus`: text and annotated sentences into a corpus directory."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata_cli.display.figures import bytes_text, count_text
from strata_cli.display.output import write_json, write_text
from strata_cli.display.progress import shown_progress
from strata_cli.display.streams import printable
from strata_cli.display.table import write_pairs
from strata_core.errors import UsageError
from strata_core.files import expand_path

if TYPE_CHECKING:
    from strata_core.corpus.format import StructureInfo
    from strata_core.corpus.preparation import PreparedCorpus

_COUNT_NAMES = {"tokens": "sentence_tokens"}
"""Counts of annotated sentences that go under another name beside those of the text."""


def prepare_corpus(
    inputs: Sequence[str | Path],
    *,
    out: str | Path,
    sample: str | None = None,
    sample_sentences: int | None = None,
    sample_seed: int | None = None,
    roles: Sequence[str | Path] | None = None,
    vocab_size: int | None = None,
    tokenizer: str | Path | None = None,
    text_key: str | None = None,
    format: str | None = None,
    val_fraction: float | None = None,
    shard_tokens: int | None = None,
    on_error: str | None = None,
    workers: int | None = None,
    backend: str | None = None,
    json_output: bool = False,
    quiet: bool = False,
) -> int:
    """Prepares a corpus, shows progress and the result, and returns the exit code. None stands for the default."""
    from strata_core.corpus import preparation
    from strata_core.corpus.preparation_settings import PreparationSettings

    if sample is not None and inputs:
        raise UsageError("both inputs and a sample are given", hint="leave one of them out")
    if tokenizer is not None and vocab_size is not None:
        raise UsageError(
            "both a tokenizer and a vocabulary size are given",
            hint="a tokenizer that is given has its own size: leave --vocab-size out",
        )
    given: dict[str, Any] = {
        "vocab_size": vocab_size,
        "tokenizer": expand_path(tokenizer) if tokenizer is not None else None,
        "text_key": text_key,
        "format": format,
        "roles": tuple(roles) if roles is not None else None,
        "sample_sentences": sample_sentences,
        "sample_seed": sample_seed,
        "val_fraction": val_fraction,
        "shard_tokens": shard_tokens,
        "on_error": on_error,
        "workers": workers,
        "backend": backend,
    }
    settings = PreparationSettings(**{name: value for name, value in given.items() if value is not None})
    folder = expand_path(out)
    with shown_progress(quiet=quiet) as observer:
        if sample is not None:
            prepared = preparation.prepare_sample(sample, folder, settings, observer=observer)
        else:
            prepared = preparation.prepare_corpus(
                inputs, folder, settings, standard_input=sys.stdin.buffer if sys.stdin else None, observer=observer
            )
    if json_output:
        write_json(_result(prepared))
    elif not quiet:
        write_pairs(f"corpus: {prepared.path}", _rows(prepared))
        place = printable(shlex.quote(str(prepared.path)))
        write_text(f"\nnext:\n  strata train-lm --recipe lm/small --set corpus.path={place}")
    return 0


def _result(prepared: PreparedCorpus) -> dict[str, Any]:
    info = prepared.info
    structure = {} if info.structure is None else _structure_result(info.structure)
    return {
        "corpus_dir": str(prepared.path),
        "kind": info.kind,
        "documents": info.documents,
        "tokens": info.tokens,
        "bytes": info.bytes,
        "vocab_size": info.vocab_size,
        "dtype": info.dtype,
        "end_of_text_id": info.end_of_text_id,
        "splits": {name: asdict(split) | _counts_of(info.structure, name) for name, split in info.splits.items()},
        "skipped": dict(info.skipped),
        "not_read": [asdict(one) for one in prepared.passed_over],
        "literal_special_tokens": info.literal_special_tokens,
        "lossy_documents": info.lossy_documents,
        "backend": prepared.backend,
        "digest": prepared.digest,
        **structure,
    }


def _structure_result(structure: StructureInfo) -> dict[str, Any]:
    return {
        **{_COUNT_NAMES.get(name, name): structure.total(name) for name in structure.counts["train"]},
        "labels": {kind: len(counts) for kind, counts in structure.labels.items()},
        "findings": dict(structure.findings),
    }


def _counts_of(structure: StructureInfo | None, split: str) -> dict[str, int]:
    counts = {} if structure is None else structure.counts[split]
    return {_COUNT_NAMES.get(name, name): count for name, count in counts.items()}


def _rows(prepared: PreparedCorpus) -> list[tuple[str, str]]:
    info = prepared.info
    rows = [
        (name, f"{count_text(split.documents)} documents, {count_text(split.tokens)} tokens, {bytes_text(split.bytes)}")
        for name, split in info.splits.items()
    ]
    if info.structure is not None:
        rows += [(f"{name} sentences", _structure_text(counts)) for name, counts in info.structure.counts.items()]
        rows.append(("labels", ", ".join(f"{len(found)} {kind}" for kind, found in info.structure.labels.items())))
    rows.append(("vocabulary", f"{count_text(info.vocab_size)} tokens, stored as {info.dtype}"))
    rows.append(("bytes per token", f"{info.bytes / (info.tokens - info.documents):.2f}"))
    if info.skipped:
        rows.append(("left out", ", ".join(f"{count_text(count)} {reason}" for reason, count in info.skipped.items())))
    rows.append(("encoded by", prepared.backend))
    rows.append(("digest", prepared.digest))
    return rows


def _structure_text(counts: Mapping[str, int]) -> str:
    """The counts of one split, those of rarer things only where there are any."""
    shown = {"sentences": "annotated", "words": "words"}
    rarer = ("multiword_tokens", "empty_nodes", "unannotated_words", "predicates", "arguments")
    shown |= {name: name.replace("_", " ") for name in rarer if counts[name]}
    return ", ".join(f"{count_text(counts[name])} {text}" for name, text in shown.items())
