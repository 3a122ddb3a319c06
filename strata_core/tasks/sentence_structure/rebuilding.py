"""A recipe's tables for a checkpoint of a structured language model that came without its run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strata_core.recipes.lm import GRAPH_OBJECT_WEIGHTS, ROLE_EDIT_WEIGHTS, STRUCTURE_WEIGHTS
from strata_core.tasks.rebuilding import described_shape
from strata_core.tasks.sentence_structure.losses import loss_name

_SENTENCE_WEIGHTS = (*STRUCTURE_WEIGHTS, "graph_object.aux")


def recipe_tables(config: Mapping[str, Any]) -> dict[str, Any]:
    """See `TaskKind.recipe_tables`."""
    shape = config["model"]
    learned = set(config["learned"])
    transformer = described_shape(shape["transformer"])
    graphs, role_edit = (dict(config.get(name) or {}) for name in ("graph_object", "role_edit"))
    run = {"seed": graphs.pop("seed")} if graphs else {}
    model = {
        **transformer,
        "word_dropout": shape["word_dropout"],
        "memory_layer": shape["memory_layer"],
        "word_features": {"buckets": shape["feature_buckets"]},
        "heads": described_shape(shape["heads"]),
        "predicate_memory": _memory(shape["predicate_memory"]),
        "graph_object_memory": _memory(shape["graph_object_memory"]) | graphs,
        "segmenter": shape.get("segmenter") or {},
    }
    objective: dict[str, Any] = {
        "lm": float("lm" in learned),
        "segmentation": float("segmentation" in learned),
        "chart": {"scheme": config["chart_scheme"]},
        "role_edit": role_edit,
    }
    for key in (*_SENTENCE_WEIGHTS, *GRAPH_OBJECT_WEIGHTS, *ROLE_EDIT_WEIGHTS):
        table, name = key.split(".")
        objective.setdefault(table, {})[name] = float(loss_name(key) in learned)
    # Without a memory, sentences are what makes the run a structured one.
    has_memory = bool(shape["predicate_memory"] or shape["graph_object_memory"])
    reads_sentences = not has_memory or any(loss_name(key) in learned for key in _SENTENCE_WEIGHTS)
    longest = transformer["max_seq_len"]
    batch = {
        "seq_len": longest,
        "max_sentence_len": longest,
        "batch_size": 32,
        "sentences": 16 if reads_sentences else 0,
        "segments": 8 if "segmentation" in learned else 0,
    }
    return {"kind": "lm", "model": model, "objective": objective, "batch": batch, "run": run}


def _memory(values: Mapping[str, Any] | None) -> dict[str, Any]:
    if values is None:
        return {"enabled": False}
    return {"enabled": True, **{name: value for name, value in values.items() if name != "n_types"}}
