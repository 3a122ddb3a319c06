"""Corpora of graphs: generated, from triples, or from CLUTRR; each made aside and renamed when it is whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from strata_core.corpus.clutrr import Kinship, clutrr_files, clutrr_names, kinship_examples, read_clutrr
from strata_core.corpus.flat_arrays import json_bytes
from strata_core.corpus.format import TRAIN, VAL, SourceInfo
from strata_core.corpus.generators.reasoning import (
    GENERATOR_VERSION,
    NAMES,
    SPLITS,
    ReasoningSettings,
    reasoning_examples,
)
from strata_core.corpus.generators.reasoning_report import reasoning_report
from strata_core.corpus.graph_corpus import GraphCorpusInfo
from strata_core.corpus.graph_example import GraphExample
from strata_core.corpus.graph_layout import GRAPHS_FOLDER
from strata_core.corpus.graph_names import GraphNames
from strata_core.corpus.graph_reading import GraphReader
from strata_core.corpus.graph_triples import SPLIT_NAMES, triples_names, write_triples_split
from strata_core.corpus.graph_writing import write_examples
from strata_core.corpus.stage import Stage
from strata_core.corpus.triples import Triples, read_triples
from strata_core.errors import DataError, UsageError
from strata_core.files import folder_made_whole, write_file
from strata_core.manifest import Manifest, hash_file, hash_files
from strata_core.observer import SILENT, Observer
from strata_core.randomness import derive_seed

REPORT_JSON = "report.json"


@dataclass(frozen=True)
class PreparedGraphs:
    """A corpus of graphs that has been made: its directory, its `corpus.json`, the digest of its manifest."""

    path: Path
    info: GraphCorpusInfo
    digest: str


def prepare_reasoning_corpus(
    out: Path, settings: ReasoningSettings | None = None, *, observer: Observer = SILENT
) -> PreparedGraphs:
    """Makes a corpus of generated examples, with a report.json on their balance and on baselines.

    Raises:
        UsageError: settings that cannot be.
        PlaceTakenError: `out` exists.
        StorageError: the file system refused.
    """
    settings = settings or ReasoningSettings()
    settings.check()
    wanted = [split for split in SPLITS if split in settings.n_examples]
    with folder_made_whole(out) as folder:
        for split in wanted:
            with _stage(observer, f"generating {split}", settings.n_examples[split]) as counted:
                examples = counted(reasoning_examples(settings, split))
                write_examples(folder / GRAPHS_FOLDER / split, examples, NAMES)
        observer.stage_started("judging baselines", None, "examples")
        readers = {split: GraphReader(folder / GRAPHS_FOLDER / split) for split in wanted}
        write_file(folder / REPORT_JSON, json_bytes(reasoning_report(readers, NAMES)))
        observer.stage_finished()
        generator = {"version": GENERATOR_VERSION, **asdict(settings)}
        return _finished(folder, out, "reasoning", wanted, NAMES, generator=generator)


def prepare_triples_corpus(
    source: Path, out: Path, *, columns: tuple[str, ...] | None = None, observer: Observer = SILENT
) -> PreparedGraphs:
    """Makes a corpus of a knowledge graph.

    Args:
        source: a folder in one of the layouts that triples.read_triples reads.
        out: the directory to make.
        columns: their order, where it is not the usual one of the layout.
        observer: told what a person should know of the triples.

    Raises:
        UsageError: `source` is not there, or columns that cannot be.
        DataError: a file is missing, or has a line that is no triple.
        PlaceTakenError: `out` exists.
        StorageError: the file system refused.
    """
    triples = read_triples(source, columns=columns)
    names = triples_names(triples)
    with folder_made_whole(out) as folder:
        for split, name in SPLIT_NAMES.items():
            write_triples_split(folder / GRAPHS_FOLDER / name, triples, split)
        findings = {
            "repeated": triples.repeated,
            "known": triples.known,
            "unseen_entities": triples.unseen_entities,
            "unseen_relations": triples.unseen_relations,
        }
        sources = [_source(path) for path in triples.files]
        made = _finished(
            folder, out, "triples", SPLIT_NAMES.values(), names, findings=findings, sources=sources
        )
    _tell_of_triples(triples, observer)
    return made


def prepare_clutrr_corpus(
    source: Path, out: Path, *, val_fraction: float = 0.05, observer: Observer = SILENT
) -> PreparedGraphs:
    """Makes a corpus of a folder of CLUTRR: "train", a "val" held out from it, and "test-02" and so on by hops.

    Args:
        source: a folder with train.jsonl and test_K.jsonl.
        out: the directory to make.
        val_fraction: the share of training examples held out, 0 <= val_fraction < 1; which ones, their ids tell.
        observer: told about progress.

    Raises:
        UsageError: `source` is not there, or a share that cannot be.
        DataError: a line that is no example, or nothing to train on.
        PlaceTakenError: `out` exists.
        StorageError: the file system refused.
    """
    if not 0 <= val_fraction < 1:
        raise UsageError(f"a validation share of {val_fraction} cannot be", hint="it is from 0 up to below 1")
    files = clutrr_files(source)
    splits = {split: _read_kinships(path) for split, path in files.items()}
    names = clutrr_names(splits[TRAIN])
    splits = {**_with_val(splits.pop(TRAIN), val_fraction), **splits}
    if not splits[TRAIN]:
        raise DataError(f"{files[TRAIN]}: no examples to train on")
    with folder_made_whole(out) as folder:
        for split, kinships in splits.items():
            with _stage(observer, f"writing {split}", len(kinships)) as counted:
                write_examples(folder / GRAPHS_FOLDER / split, counted(kinship_examples(kinships, names)), names)
        sources = [_source(path) for path in files.values()]
        return _finished(folder, out, "clutrr", splits, names, sources=sources)


def _read_kinships(path: Path) -> list[Kinship]:
    try:
        with open(path, "rb") as lines:
            return list(read_clutrr(lines, file=str(path)))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def _with_val(kinships: list[Kinship], val_fraction: float) -> dict[str, list[Kinship]]:
    splits: dict[str, list[Kinship]] = {TRAIN: [], VAL: []}
    for kinship in kinships:
        place = derive_seed(0, f"validation {kinship.id}") / 2.0**63
        splits[VAL if place < val_fraction else TRAIN].append(kinship)
    return splits


@contextmanager
def _stage(
    observer: Observer, name: str, total: int
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


def _finished(
    folder: Path,
    final: Path,
    origin: str,
    splits: Iterable[str],
    names: GraphNames,
    *,
    generator: dict[str, Any] | None = None,
    findings: dict[str, Any] | None = None,
    sources: Iterable[SourceInfo] = (),
) -> PreparedGraphs:
    """Adds names.json, corpus.json and the manifest."""
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
    return PreparedGraphs(final, info, manifest.digest)


def _source(path: Path) -> SourceInfo:
    entry = hash_file(path, name=os.fspath(path.name))
    return SourceInfo(path.name, entry.size, entry.sha256)


def _tell_of_triples(triples: Triples, observer: Observer) -> None:
    for split, count in triples.repeated.items():
        if count:
            observer.notice(f"{split}: {count:,} triples that came again were dropped")
    for split, count in triples.known.items():
        if count:
            observer.warning(f"{split}: {count:,} triples are in an earlier split as well")
    for what, counts in (("entities", triples.unseen_entities), ("relations", triples.unseen_relations)):
        for split, count in counts.items():
            if count:
                observer.notice(f"{split}: {count:,} {what} never occur in training")
