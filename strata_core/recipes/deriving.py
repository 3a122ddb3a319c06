"""Settings that follow from others, filled in, so that a loaded recipe leaves nothing open."""

from __future__ import annotations

from typing import Any

from strata_core.recipes.graph import GraphBatchTable, GraphRecipe
from strata_core.recipes.lm import LMModelTable, LMRecipe
from strata_core.recipes.tables import TrainingRecipe

FOLLOWING_MAX_STEPS = ("optimizer.schedule_steps", "optimizer.warmup_steps", "model.graph_object_memory.anneal_steps")
"""Derived settings that follow run.max_steps, the one setting to follow that a resume may raise."""

_FEED_FORWARD_MULTIPLE = 64


def fill_derived(recipe: TrainingRecipe) -> TrainingRecipe:
    """The recipe with every derived setting at its value; what was written stays as it is.

    A warm-up given as a ratio becomes steps, rounded to the nearest and below the schedule's length.
    """
    optimizer, batch = recipe.optimizer, recipe.batch
    schedule_steps = _first(optimizer.schedule_steps, recipe.run.max_steps)
    warmup_steps = optimizer.warmup_steps
    if optimizer.warmup_ratio is not None:
        longest = min(schedule_steps, recipe.run.max_steps) - 1
        warmup_steps = min(round(optimizer.warmup_ratio * schedule_steps), longest)
    filled = recipe.model_copy(
        update={
            "optimizer": optimizer.model_copy(
                update={"schedule_steps": schedule_steps, "warmup_steps": warmup_steps, "warmup_ratio": None}
            ),
            "batch": batch.model_copy(update={"micro_batch_size": _first(batch.micro_batch_size, batch.batch_size)}),
        }
    )
    if isinstance(filled, GraphRecipe):
        return filled.model_copy(update={"batch": _graph_batch(filled)})
    return filled.model_copy(update={"model": _transformer(filled)}) if isinstance(filled, LMRecipe) else filled


def _graph_batch(recipe: GraphRecipe) -> GraphBatchTable:
    group_size = _first(recipe.batch.relation_group_size, recipe.batch.micro_batch_size)
    return recipe.batch.model_copy(update={"relation_group_size": group_size})


def _transformer(recipe: LMRecipe) -> LMModelTable:
    model, batch, graphs = recipe.model, recipe.batch, recipe.model.graph_object_memory
    longest = max(batch.seq_len, batch.max_sentence_len if batch.sentences else 0)
    return model.model_copy(
        update={
            "n_kv_heads": _first(model.n_kv_heads, model.n_heads),
            "d_ff": _first(model.d_ff, _feed_forward_width(model.d_model)),
            "max_seq_len": _first(model.max_seq_len, longest),
            "memory_layer": _first(model.memory_layer, model.n_layers // 2),
            "graph_object_memory": graphs.model_copy(
                update={"anneal_steps": _first(graphs.anneal_steps, recipe.run.max_steps)}
            ),
        }
    )


def _first(written: Any, otherwise: int) -> int:
    return otherwise if written is None else written


def _feed_forward_width(d_model: int) -> int:
    """8/3 of the width, so that three SwiGLU matrices are as large as two of 4 d_model (Shazeer 2020)."""
    return -(-8 * d_model // (3 * _FEED_FORWARD_MULTIPLE)) * _FEED_FORWARD_MULTIPLE
