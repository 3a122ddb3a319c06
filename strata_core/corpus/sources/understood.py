"""What the inputs of a corpus were taken for, so that nobody has to guess."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from strata_core.corpus.sources.files import InputFile
from strata_core.corpus.splits import named_split

KINDS = {
    "text": "text",
    "jsonl": "JSON Lines of text",
    "conllu": "annotated sentences (CoNLL-U)",
    "conll2009": "annotated sentences (CoNLL-2009)",
    "roles": "roles of annotated sentences",
    "triples": "triples",
    "clutrr": "CLUTRR",
    "graphs": "JSON Lines of graphs",
}
"""Each kind of input in words."""

_SHOWN_FILES = 6


@dataclass(frozen=True)
class NamedFile:
    """A file by the name that `corpus.json` has, and the split that its name tells, if any."""

    name: str
    split: str | None = None


@dataclass(frozen=True)
class Understood:
    """Files that were taken for one kind of input.

    Attributes:
        kind: a key of KINDS.
        files: in reading order.
    """

    kind: str
    files: tuple[NamedFile, ...]

    def __str__(self) -> str:
        """One line: "understood 2 files as triples: train.txt (train), test.txt (test)"."""
        shown = [f"{file.name} ({file.split})" if file.split else file.name for file in self.files[:_SHOWN_FILES]]
        more = len(self.files) - len(shown)
        names = ", ".join(shown) + (f" and {more:,} more" if more else "")
        count = f"{len(self.files):,} file{'s' if len(self.files) != 1 else ''}"
        return f"understood {count} as {KINDS[self.kind]}: {names}"


def understood_text(files: Iterable[InputFile], role_files: Sequence[InputFile]) -> tuple[Understood, ...]:
    """Files of text and of annotated sentences by kind, in the order in which the kinds first come.

    Args:
        files: as they are read; those among `role_files` are no text.
        role_files: stand-off roles.
    """
    kinds: dict[str, list[NamedFile]] = {}
    for file in files:
        if file not in role_files:
            split = named_split(file.name) if file.format in ("conllu", "conll2009") else None
            name = "standard input" if file.is_standard_input else file.name
            kinds.setdefault(file.format, []).append(NamedFile(name, split))
    if role_files:
        kinds["roles"] = [NamedFile(file.name) for file in role_files]
    return tuple(Understood(kind, tuple(named)) for kind, named in kinds.items())
