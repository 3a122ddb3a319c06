"""Trees put together from words: phrases are lists of nodes, and a sentence is a list whose order is the word order."""

from __future__ import annotations

from dataclasses import dataclass, field

from strata_core.corpus.treebanks.labels import ROOT_RELATION
from strata_core.corpus.treebanks.sentence import Argument, MultiwordToken, Predicate, Sentence


@dataclass(slots=True, eq=False)
class Node:
    """A word on its way into a tree. `joins_next`: one surface token spells it and the word after it."""

    form: str
    upos: str
    relation: str = ROOT_RELATION
    head: Node | None = None
    joins_next: bool = False


@dataclass(slots=True, eq=False)
class Phrase:
    """Nodes in the order of the words; all but `head` hang below it."""

    nodes: list[Node]
    head: Node
    plural: bool = False


@dataclass(slots=True, eq=False)
class Frame:
    """A predicate on its way into a sentence."""

    node: Node
    roleset: str
    roles: list[tuple[str, Node]] = field(default_factory=list)


def below(head: Node, relation: str, *phrases: Phrase | Node) -> list[Node]:
    """Hangs words or the heads of phrases under a node and returns the nodes in order."""
    nodes: list[Node] = []
    for phrase in phrases:
        top = phrase if isinstance(phrase, Node) else phrase.head
        top.head, top.relation = head, relation
        nodes.extend([phrase] if isinstance(phrase, Node) else phrase.nodes)
    return nodes


def build_sentence(nodes: list[Node], frames: list[Frame], sent_id: str) -> Sentence:
    """Numbers the nodes; the first word gets a capital, and no space stands before a comma or a full stop."""
    number = {id(node): place for place, node in enumerate(nodes, 1)}
    forms = [nodes[0].form[0].upper() + nodes[0].form[1:], *(node.form for node in nodes[1:])]
    followers = [*forms[1:], ""]
    multiword_tokens = [
        MultiwordToken(place, place + 1, forms[place - 1] + forms[place])
        for place, node in enumerate(nodes, 1)
        if node.joins_next
    ]
    predicates = [
        Predicate(number[id(frame.node)], frame.roleset, _arguments(frame, number))
        for frame in sorted(frames, key=lambda frame: number[id(frame.node)])
    ]
    return Sentence(
        forms=tuple(forms),
        upos=tuple(node.upos for node in nodes),
        heads=tuple(0 if node.head is None else number[id(node.head)] for node in nodes),
        relations=tuple(node.relation for node in nodes),
        space_after=tuple(follower not in (",", ".") for follower in followers),
        multiword_tokens=tuple(multiword_tokens),
        predicates=tuple(predicates),
        sent_id=sent_id,
    )


def _arguments(frame: Frame, number: dict[int, int]) -> tuple[Argument, ...]:
    arguments = [Argument(role, number[id(node)]) for role, node in frame.roles]
    return tuple(sorted(arguments, key=lambda argument: argument.head))
