"""README.md of an export: what the manifests say of the model, and nothing that nobody knows."""

from __future__ import annotations

from typing import Any

from strata_core import __version__
from strata_core.export.causal_part import CausalPart

_FRONT_MATTER = "---\nlibrary_name: transformers\npipeline_tag: text-generation\ntags:\n- strata\n- llama\n---\n"


def model_card(part: CausalPart, *, name: str, format: str, dtype: str) -> str:
    """The text of README.md, in Markdown.

    Args:
        part: the model.
        name: the heading.
        format: "hf" or "gguf".
        dtype: of the weights.
    """
    shape = part.shape
    parameters = sum(tensor.numel() for tensor in part.tensors.values())
    lines = [
        f"# {name}",
        "",
        f"A causal language model with {parameters:,} parameters, exported by strata {__version__}.",
        *_table(
            "Model",
            {
                "Architecture": "Llama",
                "Width": shape.d_model,
                "Blocks": shape.n_layers,
                "Heads": f"{shape.n_heads} of queries, {shape.n_kv_heads} of keys and values",
                "Feed-forward width": shape.d_ff,
                "Context": f"{shape.max_seq_len:,} tokens",
                "Vocabulary": f"{shape.vocab_size:,} tokens",
                "Weights": dtype,
            },
        ),
    ]
    if part.left_behind:
        lines += ["", f"Not in this export: {', '.join(part.left_behind)}."]
    lines += _training(part)
    lines += _table("Origin", {f"SHA-256 of the {part.parent.describes}'s manifest": f"`{part.parent.digest}`"})
    lines += ["", "`strata verify-manifest DIR` compares every file with `manifest.json`."]
    front = _FRONT_MATTER if format == "hf" else ""
    return front + "\n".join(lines) + "\n"


def _training(part: CausalPart) -> list[str]:
    if part.trained is None:
        return []
    facts: dict[str, Any] = {"Updates": f"{part.trained.step:,}"}
    run = part.trained.run
    if run is None:
        return _table("Training", facts)
    record = run.manifest.record
    recipe = part.trained.recipe()
    if recipe is not None and recipe.description:
        facts["Recipe"] = " ".join(recipe.description.split()).replace("|", "\\|")
    for key, shown in (("recipe_digest", "Recipe digest"), ("corpus_digest", "Corpus digest")):
        if isinstance(record.get(key), str):
            facts[shown] = f"`{record[key]}`"
    if "seed" in record:
        facts["Seed"] = record["seed"]
    return [*_table("Training", facts), *_figures(part.trained.step, run.evaluations.read())]


def _figures(step: int, evaluations: list[dict[str, Any]]) -> list[str]:
    """The last evaluation of that step on the validation split."""
    rows = [row for row in evaluations if row.get("step") == step]
    if not rows:
        return []
    shown = {
        key.replace("_", " "): f"{value:.6g}"
        for key, value in rows[-1].items()
        if key != "step" and isinstance(value, int | float) and not isinstance(value, bool)
    }
    return _table("Figures on the validation split", shown)


def _table(heading: str, facts: dict[str, Any]) -> list[str]:
    rows = [f"| {key} | {value} |" for key, value in facts.items()]
    return ["", f"## {heading}", "", "| | |", "| --- | --- |", *rows] if rows else []
