"""Sentences that make role-edit probes ordinary text: contexts with answered questions, by turns with the treebank's.

"A chase involved the teacher and the nurse, and a visit involved the man and the girl. The one who chased was the
nurse. The one who was visited was the girl. ..." The words leave two answers open and the roles of the context decide,
so that a language model which is given the graph of the sentence has a use for it. The questions themselves have no
roles, or their own graph would tell what they ask for.
"""

from __future__ import annotations

from collections.abc import Sequence

from strata_core.corpus.generators.role_edits import role_edit_example
from strata_core.corpus.generators.tree_building import Node, Phrase, below
from strata_core.corpus.generators.treebank import GENERATOR_VERSION, synthetic_sentence
from strata_core.corpus.treebanks.role_edit import Probe
from strata_core.corpus.treebanks.sentence import Sentence
from strata_core.randomness import derive_seed


def role_edit_text(seed: int, index: int) -> Sentence:
    """Sentence number `index` of the set that `seed` names: of the treebank where even, with probes where odd."""
    number, has_probes = divmod(index, 2)
    if not has_probes:
        return synthetic_sentence(seed, number)
    example = role_edit_example(derive_seed(seed, "role edit texts"), number)
    sent_id = f"answered-{GENERATOR_VERSION}-{seed}-{number}"
    asked = (example.probe, example.unrelated)
    return answered(example.context, (*asked, *map(other_voice, asked)), sent_id)


def other_voice(probe: Probe) -> Probe:
    """Who was chased, where the probe asks who chased, and the other way round."""
    who = probe.words.index("who") + 1
    rest = probe.words[who + 1 :] if probe.words[who] == "was" else ("was", *probe.words[who:])
    return Probe((*probe.words[:who], *rest), probe.other, probe.answer)


def answered(context: Sentence, probes: Sequence[Probe], sent_id: str) -> Sentence:
    """The context and the probes with their right answers as one sentence; probes hang below the context's root."""
    nodes = [node for probe in probes for node in _answered_probe(probe)]
    number = {id(node): place for place, node in enumerate(nodes, len(context.forms) + 1)}
    root = context.heads.index(0) + 1
    followers = [*nodes[1:], None]
    return Sentence(
        forms=(*context.forms, *(node.form for node in nodes)),
        upos=(*context.upos, *(node.upos for node in nodes)),
        heads=(*context.heads, *(root if node.head is None else number[id(node.head)] for node in nodes)),
        relations=(*context.relations, *("parataxis" if node.head is None else node.relation for node in nodes)),
        space_after=(
            *context.space_after[:-1],
            True,
            *(follower is None or follower.form != "." for follower in followers),
        ),
        predicates=context.predicates,
        sent_id=sent_id,
    )


def _answered_probe(probe: Probe) -> list[Node]:
    """ "The one who (was) chased was the teacher."."""
    verb, asks_agent = Node(probe.words[-3], "VERB"), len(probe.words) == 6
    the, one, who, answer = Node("The", "DET"), Node("one", "PRON"), Node("who", "PRON"), Node(probe.answer, "NOUN")
    passive = [] if asks_agent else below(verb, "aux:pass", Node("was", "AUX"))
    clause = Phrase([*below(verb, "nsubj" if asks_agent else "nsubj:pass", who), *passive, verb], verb)
    subject = Phrase([*below(one, "det", the), one, *below(one, "acl:relcl", clause)], one)
    nodes = below(answer, "nsubj", subject) + below(answer, "cop", Node("was", "AUX"))
    return [*nodes, *below(answer, "det", Node("the", "DET")), answer, *below(answer, "punct", Node(".", "PUNCT"))]
