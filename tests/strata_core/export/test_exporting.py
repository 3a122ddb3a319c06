"""Exports that others load: what is in them, and that nothing is left where one fails."""

import json
import resource
import signal
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from strata_core.errors import DataError, PlaceTakenError, StorageError, UsageError
from strata_core.export.exporting import export_model
from strata_core.inference.language_model import load_language_model
from strata_core.manifest import Manifest, verify
from strata_core.models import StructuredLanguageModel
from strata_core.training.checkpoint import model_tensors
from tests.strata_core.export.checkpoints import VOCABULARY, language_model, logits, made, shape, write_checkpoint
from tests.strata_core.export.slow_llama import logits as slow_logits
from tests.strata_core.export.slow_llama import neighbours
from tests.strata_core.models import structured

TOKENS = [3, 17, 200, 5, 0, 9, 41, 8, 260, 77, 1, 2]


def read_export(folder):
    weights = {}
    for file in folder.glob("*.safetensors"):
        weights |= {name: tensor.numpy() for name, tensor in load_file(file).items()}
    return weights, json.loads((folder / "config.json").read_text())


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("shared", [1, 2, 4])
def test_an_independent_llama_gives_the_same_logits_from_an_export(tmp_path, tied, shared):
    model = language_model(tie_embeddings=tied, n_kv_heads=shared)
    write_checkpoint(tmp_path / "checkpoint", model)
    export_model(tmp_path / "checkpoint", tmp_path / "out", format="hf")
    weights, settings = read_export(tmp_path / "out")
    assert ("lm_head.weight" in weights) is not tied
    for length in (1, 2, 12):
        expected = slow_logits(weights, settings, TOKENS[:length])
        assert np.abs(logits(model, TOKENS[:length]).numpy() - expected).max() < 1e-5


def test_an_export_comes_back_bit_for_bit_from_any_number_of_files(tmp_path):
    model = language_model(tie_embeddings=False)
    write_checkpoint(tmp_path / "checkpoint", model)
    result = export_model(tmp_path / "checkpoint", tmp_path / "out", format="hf", max_shard_bytes=4000)
    shards = [name for name in result["files"] if name.endswith(".safetensors")]
    index = json.loads((tmp_path / "out" / "model.safetensors.index.json").read_text())
    assert len(shards) > 3 and set(index["weight_map"].values()) == set(shards)
    assert index["metadata"]["total_size"] == sum(4 * parameter.numel() for parameter in model.parameters())
    back, tokenizer = load_language_model(tmp_path / "out")
    ours, theirs = model_tensors(model), model_tensors(back)
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert back.config == shape(tie_embeddings=False) and tokenizer.vocab_size == VOCABULARY
    assert result["bytes"] == sum(path.stat().st_size for path in (tmp_path / "out").iterdir())


