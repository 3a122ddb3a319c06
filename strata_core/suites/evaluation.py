"""A language model, or two against each other, on a suite."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from strata_core.errors import UsageError
from strata_core.evaluation.bootstrap import paired_bootstrap
from strata_core.inference.causal_model import CausalModel
from strata_core.observer import SILENT, Observer
from strata_core.suites.blimp import read_blimp
from strata_core.suites.minimal_pairs import PairScores, score_pairs
from strata_core.suites.pair_file import read_pair_file
from strata_core.suites.pairs import PairReader
from strata_core.suites.syntaxgym import SuiteScore, read_syntaxgym, score_suite
from strata_core.suites.word_counts import count_words
from strata_core.suites.zorro import read_zorro

PAIR_SUITES: dict[str, PairReader] = {"blimp": read_blimp, "zorro": read_zorro}
"""Suites of pairs by name."""

SYNTAXGYM = "syntaxgym"
SEED = 0


def evaluate_suite(
    model: CausalModel,
    suite: str,
    path: Path | None,
    *,
    other: CausalModel | None = None,
    min_count: int | None = None,
    count_corpus: Path | None = None,
    observer: Observer = SILENT,
) -> dict[str, Any]:
    """What a model scores on a suite, and how another differs from it.

    Args:
        model: with a causal pass.
        suite: a name of PAIR_SUITES, SYNTAXGYM, or a file of pairs.
        path: where a suite with a name is.
        other: compared with the model, the other minus the model.
        min_count: only pairs of words that occur so often in the training split of count_corpus.
        count_corpus: a corpus of text.
        observer: shown the progress.

    Returns:
        JSON values: "suite", "accuracy", and what the kind of suite has; with `other` also "compare".

    Raises:
        UsageError: no such suite or file, or options that do not go together.
        DataError: a file is malformed, or a sentence too long.
    """
    if (min_count is None) != (count_corpus is None):
        raise UsageError("--min-count and --count-corpus go together", hint="give both or neither")
    if suite == SYNTAXGYM:
        if min_count is not None:
            raise UsageError("--min-count is for suites of pairs")
        return _syntaxgym(model, other, _needed(path, suite), observer)
    if suite in PAIR_SUITES:
        read, place = PAIR_SUITES[suite], _needed(path, suite)
    else:
        read, place = read_pair_file, Path(suite)
        if path is not None:
            raise UsageError(
                "--suite-path is for suites with a name", hint=f"a file of pairs is named by --suite {path}"
            )
        if not place.is_file():
            known = ", ".join([*PAIR_SUITES, SYNTAXGYM])
            raise UsageError(
                f"--suite {suite}: neither a suite nor a file", hint=f"suites: {known}; or a file of pairs"
            )
    counts = None if count_corpus is None else count_words(count_corpus)
    both = [
        score_pairs(one, read(place), counts=counts, min_count=min_count or 1, observer=observer)
        for one in (model, other)
        if one is not None
    ]
    result = {"suite": suite, **both[0].to_json()}
    if other is not None:
        result["compare"] = _compared_pairs(other, *both)
    return result


def _needed(path: Path | None, suite: str) -> Path:
    if path is None:
        raise UsageError(f"--suite {suite} needs --suite-path", hint="name the folder that its files are in")
    return path


def _compared_pairs(other: CausalModel, ours: PairScores, theirs: PairScores) -> dict[str, Any]:
    by_name = zip(ours.grouped(0).items(), theirs.grouped(0).values(), strict=True)
    return {
        "path": other.name,
        **_difference(ours.by_sum, theirs.by_sum),
        "phenomena": {name: _difference(first, second) for (name, first), second in by_name},
    }


def _difference(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, Any]:
    """The other's accuracy, and how far it is from ours (paired bootstrap over pairs or items)."""
    if not ours:
        return {"accuracy": None, "difference": None, "low": None, "high": None, "p_value": None}
    first, second = (np.stack([scores, np.ones(len(scores))], axis=1) for scores in (ours, theirs))
    found = paired_bootstrap(first, second, seed=SEED)
    return {
        "accuracy": float(np.mean(theirs)),
        "difference": found.difference,
        "low": found.low,
        "high": found.high,
        "p_value": found.p_value,
    }


def _syntaxgym(model: CausalModel, other: CausalModel | None, path: Path, observer: Observer) -> dict[str, Any]:
    suites = read_syntaxgym(path)
    scored: list[dict[str, SuiteScore]] = []
    for one in (model, other):
        if one is None:
            continue
        observer.stage_started("scoring", len(suites), "suites")
        scores = {}
        for number, suite in enumerate(suites, 1):
            scores[suite.name] = score_suite(one, suite)
            observer.stage_advanced(number)
        observer.stage_finished()
        scored.append(scores)
    result: dict[str, Any] = {"suite": SYNTAXGYM, **_suite_accuracies(scored[0])}
    for name, score in scored[0].items():
        if score.unplaced:
            observer.warning(f"{name}: items {', '.join(score.unplaced)} have a token over two regions; left out")
    if other is not None:
        result["compare"] = _compared_suites(other, scored[0], scored[1])
    return result


def _suite_accuracies(scores: dict[str, SuiteScore]) -> dict[str, Any]:
    accuracies = {name: score.accuracy for name, score in scores.items()}
    known = [accuracy for accuracy in accuracies.values() if accuracy is not None]
    return {
        "accuracy": float(np.mean(known)) if known else None,
        "items": sum(len(score.results) for score in scores.values()),
        "suites": accuracies,
        "unplaced": {name: score.unplaced for name, score in scores.items() if score.unplaced},
    }


def _compared_suites(other: CausalModel, ours: dict[str, SuiteScore], theirs: dict[str, SuiteScore]) -> dict[str, Any]:
    """By suite, over the items that both models could place."""
    differences = {}
    for name, first in ours.items():
        by_number = [dict(zip(score.item_numbers, score.right, strict=True)) for score in (first, theirs[name])]
        shared = [number for number in by_number[0] if number in by_number[1]]
        differences[name] = _difference(*([scores[number] for number in shared] for scores in by_number))
    return {"path": other.name, "accuracy": _suite_accuracies(theirs)["accuracy"], "suites": differences}
