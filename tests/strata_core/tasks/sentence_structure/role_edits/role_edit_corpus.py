"""A small corpus whose text has the words of role edits, and sentences that make role edits themselves."""

from __future__ import annotations

from pathlib import Path

from strata_core.corpus.generators.role_edit_texts import role_edit_text
from strata_core.corpus.preparing.preparation import prepare_corpus
from strata_core.corpus.preparing.settings import PreparationSettings
from strata_core.corpus.reading import Corpus, open_corpus
from strata_core.corpus.treebanks.conllu_writing import write_conllu
from strata_core.corpus.treebanks.sentence import Argument, Predicate, Sentence

NAMES = ("Anna", "David", "Maria", "Peter", "Sarah", "Thomas")


def two_events(first: int) -> Sentence:
    """ "Anna saw David and Maria knew Peter ." with names from number `first` on; all arguments are single words."""
    agent, patient, other_agent, other_patient = (NAMES[(first + step) % len(NAMES)] for step in range(4))
    return Sentence(
        forms=(agent, "saw", patient, "and", other_agent, "knew", other_patient, "."),
        upos=("PROPN", "VERB", "PROPN", "CCONJ", "PROPN", "VERB", "PROPN", "PUNCT"),
        heads=(2, 0, 2, 6, 6, 2, 6, 2),
        relations=("nsubj", "root", "obj", "cc", "nsubj", "conj", "obj", "punct"),
        space_after=(True,) * 8,
        predicates=(
            Predicate(2, "see.01", (Argument("ARG0", 1), Argument("ARG1", 3))),
            Predicate(6, "know.01", (Argument("ARG0", 5), Argument("ARG1", 7))),
        ),
    )


def make_role_edit_corpus(folder: Path) -> Corpus:
    """A corpus of `role_edit_text` and `two_events` with training and validation splits."""
    inputs = []
    for split, numbers in (("train", range(90)), ("dev", range(1000, 1010))):
        sentences = [role_edit_text(3, number) for number in numbers]
        sentences += [two_events(first) for first in range(4 if split == "train" else 1)]
        inputs.append(folder / f"x-{split}.conllu")
        inputs[-1].write_text("".join(write_conllu(sentences, roles=True)))
    prepare_corpus(inputs, folder / "corpus", PreparationSettings(vocab_size=900, workers=1, backend="tokenizers"))
    return open_corpus(folder / "corpus")
