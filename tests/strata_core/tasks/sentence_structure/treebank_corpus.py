"""Small annotated corpora and a recipe of a structured model that trains in milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from strata_core.corpus.generators.treebank import synthetic_sentence
from strata_core.corpus.preparing.preparation import prepare_corpus
from strata_core.corpus.preparing.settings import PreparationSettings
from strata_core.corpus.reading import Corpus, open_corpus
from strata_core.corpus.treebanks.conllu_writing import write_conllu
from strata_core.corpus.treebanks.sentence import Sentence
from strata_core.recipes import load_recipe
from strata_core.recipes.lm import LMRecipe
from strata_core.tasks.sentence_structure.task import StructuredTask

ALL_WEIGHTS = (
    "objective.ud.arc=0.4",
    "objective.ud.relation=0.3",
    "objective.ud.node_type=0.2",
    "objective.srl.predicate=0.5",
    "objective.srl.role=0.7",
    "objective.srl.core_role=0.1",
    "objective.chart.type=0.6",
)

WORD_LABEL_WEIGHTS = ("objective.ud.xpos=0.3", "objective.ud.feats=0.2", "objective.ud.lemma=0.4")

SMALL = (
    "model.d_model=16",
    "model.n_layers=2",
    "model.n_heads=2",
    "model.heads.arc_width=8",
    "model.heads.relation_width=6",
    "model.heads.role_width=6",
    "model.word_features.buckets=64",
    "batch.seq_len=16",
    "batch.batch_size=12",
    "batch.micro_batch_size=12",
    "batch.sentences=8",
    "batch.num_workers=0",
    "optimizer.lr=0.01",
    "optimizer.min_lr=0.001",
    "optimizer.warmup_steps=2",
    "run.max_steps=12",
    "run.seed=7",
    "run.precision='fp32'",
    "run.log_every=1",
)


def tagged(sentence: Sentence) -> Sentence:
    """With made-up tags and features, and lemmas without a final s."""
    plural = [form.endswith("s") for form in sentence.forms]
    return replace(
        sentence,
        lemmas=tuple(form.lower().removesuffix("s") or form for form in sentence.forms),
        xpos=tuple((upos or "X")[:2].lower() for upos in sentence.upos),
        feats=tuple("Number=Plur" if one else "_" for one in plural),
    )


def write_treebank(
    path: Path, numbers: range, *, roles: bool = True, change: Callable[[Sentence], Sentence] = lambda one: one
) -> Path:
    """Generated sentences, perhaps changed, as a CoNLL-U Plus file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sentences = (change(synthetic_sentence(3, number)) for number in numbers)
    path.write_text("".join(write_conllu(sentences, roles=roles)))
    return path


def make_corpus(
    folder: Path,
    *,
    roles: bool = True,
    train: int = 48,
    val: int = 12,
    change: Callable[[Sentence], Sentence] = lambda one: one,
) -> Corpus:
    """A corpus of generated sentences, perhaps changed, with training and validation splits."""
    files = [
        write_treebank(folder / "in" / "x-train.conllu", range(train), roles=roles, change=change),
        write_treebank(folder / "in" / "x-dev.conllu", range(1000, 1000 + val), roles=roles, change=change),
    ]
    settings = PreparationSettings(vocab_size=300, workers=1, backend="tokenizers")
    prepare_corpus([path for path in files if val or "dev" not in path.name], folder / "corpus", settings)
    return open_corpus(folder / "corpus")


def small_recipe(corpus: Corpus, *settings: str) -> LMRecipe:
    """A recipe of a two-block model over a corpus."""
    file = corpus.path.parent / "recipe.toml"
    file.write_text(f"[corpus]\npath = {str(corpus.path)!r}\n")
    return load_recipe(file, "lm", [*SMALL, *settings])


def small_task(corpus: Corpus, *settings: str) -> StructuredTask:
    """The task of `small_recipe`."""
    return StructuredTask(small_recipe(corpus, *settings), corpus)
