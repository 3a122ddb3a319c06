"""SyntaxGym (Gauthier et al. 2020; Hu et al. 2020): items of conditions of regions, and what has to hold of them."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from strata_core.errors import DataError
from strata_core.inference.causal_model import CausalModel
from strata_core.suites.formula import Formula, parse_formula
from strata_core.suites.pairs import files_of
from strata_core.suites.scoring import encode_sentence, log_probabilities


@dataclass(frozen=True)
class Item:
    """One item: for each condition its regions, number and content, in order."""

    number: str
    conditions: Mapping[str, Sequence[tuple[str, str]]]
    where: str


@dataclass(frozen=True)
class Suite:
    """A file of SyntaxGym."""

    name: str
    formulas: tuple[Formula, ...]
    items: tuple[Item, ...]


@dataclass(frozen=True)
class SuiteScore:
    """What a model scored on a suite.

    Attributes:
        results: for each item that could be placed, whether each formula holds.
        item_numbers: of these items.
        unplaced: items of which a token reaches over the border of two regions.
    """

    results: list[list[bool]]
    item_numbers: list[str]
    unplaced: list[str]

    @property
    def right(self) -> list[float]:
        """1.0 for items of which all formulas hold, else 0.0."""
        return [float(all(result)) for result in self.results]

    @property
    def accuracy(self) -> float | None:
        """The share of items of which all formulas hold; None where none could be placed."""
        return float(np.mean(self.right)) if self.results else None


def read_syntaxgym(path: Path) -> list[Suite]:
    """The suites of a folder, or of one file.

    Raises:
        UsageError: there are none.
        DataError: a file is malformed, or a formula asks for what an item lacks.
    """
    return [_read_suite(file) for file in files_of(path, ("*.json",), "SyntaxGym's suites")]


def _read_suite(file: Path) -> Suite:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{file}: cannot be read as JSON: {error}") from None
    try:
        if (metric := content["meta"].get("metric", "sum")) != "sum":
            raise DataError(f"{file}: metric {metric!r}; only sums over regions are known")
        formulas = [one["formula"] for one in content["predictions"] if one["type"] == "formula"]
        if not formulas or len(formulas) < len(content["predictions"]):
            raise DataError(f"{file}: predictions that are not formulas, or none")
        items = tuple(_item(one, place, file) for place, one in enumerate(content["items"], 1))
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{file}: not a suite of SyntaxGym: {type(error).__name__}: {error}") from None
    parsed = tuple(parse_formula(str(text), where=str(file)) for text in formulas)
    _check_regions(parsed, items)
    return Suite(file.stem, parsed, items)


def _item(value: Any, place: int, file: Path) -> Item:
    where = f"{file}: item {value.get('item_number', place)}"
    conditions = {
        str(condition["condition_name"]): [
            (str(region["region_number"]), str(region["content"])) for region in condition["regions"]
        ]
        for condition in value["conditions"]
    }
    return Item(str(value.get("item_number", place)), conditions, where)


def _check_regions(formulas: Sequence[Formula], items: Sequence[Item]) -> None:
    for item in items:
        for condition, region in {region for formula in formulas for region in formula.regions}:
            if condition not in item.conditions:
                raise DataError(f"{item.where}: no condition {condition!r}, which a formula asks for")
            if region != "*" and region not in dict(item.conditions[condition]):
                raise DataError(f"{item.where}: no region {region} in {condition!r}, which a formula asks for")


def score_suite(model: CausalModel, suite: Suite) -> SuiteScore:
    """Which formulas hold, item by item, of surprisals (negative log probabilities, nats) summed over regions.

    Raises:
        DataError: a sentence is empty or too long for the model.
    """
    results, numbers, unplaced = [], [], []
    placed: list[tuple[Item, dict[str, list[str | None]]]] = []
    sentences: list[list[int]] = []
    for item in suite.items:
        owners: dict[str, list[str | None]] = {}
        tokens = []
        for name, regions in item.conditions.items():
            sentence, starts = sentence_of(regions)
            tokens.append(encode_sentence(model, sentence, item.where))
            owners[name] = region_owners(model, sentence, starts)
        if any(owner is None for condition in owners.values() for owner in condition):
            unplaced.append(item.number)
        else:
            placed.append((item, owners))
            sentences += tokens
    surprisals = iter(log_probabilities(model, sentences))
    for item, owners in placed:
        sums = {name: _sums(owners[name], -next(surprisals)) for name in item.conditions}
        results.append([formula.holds(partial(_surprisal, sums)) for formula in suite.formulas])
        numbers.append(item.number)
    return SuiteScore(results, numbers, unplaced)


def sentence_of(regions: Sequence[tuple[str, str]]) -> tuple[str, list[tuple[int, str]]]:
    """The contents of regions with one space between those that have any, and where each begins, in characters."""
    sentence, starts = "", []
    for number, content in regions:
        if content := content.strip():
            sentence += " " if sentence else ""
            starts.append((len(sentence), number))
            sentence += content
    return sentence, starts


def region_owners(model: CausalModel, sentence: str, starts: Sequence[tuple[int, str]]) -> list[str | None]:
    """The region that each token is of; None for a token that has parts of two.

    White space belongs to what follows it, as tokens of byte-level vocabularies have it.
    """
    begins = [start for start, _ in starts]
    spans = model.tokenizer.tokenizer.encode(sentence, add_special_tokens=False).offsets
    owners: list[str | None] = []
    for start, end in spans:
        visible = sentence[start:end]
        first = start + len(visible) - len(visible.lstrip())
        last = max(first, start + len(visible.rstrip()) - 1)
        # A token of white space alone is of the region after it.
        regions = {bisect_right(begins, place + (1 if not visible.strip() else 0)) for place in (first, last)}
        owners.append(starts[regions.pop() - 1][1] if len(regions) == 1 else None)
    return owners


def _surprisal(sums: Mapping[str, Mapping[str, float]], condition: str, region: str) -> float:
    # A region without content has no tokens.
    return sums[condition].get(region, 0.0)


def _sums(owners: Sequence[str | None], surprisals: np.ndarray) -> dict[str, float]:
    sums: dict[str, float] = {"*": float(surprisals.sum())}
    for owner, surprisal in zip(owners, surprisals, strict=True):
        assert owner is not None
        sums[owner] = sums.get(owner, 0.0) + float(surprisal)
    return sums
