"""What somebody may have meant by a key that does not exist."""

from __future__ import annotations

import difflib

from strata_core.recipes.keys import key_names

FORMER_NAMES = {
    "grad_accum": "batch.batch_size",
    "ckpt_every": "checkpoint.every",
    "ddp_static_graph": "distributed.static_graph",
    "lambda_ud_arc": "objective.ud.arc",
    "lambda_ud_rel": "objective.ud.relation",
    "lambda_node_type": "objective.ud.node_type",
    "ud_max_len": "batch.max_sentence_len",
    "lambda_srl_predicate": "objective.srl.predicate",
    "lambda_srl_role": "objective.srl.role",
    "srl_none_weight": "objective.srl.none_weight",
    "lambda_srl_core_role": "objective.srl.core_role",
    "lambda_chart_type": "objective.chart.type",
    "lambda_graph_object_aux": "objective.graph_object.aux",
    "lambda_graph_object_role_edit": "objective.graph_object.role_edit",
    "lambda_graph_object_role_edit_stability": "objective.graph_object.role_edit_stability",
    "lambda_graph_object_role_edit_untyped_null": "objective.graph_object.role_edit_untyped_null",
    "lambda_graph_object_role_edit_random_null": "objective.graph_object.role_edit_random_null",
    "lambda_role_edit": "objective.role_edit.follow",
    "lambda_role_edit_specificity": "objective.role_edit.specificity",
    "lambda_role_edit_scope": "objective.role_edit.scope",
    "role_edit_batch_size": "objective.role_edit.batch_size",
    "role_edit_margin": "objective.role_edit.margin",
    "role_edit_scope_tolerance": "objective.role_edit.scope_tolerance",
    "role_edit_bias_value": "objective.role_edit.bias_value",
    "role_edit_override_scope": "objective.role_edit.override_scope",
    "graph_object_intervention": "model.graph_object_memory.intervention",
    "graph_object_predicate_memory_dropout": "model.graph_object_memory.predicate_memory_dropout",
    "graph_object_anneal_final_learned_weight": "model.graph_object_memory.anneal_final_learned_weight",
    "graph_object_readback_learned_weight": "model.graph_object_memory.learned_weight",
    "freeze_non_graph_object_parameters": "model.graph_object_memory.train_alone",
    "evaluation_every": "evaluation.every",
    "eval_every": "evaluation.every",
    "save_every": "checkpoint.every",
    "gradient_accumulation": "batch.batch_size",
    "backward_chunk_size": "batch.micro_batch_size",
    "batched_forward": "batch.micro_batch_size",
    "pat": "objective.path_alignment",
}
"""The keys of settings that had another name in the earlier training loops (docs/knobs.md), by the last part."""

_REMARKS = {
    "grad_accum": "it follows from batch.batch_size and batch.micro_batch_size",
    "gradient_accumulation": "it follows from batch.batch_size and batch.micro_batch_size",
    "batched_forward": "forward passes are always batched, batch.micro_batch_size examples at a time",
}
"""What is said of old names that are not just called something else."""


def suggestion(kind: str, dotted: str) -> str:
    """A remark on an unknown key: its table, its present name, or the nearest key; "" where there is none."""
    known = key_names(kind)
    tables = sorted({key.rpartition(".")[0] for key in known} - {""})
    leaf = dotted.rpartition(".")[2]
    elsewhere = _outermost([key for key in known if key.rpartition(".")[2] == leaf])
    if elsewhere:
        return f"it belongs in {' or '.join(_table(key) for key in elsewhere)}: {' or '.join(elsewhere)}"
    former = FORMER_NAMES.get(leaf)
    if former in known:
        return _REMARKS.get(leaf, f"it is called {former}")
    if "." not in dotted:
        near_table = difflib.get_close_matches(dotted, tables, n=1)
        if near_table:
            return f"did you mean [{near_table[0]}]?"
    near = difflib.get_close_matches(dotted, known, n=1, cutoff=0.75) or _near_leaf(leaf, known)
    return f"did you mean {near[0]}?" if near else ""


def _outermost(keys: list[str]) -> list[str]:
    least = min((key.count(".") for key in keys), default=0)
    return [key for key in keys if key.count(".") == least]


def _table(key: str) -> str:
    table = key.rpartition(".")[0]
    return f"[{table}]" if table else "the top of the file"


def _near_leaf(leaf: str, known: tuple[str, ...]) -> list[str]:
    leaves = {key.rpartition(".")[2]: key for key in known}
    return [leaves[near] for near in difflib.get_close_matches(leaf, leaves, n=1, cutoff=0.75)]
