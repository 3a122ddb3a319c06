"""Our language model and LlamaForCausalLM of transformers compute the same: what each is called in the other.

Both turn channels i and i + E/2 of a head together, so weights go over as they are. GGUF's Llama turns neighbours; its
writer reorders the rows of queries and keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from strata_core.errors import DataError, RecipeError
from strata_core.models.transformer import TransformerConfig

MODEL_TYPE = "llama"
ARCHITECTURE = "LlamaForCausalLM"

_OUTER = {
    "transformer.embedding.weight": "model.embed_tokens.weight",
    "transformer.norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_INNER = {
    "attention_norm": "input_layernorm",
    "attention.query": "self_attn.q_proj",
    "attention.key": "self_attn.k_proj",
    "attention.value": "self_attn.v_proj",
    "attention.output": "self_attn.o_proj",
    "feed_forward_norm": "post_attention_layernorm",
    "feed_forward.gate": "mlp.gate_proj",
    "feed_forward.up": "mlp.up_proj",
    "feed_forward.down": "mlp.down_proj",
}
_OUTER_BACK = {theirs: ours for ours, theirs in _OUTER.items()}
_INNER_BACK = {theirs: ours for ours, theirs in _INNER.items()}
_OUR_BLOCK = re.compile(r"transformer\.blocks\.(\d+)\.(.+)\.weight")
_THEIR_BLOCK = re.compile(r"model\.layers\.(\d+)\.(.+)\.weight")

_SAME_KEYS = {
    "vocab_size": "vocab_size",
    "hidden_size": "d_model",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "d_ff",
}
_FIXED: Mapping[str, tuple[Any, str]] = {
    "hidden_act": ("silu", "the feed-forward layer here is gated by silu"),
    "attention_bias": (False, "attention has no biases here"),
    "mlp_bias": (False, "the feed-forward layer has no biases here"),
    "rope_scaling": (None, "rotary angles are not scaled here"),
    "sliding_window": (None, "attention reaches the whole context here"),
    "quantization_config": (None, "quantised weights are not read"),
    "partial_rotary_factor": (1.0, "whole heads are turned here"),
}


def llama_name(ours: str) -> str | None:
    """What LlamaForCausalLM calls one of our parameters; None for one that it has no counterpart of."""
    if match := _OUR_BLOCK.fullmatch(ours):
        inner = _INNER.get(match.group(2))
        return None if inner is None else f"model.layers.{match.group(1)}.{inner}.weight"
    return _OUTER.get(ours)


def our_name(theirs: str) -> str | None:
    """The inverse of `llama_name`."""
    if match := _THEIR_BLOCK.fullmatch(theirs):
        inner = _INNER_BACK.get(match.group(2))
        return None if inner is None else f"transformer.blocks.{match.group(1)}.{inner}.weight"
    return _OUTER_BACK.get(theirs)


def llama_shapes(shape: TransformerConfig) -> dict[str, tuple[int, ...]]:
    """The shape of every weight of such a model, by LlamaForCausalLM's names."""
    width = shape.d_model
    keys = width // shape.n_heads * shape.n_kv_heads
    inner = {
        "input_layernorm": (width,),
        "self_attn.q_proj": (width, width),
        "self_attn.k_proj": (keys, width),
        "self_attn.v_proj": (keys, width),
        "self_attn.o_proj": (width, width),
        "post_attention_layernorm": (width,),
        "mlp.gate_proj": (shape.d_ff, width),
        "mlp.up_proj": (shape.d_ff, width),
        "mlp.down_proj": (width, shape.d_ff),
    }
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (shape.vocab_size, width)}
    for layer in range(shape.n_layers):
        shapes |= {f"model.layers.{layer}.{name}.weight": value for name, value in inner.items()}
    shapes["model.norm.weight"] = (width,)
    if not shape.tie_embeddings:
        shapes["lm_head.weight"] = (shape.vocab_size, width)
    return shapes


