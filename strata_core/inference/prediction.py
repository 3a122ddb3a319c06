"""From a trained model and a file to the bytes of a file of predictions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch

from strata_core.corpus.graphs.names import GraphNames
from strata_core.corpus.sources.files import format_by_name
from strata_core.corpus.treebanks.conllu_writing import write_conllu
from strata_core.errors import UsageError
from strata_core.observer import SILENT, Observer
from strata_core.tasks.graph_queries.prediction import GraphPredictor
from strata_core.tasks.link_prediction.prediction import LinkPredictor
from strata_core.tasks.link_prediction.query_file import read_link_queries
from strata_core.tasks.query_files import read_queries
from strata_core.tasks.relation_prediction.prediction import LabelPredictor
from strata_core.tasks.sentence_structure.prediction import StructurePredictor
from strata_core.tasks.sentence_structure.sentence_files import check_input, format_of_sentences, read_sentences
from strata_core.training.distributed import choose_device
from strata_core.training.precision import choose_precision
from strata_core.training.trained import BEST_OR_LATEST, Trained, find_trained

Autocast = Callable[[], AbstractContextManager[Any]]
Query = TypeVar("Query")

_ANSWERING: dict[str, type[GraphPredictor | LabelPredictor]] = {
    "graph-reasoner": GraphPredictor,
    "path-composition": LabelPredictor,
}
"""For each kind of model that answers queries over graphs of their own, what asks it."""


class _Predictor(Protocol[Query]):
    names: GraphNames

    def answer(self, examples: list[Query], progress: Callable[[int, int], None]) -> Iterator[dict[str, Any]]: ...


def predict_file(
    path: Path,
    file: str,
    *,
    format: str = "auto",
    choose: str = BEST_OR_LATEST,
    device: str = "auto",
    observer: Observer = SILENT,
) -> bytes:
    """What a trained model says of the content of a file.

    Args:
        path: a run, or a checkpoint folder.
        file: sentences for a structured language model, queries for a reasoner, with their graphs unless the model is
            of one knowledge graph; "-" is standard input.
        format: for sentences a name of `sentence_input.FORMATS`, for graphs "jsonl"; or "auto".
        choose: which checkpoint of a run; see `find_trained`.
        device: "auto", "cpu", "cuda" or "mps".
        observer: shown the progress.

    Returns:
        CoNLL-U, with the columns UP:PRED and UP:ARGHEADS where predicates were learned; or JSON Lines of answers.

    Raises:
        UsageError: no such run, checkpoint, file or device, a model that has nothing to say of such files, or one of a
            knowledge graph that is not in its run, or whose corpus is not there as it was.
        DataError: the checkpoint is not whole, or the file has faults; they are listed.
    """
    check_input(file)
    place = choose_device(device, 0)
    trained = find_trained(path, choose=choose, observer=observer)
    recipe = None if trained.run is None else trained.run.recipe_with(())[0]
    asked = "fp32" if recipe is None else recipe.run.precision
    force = recipe is not None and recipe.run.force_precision
    autocast = choose_precision(asked, place, force=force).autocast(place)
    kind = str(trained.config.get("kind"))
    if kind == "lm":
        raise UsageError(
            f"{trained.checkpoint.path} is a language model of text alone, which has no annotation or answers to give",
            hint="strata predict is for models trained with structure (lm/mixed, lm/ud, ...) or on graphs",
        )
    if kind == "structured-lm":
        return _annotated(trained, file, format, place, autocast, observer)
    if kind in _ANSWERING:
        _check_queries(file, format)
        answering = _ANSWERING[kind](trained, place, autocast)
        return _answered(answering, partial(read_queries, check=answering.problems), file, observer)
    if kind == "knowledge-graph":
        _check_queries(file, format)
        return _answered(LinkPredictor(trained, place, autocast, observer), read_link_queries, file, observer)
    raise UsageError(
        f"{trained.checkpoint.path} is a model of kind {kind!r}: there is no file that it could be asked about",
        hint="strata predict is for models of sentences and of graphs",
    )


def _check_queries(file: str, format: str) -> None:
    """Refuses sentences, by the format that is asked for or by the file's name."""
    found = (format_of_sentences(file) or "jsonl") if format == "auto" else format
    if found != "jsonl":
        what = file if format == "auto" else f"--format {format}"
        raise UsageError(
            f"{what}: this model answers queries in JSON Lines",
            hint="name a file of queries (.jsonl); --format jsonl where its name does not tell",
        )


def _check_sentences(file: str, format: str) -> None:
    """Refuses JSON Lines, by the format that is asked for or by the file's name."""
    if format == "jsonl" or (format == "auto" and format_by_name(file) == "jsonl"):
        what = file if format == "auto" else f"--format {format}"
        raise UsageError(
            f"{what}: this model annotates sentences: text, tokens or CoNLL-U",
            hint="name a file of sentences (.txt, .tok, .conllu); --format text, tokens or conllu where its name does "
            "not tell",
        )


def _answered(
    predictor: _Predictor[Query], read: Callable[[str, GraphNames], list[Query]], file: str, observer: Observer
) -> bytes:
    examples = read(file, predictor.names)
    observer.stage_started("answering", len(examples), "queries")
    records = list(predictor.answer(examples, lambda done, total: observer.stage_advanced(done)))
    observer.stage_finished()
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def _annotated(
    trained: Trained, file: str, format: str, place: torch.device, autocast: Autocast, observer: Observer
) -> bytes:
    _check_sentences(file, format)
    predictor = StructurePredictor(trained, place, autocast)
    sentences = read_sentences(file, format=format)
    observer.stage_started("annotating", sum(len(sentence.forms) for sentence in sentences), "words")
    annotated = predictor.annotate(sentences, lambda done, total: observer.stage_advanced(done))
    observer.stage_finished()
    return "".join(write_conllu(annotated, roles=predictor.has_roles)).encode()
