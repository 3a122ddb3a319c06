"""Building a model from the config a checkpoint carries."""

import json

import pytest
import torch

from strata_core.errors import DataError
from strata_core.models import LanguageModel, TransformerConfig, initialise
from strata_core.tasks.registry import model_from_config

CONFIG = TransformerConfig(
    vocab_size=32, d_model=16, n_layers=1, n_heads=2, n_kv_heads=1, d_ff=24, max_seq_len=8, tie_embeddings=False
)


def test_a_config_that_went_through_json_builds_the_same_module():
    model = LanguageModel(CONFIG)
    initialise(model, 3)
    built = model_from_config(json.loads(json.dumps({"kind": "lm", "model": model.config.to_dict()})))
    built.load_state_dict(model.state_dict())
    tokens = torch.arange(8)[None]
    assert torch.equal(built(tokens), model(tokens))


def test_a_model_is_built_on_the_meta_device_without_memory():
    with torch.device("meta"):
        model = model_from_config({"kind": "lm", "model": CONFIG.to_dict()})
    assert all(parameter.is_meta for parameter in model.parameters())
    assert [name for name, _ in model.named_buffers()] == []


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({}, "None"),
        ({"kind": "diffusion"}, "diffusion"),
        ({"kind": "lm"}, "vocab_size"),
        ({"kind": "lm", "model": CONFIG.to_dict() | {"flux": 1}}, "flux"),
    ],
)
def test_an_unknown_config_is_refused_by_name(config, named):
    with pytest.raises(DataError, match=named):
        model_from_config(config)
