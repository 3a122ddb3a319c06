"""The inventories of labels that annotated sentences use: each label has a number, given out in order of first use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

LABEL_KINDS = ("upos", "relation", "roleset", "role")
WORD_LABEL_KINDS = ("xpos", "feats", "lemma_rule")
"""Labels of words that many treebanks lack: XPOS, the whole of FEATS, and the rule that makes the lemma."""
NO_FEATURES = "_"
"""The FEATS of a word that has none, where others of its treebank do."""
ROOT_RELATION = "root"
"""The relation of the word whose head is 0, and of no other (Universal Dependencies)."""
NO_LABEL = -1


class Labels:
    """Numbers labels, and names them again. One object serves all splits of a corpus, so that they agree.

    Args:
        names: kind -> labels in the order of their numbers, to go on from.
    """

    def __init__(self, names: Mapping[str, Sequence[str]] | None = None) -> None:
        kinds = (*LABEL_KINDS, *WORD_LABEL_KINDS)
        self._names = {kind: list((names or {}).get(kind, ())) for kind in kinds}
        self._numbers = {kind: {name: number for number, name in enumerate(self._names[kind])} for kind in kinds}

    def number(self, kind: str, label: str | None) -> int:
        """The label's number, a new one where it is seen for the first time; NO_LABEL for None."""
        if label is None:
            return NO_LABEL
        numbers = self._numbers[kind]
        if label not in numbers:
            numbers[label] = len(numbers)
            self._names[kind].append(label)
        return numbers[label]

    def name(self, kind: str, number: int) -> str | None:
        """The label of a number; None for NO_LABEL."""
        return None if number == NO_LABEL else self._names[kind][number]

    def known(self, kind: str, label: str) -> int | None:
        """The label's number; None where it has none."""
        return self._numbers[kind].get(label)

    def names(self, kind: str) -> tuple[str, ...]:
        """All labels of a kind in the order of their numbers."""
        return tuple(self._names[kind])

    def used_kinds(self) -> tuple[str, ...]:
        """LABEL_KINDS, and those of WORD_LABEL_KINDS that have a label other than NO_FEATURES."""
        return (*LABEL_KINDS, *(kind for kind in WORD_LABEL_KINDS if set(self._names[kind]) - {NO_FEATURES}))
