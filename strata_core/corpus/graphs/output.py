"""What every way of making a corpus of graphs ends with, and how it counts what it does."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strata_core.corpus.format import TRAIN, VAL, SourceInfo
from strata_core.corpus.graphs.corpus import GraphCorpusInfo
from strata_core.corpus.graphs.example import GraphExample
from strata_core.corpus.graphs.layout import GRAPHS_FOLDER
from strata_core.corpus.graphs.names import GraphNames
from strata_core.corpus.graphs.reading import GraphReader
from strata_core.corpus.sources.files import PassedOver, escape_name
from strata_core.corpus.sources.understood import Understood
from strata_core.corpus.stage import Stage
from strata_core.errors import UsageError
from strata_core.manifest import Manifest, hash_file, hash_files
from strata_core.observer import Observer
from strata_core.randomness import derive_seed

GRAPH_VAL_FRACTION = 0.05
"""Share of the training examples held out for validation where the sources have no such split."""


@dataclass(frozen=True)
class PreparedGraphs:
    """A corpus of graphs that has been made.

    Attributes:
        path: the directory.
        info: its `corpus.json`.
        digest: of its manifest.
        understood: what its inputs were taken for; empty where it was generated.
        passed_over: names inside a folder that were not read.
    """

    path: Path
    info: GraphCorpusInfo
    digest: str
    understood: tuple[Understood, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()


@contextmanager
def counted_stage(
    observer: Observer, name: str, total: int | None
) -> Iterator[Callable[[Iterable[GraphExample]], Iterator[GraphExample]]]:
    """A stage of so many examples; gives a function that counts those that pass."""
    observer.stage_started(name, total, "examples")
    stage = Stage(observer)

    def counted(examples: Iterable[GraphExample]) -> Iterator[GraphExample]:
        for example in examples:
            yield example
            stage.add(1)

    yield counted
    observer.stage_advanced(stage.done)
    observer.stage_finished()


def finish_corpus(
    folder: Path,
    final: Path,
    origin: str,
    splits: Iterable[str],
    names: GraphNames,
    *,
    generator: dict[str, Any] | None = None,
    findings: dict[str, Any] | None = None,
    sources: Iterable[SourceInfo] = (),
    understood: tuple[Understood, ...] = (),
    passed_over: tuple[PassedOver, ...] = (),
) -> PreparedGraphs:
    """Adds names.json, corpus.json and the manifest to the splits that are written.

    Args:
        folder: where the corpus is made.
        final: where it will be found.
        origin, generator, findings, sources: as GraphCorpusInfo has them.
        splits: their names, in order.
        names: what the numbers in them stand for.
        understood, passed_over: as PreparedGraphs has them.

    Raises:
        StorageError: the file system refused.
    """
    names.write(folder / GRAPHS_FOLDER)
    info = GraphCorpusInfo(
        origin=origin,
        splits={split: GraphReader(folder / GRAPHS_FOLDER / split).counts for split in splits},
        relations=len(names.relations),
        node_types=len(names.node_types),
        entities=len(names.entities),
        targets=len(names.targets),
        generator=generator or {},
        findings=findings or {},
        sources=tuple(sources),
    )
    info.write(folder)
    paths = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    manifest = Manifest(describes="corpus", files=tuple(hash_files(folder, paths)))
    manifest.write(folder)
    return PreparedGraphs(final, info, manifest.digest, understood, passed_over)


def source_info(path: Path) -> SourceInfo:
    """A file that was read."""
    entry = hash_file(path, name=os.fspath(path.name))
    return SourceInfo(escape_name(path.name), entry.size, entry.sha256)


def check_val_fraction(val_fraction: float) -> None:
    """Refuses a share that cannot be.

    Raises:
        UsageError: it is not from 0 up to below 1.
    """
    if not 0 <= val_fraction < 1:
        raise UsageError(f"a validation share of {val_fraction} cannot be", hint="it is from 0 up to below 1")


def split_by_id(identifier: str, val_fraction: float) -> str:
    """The split of a training example, by its id alone: "val" for about `val_fraction` of all examples."""
    return VAL if derive_seed(0, f"validation {identifier}") / 2.0**63 < val_fraction else TRAIN


def warn_of_empty_val(splits: Mapping[str, Sized], val_fraction: float, observer: Observer) -> None:
    """Warns where a share was to be held out of the training examples for validation and none came of it."""
    if val_fraction and not splits[VAL]:
        observer.warning(f"none of {len(splits[TRAIN]):,} examples fell into the validation split ({val_fraction:g})")
