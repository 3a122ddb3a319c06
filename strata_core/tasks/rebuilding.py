"""What recipes say of a model, read off the shape in a config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_FROM_THE_CORPUS = frozenset(
    ("vocab_size", "n_relations", "n_node_types", "n_roles", "n_chart_items", "n_xpos", "n_feats", "n_lemma_rules")
)


def described_shape(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a recipe says of a part of a model; the rest follows from the corpus."""
    return {name: value for name, value in values.items() if name not in _FROM_THE_CORPUS}


def graph_recipe_tables(config: Mapping[str, Any]) -> dict[str, Any]:
    """`TaskKind.recipe_tables` of every kind that reads graphs: what the tables of a graph recipe know of a config."""
    from strata_core.recipes.graph import GraphModelTable

    shape = config["model"]
    model = {name: value for name, value in {**config, **shape}.items() if name in GraphModelTable.model_fields}
    objectives = {"max_count": "largest_number", "on_policy_selection": "on_policy_selection"}
    objective = {name: shape[field] for name, field in objectives.items() if field in shape}
    if "composition_augmentation" in config:
        objective["composition_augmentation"] = config["composition_augmentation"]
    evaluation = {"bracketings": config["bracketings"]} if "bracketings" in config else {}
    return {"kind": "graph", "model": model, "objective": objective, "evaluation": evaluation}