def test_verification_follows_an_export_to_its_checkpoint_and_finds_a_change(tmp_path):
    checkpoint = write_checkpoint(tmp_path / "checkpoint", language_model())
    export_model(checkpoint, tmp_path / "out", format="hf")
    report = verify(tmp_path / "out")
    assert report.faults == () and [parent.status for parent in report.parents] == ["ok"]
    assert report.parents[0].digest == Manifest.read(checkpoint).digest
    assert Manifest.read(checkpoint).digest in (tmp_path / "out" / "README.md").read_text()
    with open(tmp_path / "out" / "config.json", "a") as file:
        file.write(" ")
    assert [fault.path for fault in verify(tmp_path / "out").faults] == ["config.json"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_weights_are_rounded_to_the_dtype_asked_for(tmp_path, dtype):
    model = language_model()
    write_checkpoint(tmp_path / "checkpoint", model)
    export_model(tmp_path / "checkpoint", tmp_path / "out", format="hf", dtype=dtype)
    weights = load_file(tmp_path / "out" / "model.safetensors")
    rounded = model.transformer.embedding.weight.detach().to(getattr(torch, dtype))
    assert torch.equal(weights["model.embed_tokens.weight"], rounded)
    assert json.loads((tmp_path / "out" / "config.json").read_text())["dtype"] == dtype


def test_numbers_that_float16_cannot_hold_are_refused(tmp_path):
    model = language_model()
    model.transformer.norm.weight.data[0] = 1e6
    write_checkpoint(tmp_path / "checkpoint", model)
    with pytest.raises(DataError, match=r"model\.norm\.weight has numbers beyond 65504"):
        export_model(tmp_path / "checkpoint", tmp_path / "out", format="hf", dtype="float16")
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def structured_model(**changes):
    return made(StructuredLanguageModel(structured.config(transformer=shape(), **changes)))


def test_of_a_structured_model_the_causal_pass_goes_and_the_rest_is_named(tmp_path):
    model = structured_model(predicate_memory=None)
    write_checkpoint(tmp_path / "checkpoint", model, kind="structured-lm")
    result = export_model(tmp_path / "checkpoint", tmp_path / "out", format="hf")
    assert result["left_behind"] == ["graph_object_memory", "heads", "words"]
    expected = slow_logits(*read_export(tmp_path / "out"), TOKENS)
    assert np.abs(logits(model, TOKENS).numpy() - expected).max() < 1e-5


def test_a_model_whose_causal_pass_reads_a_memory_is_refused_by_name(tmp_path):
    write_checkpoint(tmp_path / "checkpoint", structured_model(), kind="structured-lm")
    with pytest.raises(UsageError, match=r"model\.predicate_memory"):
        export_model(tmp_path / "checkpoint", tmp_path / "out", format="hf")


def test_a_graph_reasoner_is_refused_by_name(tmp_path):
    write_checkpoint(tmp_path / "checkpoint", language_model(), kind="knowledge-graph")
    with pytest.raises(UsageError, match="'knowledge-graph', a graph reasoner"):
        export_model(tmp_path / "checkpoint", tmp_path / "out", format="hf")


def test_a_place_that_is_taken_is_left_as_it_is(tmp_path):
    write_checkpoint(tmp_path / "checkpoint", language_model())
    (tmp_path / "out").mkdir()
    with pytest.raises(PlaceTakenError, match="exists already"):
        export_model(tmp_path / "checkpoint", tmp_path / "out", format="hf")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_disk_that_fills_up_leaves_nothing(tmp_path):
    write_checkpoint(tmp_path / "checkpoint", language_model())
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, before[1]))
    try:
        with pytest.raises(StorageError, match="larger than the limit"):
            export_model(tmp_path / "checkpoint", tmp_path / "out", format="hf")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def test_without_its_package_gguf_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(UsageError, match="package gguf") as raised:
        export_model(tmp_path / "checkpoint", tmp_path / "out", format="gguf")
    assert raised.value.hint == "pip install 'strata[export]' brings it"


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("tied", [True, False])
def test_a_gguf_file_has_equal_tensors_and_gives_the_same_logits_with_neighbours_turned(tmp_path, dtype, tied):
    gguf = pytest.importorskip("gguf", reason="the package gguf is not installed")
    model = language_model(tie_embeddings=tied)
    write_checkpoint(tmp_path / "checkpoint", model)
    for format in ("hf", "gguf"):
        export_model(tmp_path / "checkpoint", tmp_path / format, format=format, dtype=dtype)
    reader = gguf.GGUFReader(tmp_path / "gguf" / "model.gguf")
    stored = {t.name: gguf.quants.dequantize(t.data, t.tensor_type).reshape(t.shape[::-1]) for t in reader.tensors}
    weights, settings = {}, json.loads((tmp_path / "hf" / "config.json").read_text())
    for name, tensor in load_file(tmp_path / "hf" / "model.safetensors").items():
        weights[name] = stored.pop(gguf_name(name))
        kept = model_tensors(model)["transformer.norm.weight"] if name == "model.norm.weight" else tensor.float()
        if "q_proj" in name or "k_proj" in name:
            order = [head * 4 + channel for head in range(len(kept) // 4) for channel in (0, 2, 1, 3)]
            kept = kept[order]
        elif kept.ndim == 1:
            continue
        assert np.array_equal(weights[name], kept.numpy()), name
    assert stored == {}
    expected = slow_logits(weights, settings, TOKENS, pairs=neighbours)
    if dtype == "float32":
        assert np.abs(logits(model, TOKENS).numpy() - expected).max() < 1e-5
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    assert len(tokens) == VOCABULARY and tokens[0] == "<|endoftext|>"


def gguf_name(name):
    table = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v"}
    table |= {"self_attn.o_proj": "attn_output", "input_layernorm": "attn_norm", "mlp.gate_proj": "ffn_gate"}
    table |= {"mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "post_attention_layernorm": "ffn_norm"}
    table |= {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    for theirs, short in table.items():
        name = name.replace(theirs, short)
    return name.replace("model.layers.", "blk.")
