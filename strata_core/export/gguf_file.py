"""A GGUF file of the llama architecture (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), by package gguf.

Shapes: H heads, E width of a head, D model width.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from strata_core.errors import UsageError
from strata_core.export.causal_part import CausalPart, converted

FILE_NAME = "model.gguf"

_OUTER = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
_INNER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_FILE_TYPES = {"float32": "ALL_F32", "float16": "MOSTLY_F16", "bfloat16": "MOSTLY_BF16"}


def check() -> None:
    """Whether the package gguf is there.

    Raises:
        UsageError: it is not.
    """
    try:
        import gguf  # noqa: F401
    except ImportError:
        raise UsageError(
            "--to gguf needs the package gguf, which is not installed", hint="pip install 'strata[export]' brings it"
        ) from None


def write(part: CausalPart, folder: Path, *, dtype: str | None, max_shard_bytes: int) -> None:
    """See `ExportFormat.write`; it is one file, whatever its size.

    Raises:
        UsageError: the tokenizer is not byte-level BPE, which alone GGUF has a counterpart of.
    """
    import gguf

    if not part.tokenizer.is_byte_level:
        raise UsageError(
            "--to gguf: the tokenizer is not a byte-level BPE with GPT-2's words, and GGUF has no other name for it",
            hint="export with --to hf, which takes any tokenizer.json",
        )
    kind = dtype or str(part.tensors["model.embed_tokens.weight"].dtype).removeprefix("torch.")
    writer = gguf.GGUFWriter(folder / FILE_NAME, "llama")
    try:
        _add_settings(writer, part)
        writer.add_file_type(gguf.LlamaFileType[_FILE_TYPES[kind]])
        _add_tokenizer(writer, part)
        _write_tensors(writer, part, kind)
    finally:
        writer.close()


def gguf_name(theirs: str) -> str:
    """What GGUF calls a weight of LlamaForCausalLM."""
    name = theirs.removesuffix(".weight")
    if name in _OUTER:
        return f"{_OUTER[name]}.weight"
    _, _, layer, inner = name.split(".", 3)
    return f"blk.{layer}.{_INNER[inner]}.weight"


def neighbours_turn(weight_XD: Tensor, n_heads: int) -> Tensor:
    """Rows of a query or key weight [H x E, D] reordered, so that channels 2i and 2i + 1 of a head turn together.

    Ours (and transformers') turn channels i and i + E/2.
    """
    halves = weight_XD.reshape(n_heads, 2, -1, weight_XD.shape[1])
    return halves.transpose(1, 2).reshape(weight_XD.shape)


def _add_settings(writer: Any, part: CausalPart) -> None:
    shape = part.shape
    writer.add_vocab_size(shape.vocab_size)
    writer.add_context_length(shape.max_seq_len)
    writer.add_embedding_length(shape.d_model)
    writer.add_block_count(shape.n_layers)
    writer.add_feed_forward_length(shape.d_ff)
    writer.add_head_count(shape.n_heads)
    writer.add_head_count_kv(shape.n_kv_heads)
    writer.add_rope_dimension_count(shape.d_model // shape.n_heads)
    writer.add_rope_freq_base(shape.rope_theta)
    writer.add_layer_norm_rms_eps(shape.norm_eps)


def _add_tokenizer(writer: Any, part: CausalPart) -> None:
    """Tokens by id; ids that the tokenizer lacks are filled, since the embedding has rows for them."""
    import gguf

    content = json.loads(part.tokenizer.data)
    special = {token["id"]: token["content"] for token in content["added_tokens"]}
    by_id = {number: token for token, number in content["model"]["vocab"].items()} | special
    ids = range(part.shape.vocab_size)
    kinds = gguf.TokenType
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([by_id.get(number, f"[unused {number}]") for number in ids])
    writer.add_token_types(
        [kinds.CONTROL if n in special else kinds.NORMAL if n in by_id else kinds.UNUSED for n in ids]
    )
    merges = content["model"]["merges"]
    writer.add_token_merges([pair if isinstance(pair, str) else " ".join(pair) for pair in merges])
    writer.add_bos_token_id(part.tokenizer.end_of_text_id)
    writer.add_eos_token_id(part.tokenizer.end_of_text_id)
    writer.add_add_bos_token(False)


def _write_tensors(writer: Any, part: CausalPart, kind: str) -> None:
    """One tensor is in memory at a time; vectors stay in float32, as llama.cpp wants them."""
    import gguf

    encodings = gguf.GGMLQuantizationType
    for name, tensor in part.tensors.items():
        wanted = kind if tensor.ndim > 1 else "float32"
        itemsize = getattr(torch, wanted).itemsize
        encoding = {"float32": encodings.F32, "float16": encodings.F16, "bfloat16": encodings.BF16}[wanted]
        writer.add_tensor_info(
            gguf_name(name), tensor.shape, np.dtype(np.float32), tensor.numel() * itemsize, raw_dtype=encoding
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    heads = {"q_proj": part.shape.n_heads, "k_proj": part.shape.n_kv_heads}
    for name, tensor in part.tensors.items():
        wanted = kind if tensor.ndim > 1 else "float32"
        count = heads.get(name.split(".")[-2])
        ordered = tensor if count is None else neighbours_turn(tensor, count)
        writer.write_tensor_data(converted(ordered, wanted, name).reshape(-1).view(torch.uint8).numpy())
