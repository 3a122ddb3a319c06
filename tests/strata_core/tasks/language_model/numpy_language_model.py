"""The language model once more, in numpy, read from a checkpoint's files alone: shares no code with strata.

Usage: python -m tests.strata_core.tasks.language_model.numpy_language_model CHECKPOINT CORPUS. Prints nats per token
and bits per byte of the validation split.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file


def softmax(scores):
    exponents = np.exp(scores - scores.max(-1, keepdims=True))
    return exponents / exponents.sum(-1, keepdims=True)


class NumpyLanguageModel:
    """RMSNorm, rotary positions, grouped-query attention, SwiGLU, tied or untied output."""

    def __init__(self, checkpoint: Path, dtype=np.float64):
        self.shape = json.loads((checkpoint / "config.json").read_text())["model"]
        self.weights = {name: w.astype(dtype) for name, w in load_file(checkpoint / "model.safetensors").items()}

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.shape["norm_eps"]) * self.weights[f"{name}.weight"]

    def linear(self, x, name):
        return x @ self.weights[f"{name}.weight"].T

    def rotate(self, x):
        """x: [L, E]; channels i and i + E/2 turn together."""
        length, width = x.shape
        half = width // 2
        angles = np.arange(length)[:, None] * self.shape["rope_theta"] ** (-2 * np.arange(half) / width)
        cos, sin = np.cos(angles), np.sin(angles)
        first, second = x[:, :half], x[:, half:]
        return np.concatenate([first * cos - second * sin, first * sin + second * cos], 1)

    def attention(self, x, block):
        heads, kv_heads = self.shape["n_heads"], self.shape["n_kv_heads"]
        width = self.shape["d_model"] // heads
        q, k, v = (self.linear(x, f"{block}.attention.{part}") for part in ("query", "key", "value"))
        future = np.triu(np.ones((len(x), len(x)), dtype=bool), 1)
        outputs = []
        for head in range(heads):
            shared = head * kv_heads // heads
            mine, theirs = slice(head * width, (head + 1) * width), slice(shared * width, (shared + 1) * width)
            scores = self.rotate(q[:, mine]) @ self.rotate(k[:, theirs]).T / math.sqrt(width)
            scores[future] = -np.inf
            outputs.append(softmax(scores) @ v[:, theirs])
        return self.linear(np.concatenate(outputs, 1), f"{block}.attention.output")

    def nats(self, tokens, labels):
        """The loss of one window, summed over its labels."""
        x = self.weights["transformer.embedding.weight"][tokens]
        for number in range(self.shape["n_layers"]):
            block = f"transformer.blocks.{number}"
            x = x + self.attention(self.norm(x, f"{block}.attention_norm"), block)
            inner = self.norm(x, f"{block}.feed_forward_norm")
            gate = self.linear(inner, f"{block}.feed_forward.gate")
            up = self.linear(inner, f"{block}.feed_forward.up")
            x = x + self.linear(gate / (1 + np.exp(-gate)) * up, f"{block}.feed_forward.down")
        x = self.norm(x, "transformer.norm")
        output = "transformer.embedding.weight" if self.shape["tie_embeddings"] else "output.weight"
        scores = x @ self.weights[output].T
        top = scores.max(-1)
        log_total = top + np.log(np.exp(scores - top[:, None]).sum(-1))
        return float((log_total - scores[np.arange(len(labels)), labels]).sum())


def validation_tokens(corpus: Path):
    """All tokens of the validation split, and the number of bytes they stand for."""
    info = json.loads((corpus / "corpus.json").read_text())
    kind = {"uint16": "<u2", "uint32": "<u4"}[info["dtype"]]
    shards = [np.fromfile(corpus / f"{shard['name']}.bin", dtype=kind) for shard in info["splits"]["val"]["shards"]]
    return np.concatenate(shards).astype(np.int64), info["splits"]["val"]["bytes"]


def validation_loss(checkpoint: Path, corpus: Path, seq_len: int, dtype=np.float64) -> tuple[float, float]:
    """Nats per token and bits per byte, windows of seq_len one after another, each from its own start."""
    model = NumpyLanguageModel(checkpoint, dtype)
    tokens, n_bytes = validation_tokens(corpus)
    total = 0.0
    for start in range(0, len(tokens) - 1, seq_len):
        piece = tokens[start : start + seq_len + 1]
        total += model.nats(piece[:-1], piece[1:])
    loss = total / (len(tokens) - 1)
    return loss, loss / math.log(2) * len(tokens) / n_bytes


if __name__ == "__main__":
    checkpoint, corpus = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    window = json.loads((checkpoint / "config.json").read_text())["model"]["max_seq_len"]
    loss, bits = validation_loss(checkpoint, corpus, window, np.float32)
    print(f"{loss:.6f} nats per token, {bits:.6f} bits per byte")
