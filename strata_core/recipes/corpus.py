"""The recipe of a corpus: what `strata prepare-corpus` reads and how."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from strata_core.recipes.settings import LARGEST_INTEGER, Table, folder_or_file, setting, table


class PrepareTable(Table):
    """Sources, tokenizer and split. What is absent takes the default of `strata prepare-corpus`."""

    inputs: tuple[Annotated[Path, Field(strict=False)], ...] = Field(
        default=(),
        description="Files and folders to read, in this order.",
        json_schema_extra={"format": "path"},
        strict=False,
    )
    sample: str | None = setting(None, "Built-in sample, in place of inputs.")
    sample_sentences: int | None = setting(
        None, "Size of a generated treebank.", unit="sentences", ge=1, le=LARGEST_INTEGER
    )
    sample_seed: int | None = setting(None, "Seed of a generated sample.", ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)
    roles: tuple[Annotated[Path, Field(strict=False)], ...] | None = Field(
        default=None,
        description="Files of stand-off roles (UP columns) for the treebanks among the inputs, or folders of them.",
        json_schema_extra={"format": "path"},
        strict=False,
    )
    vocab_size: int | None = setting(
        None, "Vocabulary of the tokenizer to train.", unit="tokens", ge=257, le=LARGEST_INTEGER
    )
    tokenizer: Path | None = folder_or_file("A tokenizer.json to use, in place of training one.")
    text_key: str | None = setting(None, "Key of the text in a JSONL record.")
    val_fraction: float | None = setting(None, "Share of the documents held out for validation.", ge=0, lt=1)
    shard_tokens: int | None = setting(
        None, "Tokens after which a shard is closed.", unit="tokens", ge=1, le=LARGEST_INTEGER
    )
    on_error: Literal["stop", "skip"] | None = setting(None, "What a bad record does.")
    format: Literal["auto", "text", "jsonl", "conllu", "conll2009", "triples", "clutrr", "graphs"] | None = setting(
        None, "How inputs are read; auto goes by names, and by content for graphs and triples."
    )
    columns: tuple[Literal["head", "relation", "tail"], ...] | None = Field(
        default=None, description="Order of the columns in files of triples.", strict=False
    )
    sample_examples: int | None = setting(
        None, "Training examples of a generated sample of graphs.", unit="examples", ge=1, le=LARGEST_INTEGER
    )
    sample_eval_examples: int | None = setting(
        None, "Examples in each other split of that sample.", unit="examples", ge=1, le=LARGEST_INTEGER
    )
    sample_longest_hops: int | None = setting(None, "Longest training query of that sample.", unit="hops", ge=2, le=8)
    sample_doubtful_share: float | None = setting(
        None, "Share of its examples around a link that holds only with a known chance.", ge=0, le=1
    )


class CorpusRecipe(Table):
    """A corpus."""

    kind: Literal["corpus"] = setting("corpus", "What the recipe makes.")
    base: str | None = setting(None, "Another recipe, by name or path, whose settings this one starts from.")
    description: str = setting("", "One line on what the recipe is for.")
    prepare: PrepareTable = table()
