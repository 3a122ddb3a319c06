"""What somebody may have meant by a key that does not exist."""

from __future__ import annotations

import difflib

from strata_core.recipes.keys import key_names

_FORMER_NAMES = {
    "grad_accum": "it follows from batch.batch_size and batch.micro_batch_size",
    "ud_max_len": "it is called batch.max_sentence_len",
    "lambda_ud_arc": "it is called objective.ud.arc",
    "lambda_ud_rel": "it is called objective.ud.relation",
    "lambda_node_type": "it is called objective.ud.node_type",
    "lambda_srl_predicate": "it is called objective.srl.predicate",
    "lambda_srl_role": "it is called objective.srl.role",
    "lambda_srl_core_role": "it is called objective.srl.core_role",
    "lambda_chart_type": "it is called objective.chart.type",
    "chart_scheme": "it is called objective.chart.scheme",
    "ckpt_every": "it is called checkpoint.every",
    "ddp_static_graph": "it is called distributed.static_graph",
    "eval_every": "it is called evaluation.every",
    "evaluation_every": "it is called evaluation.every",
    "save_every": "it is called checkpoint.every",
    "gradient_accumulation": "it follows from batch.batch_size and batch.micro_batch_size",
    "backward_chunk_size": "it is called batch.micro_batch_size",
    "batched_forward": "forward passes are always batched, batch.micro_batch_size examples at a time",
    "pat": "it is called objective.path_alignment",
}


def suggestion(kind: str, dotted: str) -> str:
    """A remark on an unknown key: its table, its present name, or the nearest key; "" where there is none."""
    known = key_names(kind)
    tables = sorted({key.rpartition(".")[0] for key in known} - {""})
    leaf = dotted.rpartition(".")[2]
    elsewhere = _outermost([key for key in known if key.rpartition(".")[2] == leaf])
    if elsewhere:
        return f"it belongs in {' or '.join(_table(key) for key in elsewhere)}: {' or '.join(elsewhere)}"
    former = _FORMER_NAMES.get(leaf, "")
    if any(key in former for key in known if "." in key):
        return former
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
