"""A tiny structured model and sentences for it."""

import numpy as np
import torch
from torch import Tensor

from strata_core.models import StructuredConfig, StructuredLanguageModel, TransformerConfig, initialise
from strata_core.models.graph_object_memory import GraphObjectMemoryConfig
from strata_core.models.predicate_memory import PredicateMemoryConfig
from strata_core.models.structure_heads import HeadsConfig
from strata_core.models.word_states import Words, pack_words

VOCABULARY, WIDTH, BUCKETS = 23, 16, 50
SHAPE = TransformerConfig(
    vocab_size=VOCABULARY, d_model=WIDTH, n_layers=2, n_heads=4, n_kv_heads=2, d_ff=24, max_seq_len=32
)
HEADS = HeadsConfig(
    n_relations=5, n_node_types=4, n_roles=3, n_chart_items=12, arc_width=8, relation_width=6, role_width=6
)


def config(**changes) -> StructuredConfig:
    values = {
        "transformer": SHAPE,
        "heads": HEADS,
        "feature_buckets": BUCKETS,
        "predicate_memory": PredicateMemoryConfig(channel_width=4, role_width=6),
        "graph_object_memory": GraphObjectMemoryConfig(n_types=3, n_heads=2),
    }
    return StructuredConfig(**(values | changes))


def enlarge(module: torch.nn.Module, factor: float = 8.0) -> None:
    """Larger than first values, and gates open, so that mistakes show."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.endswith("gate"):
                parameter.fill_(0.7)
            elif parameter.ndim > 1 and parameter.std() < 0.1:
                parameter.mul_(factor)


def make(dtype: torch.dtype = torch.float32, **changes) -> StructuredLanguageModel:
    model = StructuredLanguageModel(config(**changes))
    initialise(model, 5)
    enlarge(model)
    return model.to(dtype)


def some_states(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def some_tokens(rows: int, length: int, seed: int = 0) -> Tensor:
    return torch.randint(1, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(seed))


def some_words(*lengths: int, seed: int = 0) -> Words:
    """Sentences of these many words, each word of one to three subwords."""
    generator = np.random.default_rng(seed)
    tokens, spans, features = [], [], []
    for length in lengths:
        ends = np.cumsum(generator.integers(1, 4, length))
        spans.append(np.stack([np.concatenate([[0], ends[:-1]]), ends], axis=1))
        tokens.append(generator.integers(1, VOCABULARY, ends[-1]))
        features.append(generator.integers(0, BUCKETS, (length, 4)))
    return pack_words(tokens, spans, features)
