"""What `strata prepare-corpus` does with graphs: triples, CLUTRR, JSON Lines of graphs, and generated examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata_cli.commands.training_command import training_command
from strata_cli.display.figures import count_text
from strata_cli.display.output import write_json, write_text
from strata_cli.display.progress import shown_progress
from strata_cli.display.table import write_pairs
from strata_core.errors import UsageError

if TYPE_CHECKING:
    from strata_core.corpus.graphs.inputs import GraphInput
    from strata_core.corpus.graphs.output import PreparedGraphs

_GENERATED = "generated examples"
_SAMPLE_OPTIONS = ("sample_examples", "sample_eval_examples", "sample_longest_hops", "sample_doubtful_share")
_TAKEN = {
    _GENERATED: ("sample_seed", *_SAMPLE_OPTIONS),
    "triples": ("columns", "val_fraction"),
    "clutrr": ("val_fraction",),
    "graphs": ("val_fraction", "on_error"),
}
"""The options that something has, for what a corpus of graphs is made from."""

GRAPH_OPTIONS = ("columns", *_SAMPLE_OPTIONS)
"""The options that have no meaning for text."""


def prepare_graphs(
    source: GraphInput | str, out: Path, given: Mapping[str, Any], *, json_output: bool, quiet: bool
) -> int:
    """Prepares a corpus of graphs, shows progress and the result, and returns the exit code.

    Args:
        source: what holds the graphs, or the name of a sample.
        out: the directory to make.
        given: the options that were given.
        json_output, quiet: as for all commands.

    Raises:
        UsageError: an option that has no meaning for this source.
        StrataError: what `strata_core.corpus.graphs.preparation` raises.
    """
    from strata_core.corpus.graphs import preparation as graph_preparation

    what = _GENERATED if isinstance(source, str) else source.format
    _refuse_others(given, what)
    options = {name: value for name, value in given.items() if name in _TAKEN[what]}
    settings = graph_preparation.GraphSettings(**options)
    with shown_progress(quiet=quiet) as observer:
        if isinstance(source, str):
            prepared = graph_preparation.prepare_graph_sample(source, out, settings, observer=observer)
        else:
            prepared = graph_preparation.prepare_graphs(source, out, settings, observer=observer)
    if json_output:
        write_json(_result(prepared))
    elif not quiet:
        write_pairs(f"corpus: {prepared.path}", _rows(prepared))
        write_text(f"\nnext:\n  {training_command(prepared.path)}")
    return 0


def _refuse_others(given: Mapping[str, Any], what: str) -> None:
    others = [name for name in given if name not in (*_TAKEN[what], "format")]
    if others:
        names = ", ".join(option_name(name) for name in others)
        taken = ", ".join(option_name(name) for name in _TAKEN[what])
        raise UsageError(f"{names}: nothing that a corpus of {what} has", hint=f"it takes {taken}")


def option_name(key: str) -> str:
    """The option for a key of a corpus recipe."""
    return f"--{key.replace('_', '-')}"


def _result(prepared: PreparedGraphs) -> dict[str, Any]:
    info = prepared.info
    return {
        "corpus_dir": str(prepared.path),
        "kind": "graph",
        "origin": info.origin,
        "understood": [asdict(one) for one in prepared.understood],
        "documents": None,
        "tokens": None,
        "vocab_size": None,
        "examples": _total(prepared, "examples"),
        "graphs": _total(prepared, "graphs"),
        "splits": info.splits,
        "relations": info.relations,
        "node_types": info.node_types,
        "entities": info.entities,
        "targets": info.targets,
        "generator": info.generator,
        "findings": {name: found for name, found in info.findings.items() if name != "skipped"},
        "skipped": info.findings.get("skipped", {}),
        "not_read": [asdict(one) for one in prepared.passed_over],
        "digest": prepared.digest,
    }


def _total(prepared: PreparedGraphs, what: str) -> int:
    return sum(counts[what] for counts in prepared.info.splits.values())


def _rows(prepared: PreparedGraphs) -> list[tuple[str, str]]:
    info = prepared.info
    rows = [
        (name, ", ".join(f"{count_text(counts[what])} {what}" for what in ("examples", "graphs", "nodes", "edges")))
        for name, counts in info.splits.items()
    ]
    kinds = {
        "relations": info.relations,
        "node types": info.node_types,
        "entities": info.entities,
        "labels": info.targets,
    }
    rows.append(("names", ", ".join(f"{count_text(count)} {kind}" for kind, count in kinds.items() if count)))
    rows.append(("digest", prepared.digest))
    return rows