def llama_settings(shape: TransformerConfig) -> dict[str, Any]:
    """The settings of such a model as config.json of transformers has them, in the keys of its versions 4 and 5."""
    return {
        "architectures": [ARCHITECTURE],
        "model_type": MODEL_TYPE,
        **{theirs: getattr(shape, ours) for theirs, ours in _SAME_KEYS.items()},
        "num_key_value_heads": shape.n_kv_heads,
        "head_dim": shape.d_model // shape.n_heads,
        "max_position_embeddings": shape.max_seq_len,
        "rms_norm_eps": shape.norm_eps,
        "rope_theta": shape.rope_theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": shape.rope_theta},
        "tie_word_embeddings": shape.tie_embeddings,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "attention_dropout": 0.0,
        "initializer_range": 0.02,
        "use_cache": True,
    }


def shape_of_llama(settings: Mapping[str, Any], *, source: str) -> TransformerConfig:
    """The shape of a model from the config.json of transformers; an absent key has the default of LlamaConfig.

    Raises:
        DataError: it is no Llama, or one that computes something else than ours; `problems` has a line for each key.
    """
    problems = []
    if settings.get("model_type") != MODEL_TYPE:
        problems.append(f"model_type: {settings.get('model_type')!r}; only {MODEL_TYPE!r} is read")
    if (architectures := settings.get("architectures")) not in (None, [ARCHITECTURE]):
        problems.append(f"architectures: {architectures!r}; only {ARCHITECTURE} is read")
    for key, (wanted, why) in _FIXED.items():
        if key in settings and settings[key] not in (wanted, None) and not _is_plain_rotation(settings[key]):
            problems.append(f"{key}: {settings[key]!r}; {why}")
    rotation = settings.get("rope_parameters")
    if rotation is not None and not _is_plain_rotation(rotation):
        problems.append(f"rope_parameters: {rotation!r}; rotary angles are not scaled here")
    whole = _whole_numbers(settings, problems)
    numbers = _numbers(settings, rotation if isinstance(rotation, dict) else {}, problems)
    tied = settings.get("tie_word_embeddings", False)
    if not isinstance(tied, bool):
        problems.append(f"tie_word_embeddings: {tied!r} is neither true nor false")
    if not problems:
        width = settings.get("head_dim")
        if width is not None and width * whole["n_heads"] != whole["d_model"]:
            problems.append(
                f"head_dim: {width!r}; here it is hidden_size / num_attention_heads, "
                f"{whole['d_model']} / {whole['n_heads']}"
            )
    if not problems:
        try:
            return TransformerConfig(
                **whole, rope_theta=numbers["rope_theta"], norm_eps=numbers["norm_eps"], tie_embeddings=tied
            )
        except RecipeError as error:
            problems.append(error.message)
    raise DataError(
        f"{source} does not describe a language model that strata computes",
        problems=tuple(problems),
        hint="Llama models without scaled rotary angles, biases or sliding windows are read",
    )


def _is_plain_rotation(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return value.get("rope_type", value.get("type", "default")) == "default" and value.keys() <= {
        "rope_type", "type", "rope_theta",
    }  # fmt: skip


def _whole_numbers(settings: Mapping[str, Any], problems: list[str]) -> dict[str, int]:
    wanted = {theirs: (ours, settings.get(theirs)) for theirs, ours in _SAME_KEYS.items()}
    heads = settings.get("num_attention_heads")
    shared = settings.get("num_key_value_heads")
    wanted["num_key_value_heads"] = ("n_kv_heads", heads if shared is None else shared)
    wanted["max_position_embeddings"] = ("max_seq_len", settings.get("max_position_embeddings", 2048))
    head_width = settings.get("head_dim")
    found = {}
    for key, (ours, value) in [*wanted.items(), *([("head_dim", ("", head_width))] if head_width is not None else [])]:
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            problems.append(f"{key}: {value!r} is no whole number above 0")
        elif ours:
            found[ours] = value
    return found


def _numbers(settings: Mapping[str, Any], rotation: Mapping[str, Any], problems: list[str]) -> dict[str, float]:
    wanted = {
        "rms_norm_eps": ("norm_eps", settings.get("rms_norm_eps", 1e-6)),
        "rope_theta": ("rope_theta", rotation.get("rope_theta", settings.get("rope_theta", 10_000.0))),
    }
    found = {}
    for key, (ours, value) in wanted.items():
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
            problems.append(f"{key}: {value!r} is no number above 0")
        else:
            found[ours] = float(value)
    return found
