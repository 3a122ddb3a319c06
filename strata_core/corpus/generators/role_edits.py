"""Role-edit probes: a text that leaves open who did what to whom, and questions that only the roles can answer.

"A chase involved the teacher and the nurse, and a visit involved the man and the girl." Nothing in the words says who
chased: the roles do, and swapping them must swap the answer to "The one who chased was the", and no answer about the
visit.

Every block of BALANCED_BLOCK consecutive indices has each combination once of: which event is edited, which of its
participants is ARG0, whether the probe asks for ARG0 or ARG1, and the same two for the other event. So neither the
order of mention nor the question tells the answer.
"""

from __future__ import annotations

from strata_core.corpus.generators import lexicon
from strata_core.corpus.generators.draw import Draw
from strata_core.corpus.generators.tree_building import Frame, Node, Phrase, below, build_sentence
from strata_core.corpus.generators.treebank import GENERATOR_VERSION
from strata_core.corpus.treebanks.role_edit import Probe, RoleEdit

BALANCED_BLOCK = 32


def role_edit_example(seed: int, index: int) -> RoleEdit:
    """Example number `index` of the set that `seed` names."""
    draw = Draw(seed, "role edits", index)
    cell = index % BALANCED_BLOCK
    edited, first_acts, asks_agent, other_first_acts, other_asks_agent = (bool(cell >> bit & 1) for bit in range(5))
    events = draw.several_of(lexicon.EVENTS, 2)
    people = [noun.singular for noun in draw.several_of(lexicon.PEOPLE, 4)]
    acts_first = (other_first_acts, first_acts) if edited else (first_acts, other_first_acts)
    asks = (other_asks_agent, asks_agent) if edited else (asks_agent, other_asks_agent)
    pairs = (people[:2], people[2:])
    frames: list[Frame] = []
    clauses = [_clause(events[side][0], pairs[side], acts_first[side], frames) for side in range(2)]
    comma, conjunction = Node(",", "PUNCT"), Node("and", "CCONJ")
    joined = below(clauses[1].head, "punct", comma) + below(clauses[1].head, "cc", conjunction)
    nodes = clauses[0].nodes + joined + below(clauses[0].head, "conj", clauses[1])
    nodes += below(clauses[0].head, "punct", Node(".", "PUNCT"))
    probes = [_probe(events[side][1], pairs[side], acts_first[side], asks[side]) for side in range(2)]
    return RoleEdit(
        context=build_sentence(nodes, frames, f"role-edit-{GENERATOR_VERSION}-{seed}-{index}"),
        edited=int(edited),
        other=1 - int(edited),
        probe=probes[int(edited)],
        unrelated=probes[1 - int(edited)],
    )


def _clause(event: str, pair: list[str], first_acts: bool, frames: list[Frame]) -> Phrase:
    """An event noun, which is the predicate, and two participants that the tree gives to the verb."""
    article = "an" if event[0] in "aeiou" else "a"
    noun, verb = Node(event, "NOUN"), Node("involved", "VERB")
    first, second = (Node(person, "NOUN") for person in pair)
    roles = ("ARG0", "ARG1") if first_acts else ("ARG1", "ARG0")
    frames.append(Frame(noun, f"{event}.01", list(zip(roles, (first, second), strict=True))))
    subject = Phrase([*below(noun, "det", Node(article, "DET")), noun], noun)
    second_phrase = [
        *below(second, "cc", Node("and", "CCONJ")),
        *below(second, "det", Node("the", "DET")),
        *below(first, "conj", second),
    ]
    object_ = Phrase([*below(first, "det", Node("the", "DET")), first, *second_phrase], first)
    return Phrase([*below(verb, "nsubj", subject), verb, *below(verb, "obj", object_)], verb)


def _probe(past: str, pair: list[str], first_acts: bool, asks_agent: bool) -> Probe:
    asked = (past,) if asks_agent else ("was", past)
    question = ("The", "one", "who", *asked, "was", "the")
    agent, patient = pair if first_acts else reversed(pair)
    return Probe(question, agent, patient) if asks_agent else Probe(question, patient, agent)
