"""Small models with weights drawn by a seed, and a tokenizer, for tests of what is built on a causal pass."""

import torch

from strata_core.corpus.text.tokenizer import check_tokenizer, train_tokenizer
from strata_core.inference.causal_model import CausalModel
from strata_core.models import initialise
from strata_core.tasks.registry import model_from_config

TEXTS = ["the dog sees the cats", "the cat hears the river, and then it stops", "Größe und Übel"] * 4


def tokenizer():
    return check_tokenizer(train_tokenizer(TEXTS, 300), shown="tokenizer.json")


def causal_model(*, seed=1, longest=48, n_kv_heads=2, scale=8.0, memory=False):
    """A model that is sure enough of what it says for its draws to differ."""
    ours = tokenizer()
    shape = {"vocab_size": ours.vocab_size, "d_model": 32, "n_layers": 2, "n_heads": 4, "n_kv_heads": n_kv_heads}
    shape |= {"d_ff": 48, "max_seq_len": longest}
    config = {"kind": "lm", "model": shape}
    if memory:
        heads = {"n_relations": 2, "n_node_types": 2, "n_roles": 2, "n_chart_items": 2}
        structured = {"transformer": shape, "heads": heads, "predicate_memory": {"initial_gate": 1.0}}
        config = {"kind": "structured-lm", "model": structured}
    module = model_from_config(config)
    initialise(module, seed)
    with torch.no_grad():
        for block in module.transformer.blocks:
            for weight in block.parameters():
                weight.mul_(scale if weight.ndim > 1 else 1.0)
        module.transformer.norm.weight.mul_(scale)
    return CausalModel("a small model", module.eval(), ours, torch.device("cpu"))
