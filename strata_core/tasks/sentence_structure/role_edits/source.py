"""Which role edits a run trains on and is measured by: an endless generated set, or those of a treebank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from strata_core.corpus.generators.role_edits import BALANCED_BLOCK, role_edit_example
from strata_core.corpus.reading import Corpus
from strata_core.corpus.text.tokenizer import read_tokenizer
from strata_core.corpus.treebanks.role_edit import RoleEdit
from strata_core.corpus.treebanks.role_edit_examples import EncodedRoleEdit, RoleEditEncoder, treebank_role_edits
from strata_core.corpus.treebanks.structure_reading import StructureReader
from strata_core.errors import RecipeError
from strata_core.randomness import derive_seed
from strata_core.training.order import SampleOrder

HELD_OUT = 16 * BALANCED_BLOCK
"""Examples that an evaluation looks at, at most."""

_HELD_OUT_SEED = 0
_LOOKED_AT_FOR_LENGTH = 4 * BALANCED_BLOCK
_KEPT = 4096
_KEPT_SETS = 2


def role_edit_encoder(corpus: Corpus) -> RoleEditEncoder:
    """The encoder of a corpus's tokenizer and role labels.

    Raises:
        DataError: the corpus has no annotated sentences, or not both of ARG0 and ARG1 among its roles.
    """
    tokenizer = read_tokenizer(corpus.tokenizer_path).tokenizer
    roles = corpus.structure("train").labels.names("role")

    def encode(text: str) -> object:
        return tokenizer.encode(text, add_special_tokens=False)

    return RoleEditEncoder(encode, roles)  # type: ignore[arg-type]


class RoleEdits:
    """Examples by number, each read and encoded on demand.

    Args:
        n_examples: how many there are; None: no end.
        read: gives an example.
        encoder: gives it its tokens.
    """

    def __init__(self, n_examples: int | None, read: Callable[[int], RoleEdit], encoder: RoleEditEncoder) -> None:
        self.n_examples = n_examples
        self.read = read
        self._encoded = lru_cache(_KEPT)(lambda number: encoder.encode(read(number)))

    def __getitem__(self, number: int) -> EncodedRoleEdit:
        return self._encoded(number)

    def longest(self, count: int) -> np.ndarray:
        """The numbers of the longest examples, int64 [count]; of an endless set, among its first."""
        limit = _LOOKED_AT_FOR_LENGTH if self.n_examples is None else self.n_examples
        lengths = np.array([self[number].length for number in range(limit)])
        return np.resize(np.argsort(-lengths, kind="stable")[:count], count)


def generated_role_edits(seed: int, encoder: RoleEditEncoder, n_examples: int | None = None) -> RoleEdits:
    """The generator's examples under a seed."""
    return RoleEdits(n_examples, lambda number: role_edit_example(seed, number), encoder)


def split_role_edits(reader: StructureReader, encoder: RoleEditEncoder, max_length: int) -> RoleEdits:
    """The examples of a split's sentences in reading order; those over max_length tokens are left out."""
    places = []
    for sentence in range(len(reader)):
        if reader.arrays(sentence).has_roles:
            for which, edit in enumerate(treebank_role_edits(reader.sentence(sentence))):
                if encoder.encode(edit).length <= max_length:
                    places.append((sentence, which))

    def read(number: int) -> RoleEdit:
        sentence, which = places[number]
        return list(treebank_role_edits(reader.sentence(sentence)))[which]

    return RoleEdits(len(places), read, encoder)


class RoleEditStream:
    """The training examples of a run by position, a pure function of the run's seed.

    Args:
        edits: where they come from.
        seed: the run's.
    """

    def __init__(self, edits: RoleEdits, seed: int) -> None:
        self.edits = edits
        self._order = None if edits.n_examples is None else SampleOrder(max(edits.n_examples, 1), seed, "role edits")

    def numbers(self, start: int, count: int) -> np.ndarray:
        """The examples at positions start .. start + count - 1, int64 [count].

        An endless set is gone through in its own order, which is balanced.
        """
        return np.arange(start, start + count) if self._order is None else self._order.samples(start, count)


def training_role_edits(corpus: Corpus, source: str, seed: int, max_length: int) -> RoleEdits:
    """What a run of this seed trains on.

    Args:
        corpus: gives tokenizer, labels and, for "treebank", the sentences of its training split.
        source: "generated" or "treebank".
        seed: the run's.
        max_length: longest sequence that the model takes, in tokens.

    Raises:
        DataError: as `role_edit_encoder`.
        RecipeError: the treebank has no example, or a generated one is too long for the model.
    """
    encoder = role_edit_encoder(corpus)
    if source == "generated":
        edits = generated_role_edits(derive_seed(seed, "role edits"), encoder)
        longest = encoder.longest_generated()
        if longest > max_length:
            raise RecipeError(
                f"generated role edits may take {longest} tokens; the model takes {max_length} (model.max_seq_len)",
                hint="raise model.max_seq_len, or use a corpus with a larger vocabulary",
            )
        return edits
    edits = split_role_edits(corpus.structure("train"), encoder, max_length)
    if not edits.n_examples:
        raise RecipeError(
            f"{corpus.path}: none of its {len(corpus.structure('train')):,} annotated training sentences has two "
            f"predicates with ARG0 and ARG1 that make a role edit of at most {max_length} tokens",
            hint='set objective.role_edit.source = "generated"',
        )
    return edits


def held_out_role_edits(corpus: Corpus, source: str, split: str, max_length: int) -> RoleEdits:
    """What a run is measured by: the same examples for every seed.

    The generated ones are the same for every split; of a treebank they are the first HELD_OUT of the split. The sets
    asked for last are kept, for the next evaluation of a run.
    """
    return _held_out(_HeldOut(corpus.path, corpus.digest, source, split, max_length, corpus))


@dataclass(frozen=True)
class _HeldOut:
    """What tells held-out sets apart, and where one is read from; the corpus itself cannot be hashed."""

    path: Path
    digest: str
    source: str
    split: str
    max_length: int
    corpus: Corpus = field(compare=False)


@lru_cache(_KEPT_SETS)
def _held_out(asked: _HeldOut) -> RoleEdits:
    encoder = role_edit_encoder(asked.corpus)
    if asked.source == "generated":
        return generated_role_edits(derive_seed(_HELD_OUT_SEED, "role edits held out"), encoder, HELD_OUT)
    edits = split_role_edits(asked.corpus.structure(asked.split), encoder, asked.max_length)
    return RoleEdits(min(edits.n_examples or 0, HELD_OUT), edits.read, encoder)
