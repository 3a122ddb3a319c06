"""A byte-token corpus and a small recipe to train on it, without a tokenizer and in milliseconds."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from strata_core.corpus.format import CorpusInfo, SourceInfo, TokenizerInfo
from strata_core.corpus.text.shards import ShardWriter
from strata_core.manifest import Manifest, hash_files
from strata_core.recipes import load_recipe
from strata_core.training.stop import SIGNALS

# Models this small are computed many times slower by several threads than by one.
torch.set_num_threads(1)

END_OF_TEXT_ID = 256
WORDS = [
    "the",
    "a",
    "small",
    "old",
    "grey",
    "dog",
    "cat",
    "bird",
    "sees",
    "hears",
    "follows",
    "river",
    "under",
    "over",
    "and",
    "then",
    "stops",
]


def write_byte_corpus(folder: Path, documents: dict[str, list[str]]) -> Path:
    """Writes a corpus whose tokens are UTF-8 bytes and whose vocabulary is 257, documents by split."""
    folder.mkdir(parents=True)
    splits = {}
    for split in ("train", "val"):
        writer = ShardWriter(folder, split, token_bytes=2, shard_tokens=1000)
        for text in documents.get(split, []):
            ids = np.array([*text.encode(), END_OF_TEXT_ID], dtype="<u2")
            writer.add_documents(ids, np.array([len(ids)]), len(text.encode()))
        splits[split] = writer.finish()
    (folder / "tokenizer.json").write_text("{}\n")
    CorpusInfo(
        kind="text",
        documents=sum(split.documents for split in splits.values()),
        tokens=sum(split.tokens for split in splits.values()),
        bytes=sum(split.bytes for split in splits.values()),
        vocab_size=257,
        dtype="uint16",
        end_of_text="<|endoftext|>",
        end_of_text_id=END_OF_TEXT_ID,
        tokenizer=TokenizerInfo(trained=False, requested_vocab_size=None, training_bytes=0),
        val_fraction=0.1,
        splits=splits,
        sources=(SourceInfo("made-up.txt", 0, "0" * 64),),
    ).write(folder)
    names = sorted(path.name for path in folder.iterdir())
    Manifest(describes="corpus", files=tuple(hash_files(folder, names))).write(folder)
    return folder


def made_up_documents(count: int, seed: int) -> list[str]:
    """Short documents of 4 to 20 common words."""
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(4, 20))) for _ in range(count)]


@pytest.fixture(scope="session")
def byte_corpus(tmp_path_factory) -> Path:
    """24 training documents (about 50 windows of 32 tokens) and 6 for validation."""
    documents = {"train": made_up_documents(24, seed=1), "val": made_up_documents(6, seed=2)}
    return write_byte_corpus(tmp_path_factory.mktemp("corpora") / "bytes", documents)


TINY = (
    "model.d_model=16",
    "model.n_layers=2",
    "model.n_heads=2",
    "model.dropout=0.1",
    "batch.seq_len=32",
    "batch.batch_size=4",
    "batch.micro_batch_size=2",
    "batch.num_workers=1",
    "optimizer.lr=0.01",
    "optimizer.min_lr=0.001",
    "optimizer.warmup_steps=2",
    "run.max_steps=12",
    "run.seed=7",
    "run.precision='fp32'",
    "run.log_every=1",
)


@pytest.fixture
def tiny_recipe(byte_corpus, tmp_path):
    """A function from further settings to a recipe of a two-block model that takes a second to train."""
    file = tmp_path / "tiny.toml"
    file.write_text(f"[corpus]\npath = {str(byte_corpus)!r}\n")

    def load(*settings: str):
        return load_recipe(file, "lm", [*TINY, *settings])

    return load


@pytest.fixture(scope="module")
def module_folder(tmp_path_factory) -> Path:
    """Where runs lie that several tests of a module look at."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture
def own_signals() -> Iterator[None]:
    """Gives handlers and mask back after the test."""
    handlers = {each: signal.getsignal(each) for each in SIGNALS}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    yield
    for each, handler in handlers.items():
        signal.signal(each, handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
