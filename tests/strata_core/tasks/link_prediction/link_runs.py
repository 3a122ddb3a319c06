"""Runs over rings of entities, whose graph is small enough to be worked on as a matrix or not."""

from __future__ import annotations

from pathlib import Path

from strata_core.corpus.graphs.preparation import prepare_triples_corpus
from strata_core.launch.starting import train
from strata_core.recipes import load_recipe

RECIPE = """kind = "graph"
[model]
d_model = 8
message_rank = 6
dropout = 0.0
[batch]
batch_size = 8
micro_batch_size = 4
num_workers = 0
[run]
max_steps = 40
[optimizer]
lr = 0.01
warmup_steps = 2
"""
DENSE, SPARSE = 17, 90
"""Sizes of rings on either side of what decides between the layouts."""


def ring_triples(size: int) -> dict[str, list[tuple[str, str, str]]]:
    """`next` leads from each entity to the one after it, `skip` to the one after that; some of `skip` are held out."""
    near = [(f"e{i}", "next", f"e{(i + 1) % size}") for i in range(size)]
    skip = [(f"e{i}", "skip", f"e{(i + 2) % size}") for i in range(size)]
    branching = [("e0", "skip", "e5"), ("e0", "skip", "e9"), ("e1", "next", "e9")]
    return {"train": near + skip[:-5] + branching, "valid": [], "test": skip[-5:]}


def write_ring(folder: Path, size: int, **splits: list[tuple[str, str, str]]) -> Path:
    """A corpus of a ring; `splits` take the place of its own."""
    source = folder / "source"
    source.mkdir(parents=True)
    for split, triples in (ring_triples(size) | splits).items():
        (source / f"{split}.txt").write_text("".join("\t".join(triple) + "\n" for triple in triples))
    prepare_triples_corpus(source, folder / "corpus")
    return folder / "corpus"


def train_on_ring(folder: Path, size: int, **splits: list[tuple[str, str, str]]) -> Path:
    """A run of a few steps, over a ring in ../corpus."""
    corpus = write_ring(folder, size, **splits)
    (folder / "recipe.toml").write_text(f"{RECIPE}[corpus]\npath = {str(corpus)!r}\n")
    train(load_recipe(folder / "recipe.toml", "graph"), folder / "run", device="cpu")
    return folder / "run"
