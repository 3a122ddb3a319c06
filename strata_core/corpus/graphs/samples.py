"""Built-in samples of graphs as corpora: prepared into a cache when they are first asked for."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from strata_core.corpus.format import FORMAT_VERSION
from strata_core.corpus.generators.reasoning import GENERATOR_VERSION
from strata_core.corpus.graphs.corpus import open_graph_corpus
from strata_core.corpus.graphs.layout import FORMAT_VERSION as GRAPHS_FORMAT_VERSION
from strata_core.corpus.graphs.preparation import GraphSettings, prepare_graph_sample
from strata_core.corpus.preparing.samples import made_once
from strata_core.corpus.sources.samples import GRAPH_SAMPLES
from strata_core.errors import UsageError
from strata_core.observer import SILENT, Observer


def graph_sample_corpus(name: str, settings: GraphSettings, *, observer: Observer = SILENT) -> Path:
    """The corpus directory of a built-in sample of graphs; made on first use, by one process while others wait for it.

    Another version of the generator, or other settings, are another directory.

    Raises:
        UsageError: no sample has that name, or settings that cannot be.
        StorageError: the cache cannot be written.
    """
    if name not in GRAPH_SAMPLES:
        raise UsageError(f"there is no sample {name!r}", hint=f"samples of graphs: {', '.join(GRAPH_SAMPLES)}")
    reasoning = settings.reasoning()
    reasoning.check()
    return made_once(
        name,
        [FORMAT_VERSION, GRAPHS_FORMAT_VERSION, GENERATOR_VERSION, asdict(reasoning)],
        check=_check,
        make=lambda folder: prepare_graph_sample(name, folder, settings, observer=observer),
        observer=observer,
    )


def _check(folder: Path) -> None:
    corpus = open_graph_corpus(folder)
    for split in corpus.info.splits:
        corpus.split(split)
