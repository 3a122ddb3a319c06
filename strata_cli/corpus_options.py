"""The options of `strata prepare-corpus`."""

from typing import Annotated, Literal

import typer

from strata_cli import completion

_GRAPHS = "Corpora of graphs"

Out = Annotated[str, typer.Option(metavar="DIR", help="Where the corpus goes; must not exist.")]
Inputs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[INPUT]...",
        help="Files and folders (.txt, .jsonl, .conllu, .tsv, .csv, .nt; .gz, .zst); - is standard input.",
    ),
]
Sample = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="A built-in sample, in place of inputs.", autocompletion=completion.samples),
]
Recipe = Annotated[
    str | None,
    typer.Option(
        metavar="NAME_OR_PATH",
        help="A corpus recipe; options win over it.",
        autocompletion=completion.corpus_recipes,
    ),
]
SampleSentences = Annotated[int | None, typer.Option(min=1, help="Size of a generated treebank.")]
SampleSeed = Annotated[int | None, typer.Option(help="Seed of a generated sample.")]
Roles = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH", help="Stand-off roles (UP columns) for the treebanks; may be given many times."),
]
VocabSize = Annotated[int | None, typer.Option(min=257, help="Vocabulary of the tokenizer to train.")]
Tokenizer = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|FOLDER", help="A tokenizer.json, or a model's folder with one, in place of training one."
    ),
]
TextKey = Annotated[str | None, typer.Option(metavar="KEY", help="Key of the text in a JSONL record.")]
ValFraction = Annotated[
    float | None, typer.Option(min=0.0, max=1.0, help="Share of the documents or examples held out for validation.")
]
ShardTokens = Annotated[int | None, typer.Option(min=1, help="Tokens after which a shard is closed.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes; any number gives the same bytes.")]
Backend = Annotated[
    Literal["auto", "tokenizers", "fast"] | None,
    typer.Option(help="What encodes the text; all give the same bytes."),
]
OnError = Annotated[
    Literal["stop", "skip"] | None, typer.Option(help="Whether a bad record ends the work or is left out.")
]
Format = Annotated[
    Literal["auto", "text", "jsonl", "conllu", "conll2009", "triples", "clutrr", "graphs"] | None,
    typer.Option(help="How inputs are read; auto goes by names, and by content for graphs and triples."),
]
Columns = Annotated[
    str | None,
    typer.Option(metavar="A,B,C", help="Order of head, relation and tail in triples.", rich_help_panel=_GRAPHS),
]
SampleExamples = Annotated[
    int | None, typer.Option(min=1, help="Training examples of synthetic-reasoning.", rich_help_panel=_GRAPHS)
]
SampleEvalExamples = Annotated[
    int | None, typer.Option(min=1, help="Examples in each of its other splits.", rich_help_panel=_GRAPHS)
]
SampleLongestHops = Annotated[
    int | None, typer.Option(min=2, max=8, help="Hops of its longest training query.", rich_help_panel=_GRAPHS)
]
SampleDoubtfulShare = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        max=1.0,
        help="Share of its examples around a link that holds only with a known chance.",
        rich_help_panel=_GRAPHS,
    ),
]
