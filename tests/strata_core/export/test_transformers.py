"""Against transformers, where it is installed: its Llama on our weights, and ours on its."""

import json

import pytest
import torch

from strata_core.export.exporting import export_model
from strata_core.inference.language_model import load_language_model
from strata_core.models import StructuredLanguageModel
from tests.strata_core.export.checkpoints import (
    TOKENIZER,
    VOCABULARY,
    language_model,
    logits,
    made,
    shape,
    write_checkpoint,
)
from tests.strata_core.models import structured

transformers = pytest.importorskip("transformers", reason="transformers is not installed")


@pytest.mark.parametrize("variant", ["grouped and tied", "untied", "one head shared", "structured"])
def test_the_logits_are_those_of_transformers_at_every_length(tmp_path, variant):
    if variant == "structured":
        model = made(StructuredLanguageModel(structured.config(transformer=shape(), predicate_memory=None)))
    else:
        model = language_model(
            tie_embeddings=variant != "untied", n_kv_heads={"untied": 4, "one head shared": 1}.get(variant, 2)
        )
    kind = "structured-lm" if variant == "structured" else "lm"
    write_checkpoint(tmp_path / "checkpoint", model, kind=kind)
    export_model(tmp_path / "checkpoint", tmp_path / "out", format="hf", max_shard_bytes=5000)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    generator = torch.Generator().manual_seed(5)
    for length in range(1, 13):
        tokens = torch.randint(0, VOCABULARY, (length,), generator=generator).tolist()
        with torch.no_grad():
            expected = theirs(torch.tensor([tokens])).logits[0]
        assert (logits(model, tokens) - expected).abs().max() < 1e-5
    assert theirs.generation_config.eos_token_id == 0


def test_the_tokenizer_is_loaded_with_its_special_token(tmp_path):
    write_checkpoint(tmp_path / "checkpoint", language_model())
    export_model(tmp_path / "checkpoint", tmp_path / "out", format="hf")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    _, ours = load_language_model(tmp_path / "checkpoint")
    text = "the old dog — naïve\n  sees"
    assert (
        theirs(text)["input_ids"] == ours.tokenizer.encode(text).ids
        and theirs.decode(theirs(text)["input_ids"]) == text
    )
    assert (theirs.eos_token, theirs.bos_token) == ("<|endoftext|>", "<|endoftext|>")


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_a_llama_of_transformers_comes_in_and_goes_out_the_same(tmp_path, tied, dtype):
    settings = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=44,
        num_hidden_layers=3,
        num_attention_heads=8,
        num_key_value_heads=2,
        max_position_embeddings=16,
        tie_word_embeddings=tied,
        rms_norm_eps=1e-6,
    )
    torch.manual_seed(3)
    first = transformers.LlamaForCausalLM(settings).to(getattr(torch, dtype)).eval()
    first.save_pretrained(tmp_path / "theirs", max_shard_size="20KB")
    assert len(list((tmp_path / "theirs").glob("*.safetensors"))) > 1
    (tmp_path / "theirs" / "tokenizer.json").write_bytes(TOKENIZER)
    imported, _ = load_language_model(tmp_path / "theirs")
    with torch.no_grad():
        expected = first.float()(torch.tensor([[5, 6, 7, 0, 9]])).logits[0]
    assert (logits(imported, [5, 6, 7, 0, 9]) - expected).abs().max() < 1e-5
    export_model(tmp_path / "theirs", tmp_path / "ours", format="hf")
    assert json.loads((tmp_path / "ours" / "config.json").read_text())["dtype"] == dtype
    states = [
        transformers.LlamaForCausalLM.from_pretrained(tmp_path / name).state_dict() for name in ("theirs", "ours")
    ]
    assert states[0].keys() == states[1].keys()
    assert all(
        torch.equal(states[0][name], states[1][name]) and states[0][name].dtype == states[1][name].dtype
        for name in states[0]
    )
