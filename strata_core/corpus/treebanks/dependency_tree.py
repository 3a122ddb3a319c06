"""What makes heads a tree, and what is wrong where they are none.

Heads are given for the words 1..n in order: the number of the head, 0 for the root, None where not annotated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TreeFault:
    """A fault, the word it shows at, and its kind (a key of findings.SEVERITIES)."""

    word: int
    kind: str
    detail: str


def tree_faults(heads: Sequence[int | None]) -> list[TreeFault]:
    """Every reason why the heads are no tree with one root; linear in the number of words.

    Where words lack a head, the rest may lack the root too. Cycles are looked for only in heads that are sound
    otherwise: n words without a root have a cycle of necessity, and it says no more than that.
    """
    faults: list[TreeFault] = []
    for word, head in enumerate(heads, 1):
        if head is None:
            continue
        if head < 0:
            faults.append(TreeFault(word, "head-out-of-range", f"head {head}"))
        elif head > len(heads):
            faults.append(TreeFault(word, "head-out-of-range", f"head {head} of {len(heads)} words"))
        elif head == word:
            faults.append(TreeFault(word, "own-head", f"word {word} is its own head"))
    roots = [word for word, head in enumerate(heads, 1) if head == 0]
    if len(roots) > 1:
        faults.append(TreeFault(roots[1], "several-roots", f"{len(roots)} roots"))
    elif not roots and not faults and None not in heads:
        faults.append(TreeFault(1, "no-root", "no root"))
    return faults or [
        TreeFault(cycle[0], "cycle", f"cycle {'-'.join(map(str, cycle))}") for cycle in find_cycles(heads)
    ]


def find_cycles(heads: Sequence[int | None]) -> list[list[int]]:
    """The words of each cycle in ascending order, cycles by their first word; heads must be in range."""
    walk_of = [0] * (len(heads) + 1)
    cycles = []
    for start in range(1, len(heads) + 1):
        word: int | None = start
        while word and not walk_of[word]:
            walk_of[word] = start
            word = heads[word - 1]
        if word and walk_of[word] == start:
            cycle = [word]
            follower = heads[word - 1]
            while follower is not None and follower != word:
                cycle.append(follower)
                follower = heads[follower - 1]
            cycles.append(sorted(cycle))
    return sorted(cycles)


def subtree_ends(heads: Sequence[int]) -> tuple[list[int], list[int]]:
    """The first and the last word below each word, itself included; entry 0 is for the root.

    Args:
        heads: a tree (see tree_faults), every word annotated.
    """
    first = list(range(len(heads) + 1))
    last = list(range(len(heads) + 1))
    for word in bottom_up(heads):
        head = heads[word - 1]
        first[head] = min(first[head], first[word])
        last[head] = max(last[head], last[word])
    first[0] = 0
    return first, last


def bottom_up(heads: Sequence[int]) -> list[int]:
    """The words in an order that has each one after all its dependents."""
    waiting = [0] * (len(heads) + 1)
    for head in heads:
        waiting[head] += 1
    order = [word for word in range(1, len(heads) + 1) if not waiting[word]]
    for word in order:
        head = heads[word - 1]
        waiting[head] -= 1
        if head and not waiting[head]:
            order.append(head)
    return order


def crossing_words(heads: Sequence[int]) -> list[int]:
    """The words whose arc spans a word that does not descend from the arc's head (non-projective arcs)."""
    sizes = [1] * (len(heads) + 1)
    for word in bottom_up(heads):
        sizes[heads[word - 1]] += sizes[word]
    first, last = subtree_ends(heads)
    if all(last[word] - first[word] + 1 == sizes[word] for word in range(1, len(heads) + 1)):
        return []
    return [
        word
        for word, head in enumerate(heads, 1)
        if any(not _descends(heads, between, head) for between in range(min(word, head) + 1, max(word, head)))
    ]


def _descends(heads: Sequence[int], word: int, ancestor: int) -> bool:
    while word not in (0, ancestor):
        word = heads[word - 1]
    return word == ancestor
