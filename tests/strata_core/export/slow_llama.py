"""A Llama in numpy, one position and one head at a time, in float64; it shares no code with the library."""

import math

import numpy as np


def turned(vector, position, theta, pairs):
    result = vector.copy()
    for index, (first, second) in enumerate(pairs):
        angle = position * theta ** (-2 * index / len(vector))
        a, b = vector[first], vector[second]
        result[first], result[second] = (
            a * math.cos(angle) - b * math.sin(angle),
            a * math.sin(angle) + b * math.cos(angle),
        )
    return result


def halves(width):
    """Pairs of transformers: i and i + E/2."""
    return [(index, index + width // 2) for index in range(width // 2)]


def neighbours(width):
    """Pairs of llama.cpp: 2i and 2i + 1."""
    return [(2 * index, 2 * index + 1) for index in range(width // 2)]


def normalised(vector, scale, eps):
    return vector / math.sqrt(float(np.mean(vector * vector)) + eps) * scale


def logits(weights, settings, tokens, pairs=halves):
    """[L, V] of a row of tokens; weights by the names of LlamaForCausalLM, settings by those of its config.json."""
    weights = {name: np.asarray(weight, dtype=np.float64) for name, weight in weights.items()}
    heads, shared = settings["num_attention_heads"], settings["num_key_value_heads"]
    width, eps, theta = settings["hidden_size"] // heads, settings["rms_norm_eps"], settings["rope_theta"]
    states = [weights["model.embed_tokens.weight"][token] for token in tokens]
    for layer in range(settings["num_hidden_layers"]):

        def weight(name, layer=layer):
            return weights[f"model.layers.{layer}.{name}.weight"]

        inputs = [normalised(state, weight("input_layernorm"), eps) for state in states]
        queries, keys, values = ([weight(f"self_attn.{part}_proj") @ x for x in inputs] for part in "qkv")
        for here in range(len(tokens)):
            read = []
            for head in range(heads):
                mine = slice(head * width, (head + 1) * width)
                group = head // (heads // shared)
                theirs = slice(group * width, (group + 1) * width)
                query = turned(queries[here][mine], here, theta, pairs(width))
                scores = [
                    query @ turned(keys[there][theirs], there, theta, pairs(width)) / math.sqrt(width)
                    for there in range(here + 1)
                ]
                shares = np.exp(np.array(scores) - max(scores))
                shares /= shares.sum()
                read.append(sum(share * values[there][theirs] for there, share in enumerate(shares)))
            states[here] = states[here] + weight("self_attn.o_proj") @ np.concatenate(read)
            inner = normalised(states[here], weight("post_attention_layernorm"), eps)
            gate = weight("mlp.gate_proj") @ inner
            states[here] = states[here] + weight("mlp.down_proj") @ (
                gate / (1 + np.exp(-gate)) * (weight("mlp.up_proj") @ inner)
            )
    output = weights.get("lm_head.weight", weights["model.embed_tokens.weight"])
    return np.stack([output @ normalised(state, weights["model.norm.weight"], eps) for state in states])
