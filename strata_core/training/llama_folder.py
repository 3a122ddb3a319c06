"""A language model in a folder that transformers or `strata export` wrote: inspected as data first, then read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from strata_core.audit import inspect_checkpoint
from strata_core.corpus.text.tokenizer import END_OF_TEXT, TextTokenizer, check_tokenizer
from strata_core.errors import DataError, VerificationError, first_problems
from strata_core.manifest import MANIFEST_NAME, Manifest, Parent, hash_files
from strata_core.models.llama_names import llama_shapes, our_name, shape_of_llama
from strata_core.models.transformer import TransformerConfig
from strata_core.training.checkpoint import read_tensors

EXPORT = "export"
"""What the manifest of a folder describes that strata export wrote."""

_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)
_RECOMPUTED = ".rotary_emb.inv_freq"


@dataclass(frozen=True)
class LlamaFolder:
    """A folder that has passed inspection, and whose settings and weights are a model of ours.

    Attributes:
        path: the folder.
        settings: its config.json.
        shape: the same as our shape.
        weight_files: names of its safetensors files.
        tokenizer: its tokenizer.json; None without one.
    """

    path: Path
    settings: dict[str, Any]
    shape: TransformerConfig
    weight_files: tuple[str, ...]
    tokenizer: bytes | None

    def tensors(self, *, dtype: torch.dtype | None = torch.float32) -> dict[str, Tensor]:
        """The weights by our names, on the CPU; in their own dtype where `dtype` is None.

        Raises:
            DataError: one is missing, unknown, or of another shape or dtype than a model's.
        """
        found: dict[str, Tensor] = {}
        for name in self.weight_files:
            found |= read_tensors(self.path / name)
        found = {name: tensor for name, tensor in found.items() if not name.endswith(_RECOMPUTED)}
        output = found.get("lm_head.weight")
        if self.shape.tie_embeddings and output is not None:
            if not torch.equal(output, found.get("model.embed_tokens.weight", output.new_empty(0))):
                raise DataError(f"{self.path}: tie_word_embeddings is true, but lm_head.weight is not the embedding")
            del found["lm_head.weight"]
        problems = _weight_problems(found, llama_shapes(self.shape))
        if problems:
            raise DataError(
                f"the weights in {self.path} are not those of its config.json", problems=first_problems(problems)
            )
        named = {our_name(name): tensor for name, tensor in found.items()}
        return {str(name): tensor if dtype is None else tensor.to(dtype) for name, tensor in named.items()}

    def text_tokenizer(self) -> TextTokenizer:
        """The tokenizer; where it lacks our end of text, the folder's own eos_token ends a text.

        Raises:
            DataError: there is none, it is not one that can be used, or it has more tokens than the embedding has rows.
        """
        if self.tokenizer is None:
            raise DataError(f"{self.path} has no tokenizer.json, so its tokens cannot be told as text")
        shown = str(self.path / "tokenizer.json")
        tokenizer = check_tokenizer(self.tokenizer, shown=shown, end_of_text=self._end_of_text())
        if tokenizer.vocab_size > self.shape.vocab_size:
            raise DataError(
                f"{shown} has {tokenizer.vocab_size:,} tokens, and vocab_size in config.json is "
                f"{self.shape.vocab_size:,}",
                hint="the two do not belong together",
            )
        return tokenizer

    def parent(self) -> Parent:
        """The folder as a run's manifest names it: by its own manifest, or by the digests of its files."""
        if (self.path / MANIFEST_NAME).is_file():
            manifest = Manifest.read(self.path)
            return Parent(manifest.describes, manifest.digest, str(self.path.resolve()))
        names = ["config.json", *self.weight_files, *(["tokenizer.json"] if self.tokenizer is not None else [])]
        listed = Manifest("language model", files=tuple(hash_files(self.path, names)))
        return Parent(listed.describes, listed.digest, str(self.path.resolve()))

    def _end_of_text(self) -> str:
        known = {token.get("content") for token in json.loads(self.tokenizer or b"{}").get("added_tokens") or ()}
        if END_OF_TEXT in known:
            return END_OF_TEXT
        path = self.path / "tokenizer_config.json"
        named = _read_object(path).get("eos_token") if path.is_file() else None
        named = named.get("content") if isinstance(named, dict) else named
        return named if isinstance(named, str) else END_OF_TEXT


def is_llama_folder(path: Path) -> bool:
    """Whether a folder has the config.json of transformers, whatever the model; ours have none with a model_type."""
    if not (path / "config.json").is_file() or (path / "trainer.json").exists():
        return False
    try:
        settings = _read_object(path / "config.json")
    except DataError:
        return True
    return "model_type" in settings or "architectures" in settings


def open_llama_folder(path: Path) -> LlamaFolder:
    """Inspects a folder without running anything in it, and reads its settings.

    Raises:
        VerificationError: something in it would run code when loaded.
        DataError: a file is damaged or missing, or the model is not one that strata computes.
    """
    report = inspect_checkpoint(path)
    if report.exit_code(strict=True):
        refused = VerificationError if report.exit_code(strict=True) == VerificationError.exit_code else DataError
        raise refused(
            f"{path} is not loaded: its inspection says {report.verdict}",
            problems=first_problems(report.reasons()),
            hint=f"strata inspect-ckpt {path} tells all; nothing in it was run",
        )
    settings = _read_object(path / "config.json")
    shape = shape_of_llama(settings, source=str(path / "config.json"))
    tokenizer = path / "tokenizer.json"
    return LlamaFolder(
        path, settings, shape, _weight_files(path), tokenizer.read_bytes() if tokenizer.is_file() else None
    )


def _weight_files(path: Path) -> tuple[str, ...]:
    if (path / _SINGLE).is_file():
        return (_SINGLE,)
    if (path / _INDEX).is_file():
        return tuple(sorted(set(_read_object(path / _INDEX)["weight_map"].values())))
    raise DataError(
        f"{path} has no {_SINGLE} and no {_INDEX}",
        hint="only safetensors are read; transformers' save_pretrained(DIR) writes a pytorch_model.bin as safetensors",
    )


def _weight_problems(found: dict[str, Tensor], wanted: dict[str, tuple[int, ...]]) -> list[str]:
    problems = [f"{name} is missing" for name in wanted.keys() - found.keys()]
    problems += [f"{name} is unknown" for name in found.keys() - wanted.keys()]
    for name in wanted.keys() & found.keys():
        tensor = found[name]
        if tuple(tensor.shape) != wanted[name]:
            problems.append(f"{name} is {list(tensor.shape)}, not {list(wanted[name])}")
        elif tensor.dtype not in _FLOATS:
            problems.append(f"{name} is {tensor.dtype}, not float32, float16 or bfloat16")
    return sorted(problems)


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, OSError, RecursionError) as error:
        raise DataError(f"{path}: no readable JSON ({error})") from error
    if not isinstance(value, dict):
        raise DataError(f"{path}: holds a JSON {type(value).__name__}, not an object")
    return value
