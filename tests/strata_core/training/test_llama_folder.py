"""Folders of Llamas from elsewhere: what is read, and what is refused with the key that says so."""

import json
import pickle

import pytest
import torch
from safetensors.torch import load_file, save_file

from strata_core.errors import DataError, RecipeError, UsageError, VerificationError
from strata_core.export.exporting import export_model
from strata_core.launch.warm_start import load_weights
from strata_core.models import LanguageModel, StructuredLanguageModel
from strata_core.training.checkpoint import model_tensors
from strata_core.training.llama_folder import open_llama_folder
from tests.strata_core.export.checkpoints import TOKENIZER, language_model, made, shape, write_checkpoint
from tests.strata_core.models import structured


@pytest.fixture
def folder(tmp_path):
    write_checkpoint(tmp_path / "checkpoint", language_model())
    export_model(tmp_path / "checkpoint", tmp_path / "llama", format="hf")
    return tmp_path / "llama"


def change(folder, **settings):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model_type", "mistral"),
        ("architectures", ["MistralForCausalLM"]),
        ("rope_scaling", {"rope_type": "linear", "factor": 2.0}),
        ("rope_parameters", {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0}),
        ("attention_bias", True),
        ("mlp_bias", True),
        ("hidden_act", "gelu"),
        ("sliding_window", 4096),
        ("head_dim", 8),
        ("num_key_value_heads", 0),
        ("hidden_size", "16"),
        ("rms_norm_eps", -1.0),
        ("quantization_config", {"bits": 4}),
        ("tie_word_embeddings", "yes"),
    ],
)
def test_a_setting_that_is_not_computed_is_refused_by_its_key(folder, key, value):
    change(folder, **{key: value})
    with pytest.raises(DataError) as raised:
        open_llama_folder(folder)
    assert [problem.partition(":")[0] for problem in raised.value.problems] == [key]


def test_weights_of_another_shape_than_the_settings_are_listed(folder):
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"] = torch.ones(5)
    weights["model.layers.0.self_attn.q_proj.bias"] = torch.ones(16)
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(DataError) as raised:
        open_llama_folder(folder).tensors()
    assert raised.value.problems == (
        "model.layers.0.self_attn.q_proj.bias is unknown",
        "model.layers.1.mlp.up_proj.weight is missing",
        "model.norm.weight is [5], not [16]",
    )


class Hostile:
    def __reduce__(self):
        import os

        return os.mkdir, ("hostile-was-run",)


def test_a_folder_with_a_file_that_would_run_code_is_refused_and_does_not_run_it(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Hostile()))
    with pytest.raises(VerificationError, match="unsafe"):
        open_llama_folder(folder)
    assert not (tmp_path / "hostile-was-run").exists()


def test_a_folder_cut_short_is_refused(folder):
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[:-100])
    with pytest.raises(DataError, match="corrupt"):
        open_llama_folder(folder)


def test_a_tokenizer_with_more_tokens_than_the_embedding_is_refused(folder):
    content = json.loads(TOKENIZER)
    content["model"]["vocab"]["zzz"] = shape().vocab_size
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"vocab_size in config\.json"):
        open_llama_folder(folder).text_tokenizer()


def test_a_warm_start_takes_the_weights_and_names_the_export_as_parent(folder):
    model = LanguageModel(shape())
    parents = load_weights(model, folder, tokenizer=TOKENIZER)
    ours, theirs = model_tensors(model), open_llama_folder(folder).tensors()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert [parent.describes for parent in parents] == ["export"]
    (folder / "manifest.json").unlink()
    assert [parent.describes for parent in load_weights(model, folder)] == ["language model"]


def test_a_parser_on_a_language_model_has_its_blocks_and_heads_of_its_own(folder):
    parser = made(StructuredLanguageModel(structured.config(transformer=shape(), predicate_memory=None)), seed=1)
    before = {name: tensor.clone() for name, tensor in model_tensors(parser).items()}
    load_weights(parser, folder, tokenizer=TOKENIZER)
    imported = open_llama_folder(folder).tensors()
    for name, tensor in model_tensors(parser).items():
        assert torch.equal(tensor, imported.get(name, before[name])), name
    assert torch.isfinite(parser.full_pass(structured.some_words(3, 5)).states_BLD).all()


def test_a_warm_start_lists_each_key_that_differs(folder):
    other = LanguageModel(shape(rope_theta=10_000.0, norm_eps=1e-5, d_ff=32, n_heads=2, tie_embeddings=False))
    with pytest.raises(RecipeError) as raised:
        load_weights(other, folder, tokenizer=TOKENIZER)
    assert raised.value.problems == (
        "model.n_heads is 2; num_attention_heads in config.json is 4",
        "model.d_ff is 32; intermediate_size in config.json is 24",
        "model.rope_theta is 10000.0; rope_theta in config.json is 500.0",
        "model.norm_eps is 1e-05; rms_norm_eps in config.json is 0.0001",
        "model.tie_embeddings is false; tie_word_embeddings in config.json is true",
    )


def test_a_warm_start_with_another_tokenizer_than_the_corpus_is_refused(folder):
    content = json.loads(TOKENIZER)
    content["pre_tokenizer"]["add_prefix_space"] = True
    with pytest.raises(RecipeError) as raised:
        load_weights(LanguageModel(shape()), folder, tokenizer=json.dumps(content).encode())
    assert raised.value.problems == (
        "tokenizer.json: pre_tokenizer differs: the corpus's (4 entries), the folder's (4 entries)",
    )


def test_only_safetensors_are_read(folder):
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(DataError, match=r"no model\.safetensors") as raised:
        open_llama_folder(folder)
    assert "save_pretrained" in raised.value.hint


def test_a_folder_without_tokenizer_says_so(folder):
    (folder / "tokenizer.json").unlink()
    with pytest.raises(DataError, match=r"no tokenizer\.json"):
        open_llama_folder(folder).text_tokenizer()
    from strata_core.corpus.text.tokenizer import read_tokenizer

    with pytest.raises(UsageError, match="no such file"):
        read_tokenizer(folder)
