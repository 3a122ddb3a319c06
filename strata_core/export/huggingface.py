"""A folder that AutoModelForCausalLM and AutoTokenizer of transformers load: a LlamaForCausalLM in safetensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from strata_core.export.causal_part import CausalPart, converted
from strata_core.models.llama_names import llama_settings
from strata_core.training.checkpoint.image import lay_out


def check() -> None:
    """Needs no package."""


def write(part: CausalPart, folder: Path, *, dtype: str | None, max_shard_bytes: int) -> None:
    """See `ExportFormat.write`."""
    stored = {str(tensor.dtype).removeprefix("torch.") for tensor in part.tensors.values()}
    end_id = part.tokenizer.end_of_text_id
    ends = {"bos_token_id": end_id, "eos_token_id": end_id}
    settings = llama_settings(part.shape) | ends
    if dtype is not None or len(stored) == 1:
        settings["dtype"] = settings["torch_dtype"] = dtype or next(iter(stored))
    _write_json(folder / "config.json", settings)
    _write_json(folder / "generation_config.json", ends)
    _write_tokenizer(part, folder)
    _write_weights(part.tensors, folder, dtype=dtype, max_shard_bytes=max_shard_bytes)


def _write_tokenizer(part: CausalPart, folder: Path) -> None:
    end = part.end_of_text
    (folder / "tokenizer.json").write_bytes(part.tokenizer.data)
    special = {"bos_token": end, "eos_token": end}
    _write_json(folder / "special_tokens_map.json", special)
    tokenizer = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **special,
        "model_max_length": part.shape.max_seq_len,
        "clean_up_tokenization_spaces": False,
    }
    _write_json(folder / "tokenizer_config.json", tokenizer)


def _write_weights(tensors: dict[str, Tensor], folder: Path, *, dtype: str | None, max_shard_bytes: int) -> None:
    shards = _shards(tensors, dtype, max_shard_bytes)
    weight_map: dict[str, str] = {}
    for number, names in enumerate(shards, 1):
        file = "model.safetensors" if len(shards) == 1 else f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        weight_map |= dict.fromkeys(names, file)
        _write_safetensors(folder / file, {name: converted(tensors[name], dtype, name) for name in names})
    if len(shards) > 1:
        total = sum(_size_bytes(tensor, dtype) for tensor in tensors.values())
        _write_json(
            folder / "model.safetensors.index.json",
            {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))},
        )


def _shards(tensors: dict[str, Tensor], dtype: str | None, max_shard_bytes: int) -> list[list[str]]:
    """Names of each file's tensors, in the model's order; one that is too large on its own has a file of its own."""
    shards: list[list[str]] = [[]]
    filled = 0
    for name, tensor in tensors.items():
        size = _size_bytes(tensor, dtype)
        if shards[-1] and filled + size > max_shard_bytes:
            shards.append([])
            filled = 0
        shards[-1].append(name)
        filled += size
    return shards


def _size_bytes(tensor: Tensor, dtype: str | None) -> int:
    wanted: torch.dtype = tensor.dtype if dtype is None else getattr(torch, dtype)
    return tensor.numel() * wanted.itemsize


def _write_safetensors(path: Path, tensors: dict[str, Tensor]) -> None:
    layout = lay_out(tensors)
    with open(path, "wb") as file:
        file.write(layout.header)
        for name in sorted(tensors, key=lambda name: layout.offsets[name]):
            file.write(tensors[name].detach().reshape(-1).view(torch.uint8).numpy().data)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
