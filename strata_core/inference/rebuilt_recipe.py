"""A recipe for a checkpoint that came without its run: what config.json tells, and the kind's defaults for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from strata_core.errors import DataError
from strata_core.recipes.deriving import fill_derived
from strata_core.recipes.graph import GraphModelTable
from strata_core.recipes.kinds import recipe_model
from strata_core.recipes.lm import GRAPH_OBJECT_WEIGHTS, ROLE_EDIT_WEIGHTS, STRUCTURE_WEIGHTS
from strata_core.recipes.tables import TrainingRecipe
from strata_core.tasks.sentence_structure.losses import loss_name

_FROM_THE_CORPUS = ("vocab_size", "n_relations", "n_node_types", "n_roles", "n_chart_items")
_SENTENCE_WEIGHTS = (*STRUCTURE_WEIGHTS, "graph_object.aux")


def rebuilt_recipe(config: Mapping[str, Any], *, source: str) -> TrainingRecipe:
    """Settings under which a task builds the model of a config.json; they name no corpus.

    Args:
        config: the content of the file.
        source: what to call it in an error.

    Raises:
        DataError: it is of a kind, or has a value, that this version does not know.
    """
    kind = config.get("kind")
    makers = {"lm": _text_tables, "structured-lm": _structure_tables}
    maker = makers.get(str(kind), _graph_tables)
    try:
        tables = maker(config)
        return fill_derived(recipe_model(str(tables["kind"])).model_validate(tables))  # type: ignore[arg-type]
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        raise DataError(
            f"{source}: no model of kind {kind!r} can be built from it: {error}",
            hint="keep the checkpoint inside its run: the run's recipe tells the rest",
        ) from error


def _text_tables(config: Mapping[str, Any]) -> dict[str, Any]:
    model = _shape(config["model"])
    return {"kind": "lm", "model": model, "batch": {"seq_len": model["max_seq_len"], "batch_size": 16}}


def _structure_tables(config: Mapping[str, Any]) -> dict[str, Any]:
    shape = config["model"]
    learned = set(config["learned"])
    transformer = _shape(shape["transformer"])
    graphs, role_edit = (dict(config.get(name) or {}) for name in ("graph_object", "role_edit"))
    run = {"seed": graphs.pop("seed")} if graphs else {}
    model = {
        **transformer,
        "word_dropout": shape["word_dropout"],
        "memory_layer": shape["memory_layer"],
        "word_features": {"buckets": shape["feature_buckets"]},
        "heads": _shape(shape["heads"]),
        "predicate_memory": _memory(shape["predicate_memory"]),
        "graph_object_memory": _memory(shape["graph_object_memory"]) | graphs,
    }
    objective: dict[str, Any] = {
        "lm": float("lm" in learned),
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
    }
    return {"kind": "lm", "model": model, "objective": objective, "batch": batch, "run": run}


def _graph_tables(config: Mapping[str, Any]) -> dict[str, Any]:
    shape = config["model"]
    model = {name: value for name, value in {**config, **shape}.items() if name in GraphModelTable.model_fields}
    objectives = {"max_count": "largest_number", "on_policy_selection": "on_policy_selection"}
    objective = {name: shape[field] for name, field in objectives.items() if field in shape}
    if "composition_augmentation" in config:
        objective["composition_augmentation"] = config["composition_augmentation"]
    evaluation = {"bracketings": config["bracketings"]} if "bracketings" in config else {}
    return {"kind": "graph", "model": model, "objective": objective, "evaluation": evaluation}


def _shape(values: Mapping[str, Any]) -> dict[str, Any]:
    """What the recipe says of a part of the model; the rest follows from the corpus."""
    return {name: value for name, value in values.items() if name not in _FROM_THE_CORPUS}


def _memory(values: Mapping[str, Any] | None) -> dict[str, Any]:
    if values is None:
        return {"enabled": False}
    return {"enabled": True, **{name: value for name, value in values.items() if name != "n_types"}}
