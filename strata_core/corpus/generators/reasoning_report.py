"""How a set of generated examples is made up, and what baselines make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from strata_core.corpus.generators.reasoning_baselines import Baselines
from strata_core.corpus.graphs.example import Mode, PathKind, Status
from strata_core.corpus.graphs.layout import NOTHING
from strata_core.corpus.graphs.names import GraphNames
from strata_core.corpus.graphs.reading import GraphReader


def reasoning_report(splits: Mapping[str, GraphReader], names: GraphNames) -> dict[str, Any]:
    """The report on a generated corpus, as JSON takes it.

    Args:
        splits: all splits by name; baselines learn from "train", and are left out where there is none.
        names: of the relations.

    Returns:
        For each split "balance" (see `balance`) and, except for "train", "baselines": accuracies of "status", "number"
        and "answer", each with "chance", "no_graph", "no_query" and "n_examples".
    """
    report: dict[str, Any] = {name: {"balance": balance(reader, names)} for name, reader in splits.items()}
    if "train" in splits:
        baselines = Baselines(splits["train"], len(names.relations))
        for name in report.keys() - {"train"}:
            accuracies = baselines.accuracies(splits[name])
            report[name]["baselines"] = {kind: _rounded(asdict(accuracy)) for kind, accuracy in accuracies.items()}
    return report


def balance(reader: GraphReader, names: GraphNames) -> dict[str, Any]:
    """Counts of examples by status, mode, status within mode, hops and number; of paths by kind; sizes of graphs."""
    arrays = reader.arrays
    statuses, modes, hops = arrays["statuses"], arrays["modes"], reader.hop_counts
    numbers = arrays["numbers"]
    probabilities = arrays["supported_probabilities"]
    return {
        "examples": len(reader),
        "status": _counts(statuses, Status),
        "mode": _counts(modes, Mode),
        "status_by_mode": {
            mode.name.lower(): _counts(statuses[modes == mode], Status) for mode in Mode if (modes == mode).any()
        },
        "intersections": int((np.diff(arrays["branch_offsets"]) > 1).sum()),
        "hops": _value_counts(hops),
        "numbers": _value_counts(numbers[numbers != NOTHING]),
        "answers": _value_counts(np.diff(arrays["answer_offsets"])),
        "paths": _counts(arrays["path_kinds"], PathKind),
        "twins": int((arrays["twins"] != NOTHING).sum()),
        "uncertain": int(((probabilities > 0) & (probabilities < 1)).sum()),
        "first_steps": {
            names.relations[relation]: count
            for relation, count in enumerate(np.bincount(_first_steps(reader), minlength=1).tolist())
            if count
        },
        "nodes": _range(reader.node_counts),
        "edges": _range(reader.edge_counts),
    }


def _first_steps(reader: GraphReader) -> np.ndarray:
    return np.asarray(reader.arrays["steps"][reader.arrays["step_offsets"][:-1]])


def _counts(values: np.ndarray, kinds: type[Status] | type[Mode] | type[PathKind]) -> dict[str, int]:
    counts = np.bincount(values, minlength=256)
    return {kind.name.lower(): int(counts[kind]) for kind in kinds if counts[kind]}


def _value_counts(values: np.ndarray) -> dict[str, int]:
    different, counts = np.unique(values, return_counts=True)
    return {str(value): count for value, count in zip(different.tolist(), counts.tolist(), strict=True)}


def _range(values: np.ndarray) -> dict[str, float]:
    return {"min": int(values.min()), "mean": round(float(values.mean()), 2), "max": int(values.max())}


def _rounded(accuracy: dict[str, float]) -> dict[str, float]:
    return {key: round(value, 4) for key, value in accuracy.items()}
