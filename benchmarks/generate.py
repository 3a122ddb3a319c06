"""Generation on a CPU: tokens per second with the cache, without it, and by transformers on the same weights.

    python benchmarks/generate.py [--tokens 512] [--threads 2]

The model is of the shape of lm/small with weights drawn by a seed. transformers takes part where it is installed; both
then choose the same tokens, which is checked.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch

from strata_core.corpus.text.tokenizer import check_tokenizer, train_tokenizer
from strata_core.inference.causal_model import CausalModel
from strata_core.inference.generation import GenerationSettings, generate
from strata_core.inference.sampling import Sampling
from strata_core.models import LanguageModel, TransformerConfig, initialise

SHAPE = TransformerConfig(vocab_size=8192, d_model=256, n_layers=8, n_heads=4, n_kv_heads=4, d_ff=768, max_seq_len=1024)
PROMPT = "the"


def small_model() -> CausalModel:
    """A model with weights of no training, which never ends its text."""
    module = LanguageModel(SHAPE)
    initialise(module, 1)
    tokenizer = check_tokenizer(train_tokenizer([PROMPT], 300), shown="tokenizer.json")
    return CausalModel("random weights", module.eval(), tokenizer, torch.device("cpu"))


def ours(model: CausalModel, tokens: int, *, cached: bool) -> list[int]:
    """The tokens of a greedy continuation."""
    settings = GenerationSettings(Sampling(greedy=True), max_new_tokens=tokens, cached=cached)
    return generate(model, [PROMPT], settings)[0].samples[0].token_ids


def llama(model: CausalModel) -> Callable[[int], list[int]] | None:
    """transformers on the same weights; None where it is not installed."""
    try:
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError:
        return None
    config = LlamaConfig(
        vocab_size=SHAPE.vocab_size,
        hidden_size=SHAPE.d_model,
        intermediate_size=SHAPE.d_ff,
        num_hidden_layers=SHAPE.n_layers,
        num_attention_heads=SHAPE.n_heads,
        num_key_value_heads=SHAPE.n_kv_heads,
        max_position_embeddings=SHAPE.max_seq_len,
        rms_norm_eps=SHAPE.norm_eps,
        rope_theta=SHAPE.rope_theta,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
    )
    theirs = LlamaForCausalLM(config).eval()
    renamed = {
        "transformer.embedding": "model.embed_tokens",
        "transformer.norm": "model.norm",
        "transformer.blocks": "model.layers",
        "attention_norm": "input_layernorm",
        "feed_forward_norm": "post_attention_layernorm",
        **{f"attention.{name}": f"self_attn.{name[0]}_proj" for name in ("query", "key", "value", "output")},
        **{f"feed_forward.{name}": f"mlp.{name}_proj" for name in ("gate", "up", "down")},
    }
    weights = {}
    for name, value in model.module.state_dict().items():
        for old, new in renamed.items():
            name = name.replace(old + ".", new + ".")
        weights[name] = value
    missing, unexpected = theirs.load_state_dict(weights, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    theirs.tie_weights()

    def continue_prompt(tokens: int) -> list[int]:
        ids = torch.tensor([model.encode(PROMPT)])
        with torch.inference_mode():
            out = theirs.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, do_sample=False, pad_token_id=0
            )
        return out[0, ids.shape[1] :].tolist()

    return continue_prompt


def seconds(work: Callable[[], list[int]], repeats: int = 3) -> tuple[float, list[int]]:
    """The shortest of some times, and what was made."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        made = work()
        times.append(time.perf_counter() - began)
    return min(times), made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model = small_model()
    ours(model, 16, cached=True)
    ways: dict[str, tuple[float, list[int]]] = {
        "cache": seconds(lambda: ours(model, options.tokens, cached=True)),
        "no cache": seconds(lambda: ours(model, options.tokens, cached=False), repeats=1),
    }
    if (theirs := llama(model)) is not None:
        theirs(16)
        ways["transformers"] = seconds(lambda: theirs(options.tokens))
    cached = ways["cache"][0]
    for name, (taken, made) in ways.items():
        same = "same tokens" if made == ways["cache"][1] else "OTHER TOKENS"
        print(f"{name:12}  {taken:7.2f} s  {len(made) / taken:7.1f} tokens/s  {taken / cached:5.2f} x  {same}")


if __name__ == "__main__":
    main()
