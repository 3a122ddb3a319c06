"""A corpus directory of graphs: what its `corpus.json` says, and the directory opened."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from strata_core.corpus.corpus_folder import corpus_folder
from strata_core.corpus.flat_arrays import json_bytes, read_versioned_json
from strata_core.corpus.format import CORPUS_JSON, FORMAT_VERSION, SourceInfo
from strata_core.corpus.graphs.example import Mode
from strata_core.corpus.graphs.layout import GRAPHS_FOLDER
from strata_core.corpus.graphs.names import GraphNames
from strata_core.corpus.graphs.reading import GraphReader
from strata_core.errors import DataError, UsageError
from strata_core.files import write_file
from strata_core.manifest import Manifest

KIND = "graph"


@dataclass(frozen=True)
class GraphCorpusInfo:
    """The content of `corpus.json`. Nothing in it depends on the clock or the machine.

    Attributes:
        origin: "reasoning", "triples", "clutrr" or "graphs".
        splits: for each split, how many graphs, nodes, edges, examples, answers and paths it has.
        relations, node_types, entities, targets: how many names of each there are (names.json).
        generator: version and settings of generated examples; empty for others.
        findings: what a person should know of the sources, as counts: repeated triples, unseen entities.
        sources: what was read.
    """

    origin: str
    splits: dict[str, dict[str, int]]
    relations: int
    node_types: int
    entities: int
    targets: int
    generator: dict[str, Any]
    findings: dict[str, Any]
    sources: tuple[SourceInfo, ...]

    def write(self, folder: Path) -> None:
        """Writes `corpus.json`; equal values give equal bytes.

        Raises:
            StorageError: the file system refused.
        """
        write_file(folder / CORPUS_JSON, json_bytes({"format_version": FORMAT_VERSION, "kind": KIND, **asdict(self)}))

    @classmethod
    def read(cls, folder: Path) -> GraphCorpusInfo:
        """Reads `corpus.json`.

        Raises:
            DataError: absent, not understood, or of another kind of corpus.
        """
        keys = tuple(field.name for field in fields(cls))
        value = read_versioned_json(folder / CORPUS_JSON, format_version=FORMAT_VERSION, keys=("kind",))
        if value["kind"] != KIND:
            raise DataError(
                f"{folder / CORPUS_JSON}: a corpus of kind {value['kind']!r}, not {KIND!r}",
                hint="strata train-lm takes corpora of text, strata train-graph those of graphs",
            )
        missing = [key for key in keys if key not in value]
        if missing:
            raise DataError(f"{folder / CORPUS_JSON}: {', '.join(missing)} missing", hint="prepare the corpus again")
        sources = tuple(SourceInfo(**source) for source in value["sources"])
        return cls(**{key: value[key] for key in keys} | {"sources": sources})


@dataclass(frozen=True)
class GraphCorpus:
    """An open corpus of graphs.

    Attributes:
        path: the directory.
        info: the content of its `corpus.json`.
        names: what the numbers in it stand for.
        digest: of its manifest, 64 hexadecimal digits; this is what runs name as their parent.
    """

    path: Path
    info: GraphCorpusInfo
    names: GraphNames
    digest: str

    @property
    def tokenizer_path(self) -> None:
        """There is no text, and so no tokenizer."""

    def split(self, name: str) -> GraphReader:
        """The graphs and examples of one of `info.splits`.

        Raises:
            UsageError: there is no such split.
            DataError: its files are not whole.
        """
        if name not in self.info.splits:
            raise UsageError(f"{self.path}: no split {name!r}", hint=f"it has {', '.join(self.info.splits)}")
        return GraphReader(self.path / GRAPHS_FOLDER / name)

    @property
    def asks_for_labels(self) -> bool:
        """Whether all training examples ask for the label that relates two nodes.

        Raises:
            DataError: the files of the training split are not whole.
        """
        modes = self.split("train").arrays["modes"]
        return self.info.origin in ("clutrr", "graphs") and len(modes) > 0 and bool((modes == Mode.RELATION).all())


def open_graph_corpus(path: str | os.PathLike[str]) -> GraphCorpus:
    """Opens a corpus directory of graphs; nothing is hashed.

    Raises:
        UsageError: there is nothing at `path`.
        DataError: not a corpus of graphs that this program reads.
    """
    folder = corpus_folder(path)
    info = GraphCorpusInfo.read(folder)
    names = GraphNames.read(folder / GRAPHS_FOLDER)
    return GraphCorpus(folder, info, names, Manifest.read(folder).digest)
