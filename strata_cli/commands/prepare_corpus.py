"""`strata prepare-corpus`: text, annotated sentences or graphs into a corpus directory."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata_cli.commands.prepare_graphs import GRAPH_OPTIONS, option_name, prepare_graphs
from strata_cli.commands.training_command import training_command
from strata_cli.display.figures import bytes_text, count_text
from strata_cli.display.output import write_json, write_text
from strata_cli.display.progress import shown_progress
from strata_cli.display.table import write_pairs
from strata_core.errors import UsageError
from strata_core.files import expand_path

if TYPE_CHECKING:
    from strata_core.corpus.format import StructureInfo
    from strata_core.corpus.preparing.preparation import PreparedCorpus

_COUNT_NAMES = {"tokens": "sentence_tokens"}
"""Counts of annotated sentences that go under another name beside those of the text."""


def prepare_corpus(
    inputs: Sequence[str | Path], *, out: str | Path, options: Mapping[str, Any], json_output: bool, quiet: bool
) -> int:
    """Prepares a corpus, shows progress and the result, and returns the exit code.

    Args:
        inputs: files and folders, and "-" for standard input.
        out: the directory to make.
        options: the command's other options by name, as recipes call them; None stands for the default.
        json_output: whether the result is one JSON object.
        quiet: whether only warnings and errors are shown.
    """
    from strata_core.corpus.graphs.inputs import find_graph_input
    from strata_core.corpus.sources.samples import GRAPH_SAMPLES

    given = {name: value for name, value in options.items() if value is not None}
    sample = given.pop("sample", None)
    if sample is not None and inputs:
        raise UsageError("both inputs and a sample are given", hint="leave one of them out")
    if sample is not None and given.get("format", "auto") != "auto":
        raise UsageError(f"--format {given['format']}: a sample has a form of its own", hint="leave --format out")
    graphs = sample if sample in GRAPH_SAMPLES else find_graph_input(inputs, given.get("format", "auto"))
    if graphs is not None:
        return prepare_graphs(graphs, expand_path(out), given, json_output=json_output, quiet=quiet)
    return _prepare_text(inputs, sample, expand_path(out), given, json_output=json_output, quiet=quiet)


def _prepare_text(
    inputs: Sequence[str | Path],
    sample: str | None,
    out: Path,
    given: Mapping[str, Any],
    *,
    json_output: bool,
    quiet: bool,
) -> int:
    from strata_core.corpus.preparing import preparation
    from strata_core.corpus.preparing.settings import PreparationSettings

    for_graphs = [option_name(name) for name in GRAPH_OPTIONS if name in given]
    if for_graphs:
        raise UsageError(f"{', '.join(for_graphs)}: for corpora of graphs, and these are none", hint="see --format")
    if "tokenizer" in given and "vocab_size" in given:
        raise UsageError(
            "both a tokenizer and a vocabulary size are given",
            hint="a tokenizer that is given has its own size: leave --vocab-size out",
        )
    texts = dict(given)
    if "tokenizer" in texts:
        texts["tokenizer"] = expand_path(texts["tokenizer"])
    if "roles" in texts:
        texts["roles"] = tuple(texts["roles"])
    settings = PreparationSettings(**texts)
    with shown_progress(quiet=quiet) as observer:
        if sample is not None:
            prepared = preparation.prepare_sample(sample, out, settings, observer=observer)
        else:
            prepared = preparation.prepare_corpus(
                inputs, out, settings, standard_input=sys.stdin.buffer if sys.stdin else None, observer=observer
            )
    if json_output:
        write_json(_result(prepared))
    elif not quiet:
        write_pairs(f"corpus: {prepared.path}", _rows(prepared))
        write_text(f"\nnext:\n  {training_command(prepared.path)}")
    return 0


def _result(prepared: PreparedCorpus) -> dict[str, Any]:
    info = prepared.info
    structure = {} if info.structure is None else _structure_result(info.structure)
    return {
        "corpus_dir": str(prepared.path),
        "kind": info.kind,
        "understood": [asdict(one) for one in prepared.understood],
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
