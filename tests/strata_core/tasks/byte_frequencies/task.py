"""Byte frequencies as a softmax over one vector: the task, its model, and what the model says of a file."""

import json
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn

from strata_core.training.order import SampleOrder
from strata_core.training.task import StepPlan


class Frequencies(nn.Module):
    """The logarithm of how often each of `size` tokens comes, up to a constant: float32 [size], zeros at first."""

    def __init__(self, size):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(size))

    def forward(self, tokens):
        """Nats of each token; of the shape of `tokens`."""
        return -torch.log_softmax(self.logits, 0)[tokens]


class ByteFrequencies:
    kind = "byte-frequencies"
    loss_weights = {"bytes": 1.0}
    rate_factors = {}
    shapes_vary = False
    metric_directions = {"loss": "min"}

    def __init__(self, recipe, corpus):
        self._recipe, self._corpus = recipe, corpus
        self._size = recipe.batch.seq_len
        self._order = SampleOrder(corpus.split("train").n_tokens // self._size, recipe.run.seed)

    def check(self):
        pass

    def build_model(self):
        return Frequencies(self._corpus.vocab_size)

    def plan(self, step):
        size, micro = self._recipe.batch.batch_size, self._recipe.batch.micro_batch_size
        windows = self._order.samples(step * size, size)
        tokens = size * self._size
        return StepPlan(np.split(windows, size // micro), {"bytes": tokens}, size, tokens)

    def worst_step(self):
        return self.plan(0)

    def fetch(self, micro_batch):
        train = self._corpus.split("train")
        rows = [train.tokens(int(window) * self._size, (int(window) + 1) * self._size) for window in micro_batch]
        return {"tokens": torch.from_numpy(np.stack(rows).astype(np.int64))}

    def loss_sums(self, model, batch):
        return {"bytes": model(batch["tokens"]).sum()}

    def evaluate(self, model, context):
        return self.report(model, "val", context)

    def report(self, model, split, context):
        tokens = self._corpus.split(split)
        every = torch.from_numpy(tokens.tokens(0, tokens.n_tokens).astype(np.int64))
        return {"loss": float(model(every.to(context.device)).mean())}

    def config(self):
        return {"kind": self.kind, "size": self._corpus.vocab_size, "seq_len": self._size}

    def facts(self):
        return {"train": f"{self._corpus.split('train').n_tokens} bytes"}


def nats_of_file(trained, question):
    """One JSON object: nats per byte of the file."""
    model = Frequencies(trained.config["size"])
    trained.load_into(model.to(question.device))
    tokenizer = Tokenizer.from_buffer(trained.checkpoint.tokenizer)
    content = torch.tensor(tokenizer.encode(Path(question.file).read_text(), add_special_tokens=False).ids)
    with torch.inference_mode():
        return json.dumps({"nats_per_byte": float(model(content).mean())}).encode() + b"\n"
