"""A synthetic treebank: English-like sentences with gold trees, parts of speech and roles, readable off the words.

Nothing in a sentence is ambiguous: "of", "with" and "near" follow the noun they belong to, "in" and "at" belong to the
nearest verb before them, "who" stands for the nearest person and "which" for the nearest thing. A relative clause put
after the verb ("the teacher arrived yesterday who knows Anna") makes a tree non-projective.
"""

from __future__ import annotations

from strata_core.corpus.generators import lexicon
from strata_core.corpus.generators.draw import Draw
from strata_core.corpus.generators.tree_building import Frame, Node, Phrase, below, build_sentence
from strata_core.corpus.treebanks.sentence import Sentence

GENERATOR_VERSION = 1
"""Goes up whenever the same (seed, index) would give another example."""


def synthetic_sentence(seed: int, index: int) -> Sentence:
    """Sentence number `index` of the treebank that `seed` names, with its tree, roles and sent_id."""
    grammar = _Grammar(Draw(seed, "synthetic treebank", index))
    nodes = grammar.sentence()
    return build_sentence(nodes, grammar.frames, f"synthetic-{GENERATOR_VERSION}-{seed}-{index}")


class _Grammar:
    """One derivation: the random choices, and the predicates met on the way."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.frames: list[Frame] = []
        self.may_postpone = True

    def sentence(self) -> list[Node]:
        kinds = (self._transitive, self._intransitive, self._ditransitive, self._passive, self._copular)
        clause = self._clausal() if self.draw.chance(0.15) else self.draw.one_of(kinds)()
        front: list[Node] = []
        if self.draw.chance(0.15):
            adverb = Node(self.draw.one_of(lexicon.TIME_ADVERBS), "ADV")
            front = below(clause.head, "advmod", adverb) + below(clause.head, "punct", Node(",", "PUNCT"))
            self._add_role(clause.head, "ARGM-TMP", adverb)
        return front + clause.nodes + below(clause.head, "punct", Node(".", "PUNCT"))

    def _clausal(self) -> Phrase:
        """A verb of saying or thinking, and what is said: a clause in which nothing is put after the verb."""
        subject = self._noun_phrase(people=True)
        verb, before = self._verb(self.draw.one_of(lexicon.CLAUSAL), subject)
        kinds = (self._transitive, self._intransitive, self._passive, self._copular)
        self.may_postpone = False
        complement = self.draw.one_of(kinds)()
        that = below(complement.head, "mark", Node("that", "SCONJ"))
        complement.head.head, complement.head.relation = verb, "ccomp"
        self._add_role(verb, "ARG1", complement.head)
        nodes = below(verb, "nsubj", subject) + before + [verb] + that + complement.nodes
        return Phrase(nodes, verb)

    def _transitive(self) -> Phrase:
        people_first, people_second = self.draw.chance(0.8), self.draw.chance(0.5)
        postponed = self.may_postpone and people_first and not people_second and self.draw.chance(0.4)
        subject = self._bare_noun(people=True) if postponed else self._noun_phrase(people=people_first)
        verb, before = self._verb(self.draw.one_of(lexicon.TRANSITIVE), subject)
        object_ = self._bare_noun(people=False) if postponed else self._noun_phrase(people=people_second)
        self._add_role(verb, "ARG1", object_.head)
        nodes = below(verb, "nsubj", subject) + before + [verb] + below(verb, "obj", object_)
        has_relative = any(node.relation == "acl:relcl" for node in object_.nodes)
        nodes += [] if has_relative else self._adjunct(verb)
        return Phrase(nodes + self._postponed_relative(subject, postponed), verb)

    def _intransitive(self) -> Phrase:
        postponed = self.may_postpone and self.draw.chance(0.3)
        subject = self._bare_noun(people=True) if postponed else self._noun_phrase(people=True)
        verb, before = self._verb(self.draw.one_of(lexicon.INTRANSITIVE), subject)
        nodes = below(verb, "nsubj", subject) + before + [verb] + self._adjunct(verb)
        return Phrase(nodes + self._postponed_relative(subject, postponed), verb)

    def _ditransitive(self) -> Phrase:
        subject = self._noun_phrase(people=True)
        verb, before = self._verb(self.draw.one_of(lexicon.DITRANSITIVE), subject)
        gift = self._noun_phrase(people=False, allow_relative=False)
        receiver = self._noun_phrase(people=True, allow_relative=False)
        self._add_role(verb, "ARG1", gift.head)
        self._add_role(verb, "ARG2", receiver.head)
        nodes = below(verb, "nsubj", subject) + before + [verb] + below(verb, "obj", gift)
        return Phrase(nodes + self._prepositional("to", receiver, verb, "obl") + self._adjunct(verb), verb)

    def _passive(self) -> Phrase:
        entry = self.draw.one_of(lexicon.TRANSITIVE)
        subject = self._noun_phrase(people=self.draw.chance(0.5))
        verb = Node(entry.participle, "VERB")
        forms = ("are", "were") if subject.plural else ("is", "was")
        auxiliary = below(verb, "aux:pass", Node(self.draw.one_of(forms), "AUX"))
        self.frames.append(Frame(verb, entry.roleset, [("ARG1", subject.head)]))
        nodes = below(verb, "nsubj:pass", subject) + auxiliary + [verb]
        if self.draw.chance(0.6):
            agent = self._noun_phrase(people=True, allow_relative=False)
            self._add_role(verb, "ARG0", agent.head)
            nodes += self._prepositional("by", agent, verb, "obl:agent")
        return Phrase(nodes + self._adjunct(verb), verb)

    def _copular(self) -> Phrase:
        subject = self._noun_phrase(people=self.draw.chance(0.7))
        adjective = Node(self.draw.one_of(lexicon.ADJECTIVES), "ADJ")
        forms = ("are", "were") if subject.plural else ("is", "was")
        copula = below(adjective, "cop", Node(self.draw.one_of(forms), "AUX"))
        return Phrase(below(adjective, "nsubj", subject) + copula + [adjective], adjective)

    def _verb(self, entry: lexicon.Verb, subject: Phrase) -> tuple[Node, list[Node]]:
        """A finite verb with its frame, and the words between the subject and it."""
        frame = Frame(Node(entry.past, "VERB"), entry.roleset, [(entry.subject_role, subject.head)])
        self.frames.append(frame)
        verb = frame.node
        form = self.draw.one_of(("present", "present", "past", "will", "do"))
        if form == "present":
            verb.form = entry.present(plural=subject.plural)
        if form == "will":
            verb.form = entry.plural
            will = Node("will", "AUX")
            frame.roles.append(("ARGM-MOD", will))
            return verb, below(verb, "aux", will)
        if form == "do":
            verb.form = entry.plural
            contracted = self.draw.chance(0.5)
            do = Node(self.draw.one_of(("do" if subject.plural else "does", "did")), "AUX", joins_next=contracted)
            negation = Node("n't" if contracted else "not", "PART")
            frame.roles.append(("ARGM-NEG", negation))
            return verb, below(verb, "aux", do) + below(verb, "advmod", negation)
        if self.draw.chance(0.15):
            adverb = Node(self.draw.one_of(tuple(lexicon.VERB_ADVERBS)), "ADV")
            frame.roles.append((lexicon.VERB_ADVERBS[adverb.form], adverb))
            return verb, below(verb, "advmod", adverb)
        return verb, []

    def _noun_phrase(self, *, people: bool, allow_relative: bool = True) -> Phrase:
        if people and self.draw.chance(0.15):
            name = Node(self.draw.one_of(lexicon.NAMES), "PROPN")
            return Phrase([name], name)
        noun = self._bare_noun(people=people)
        if self.draw.chance(0.15):
            modifier = self._bare_noun(people=self.draw.chance(0.5))
            preposition = self.draw.one_of(lexicon.NOUN_PREPOSITIONS)
            after = self._prepositional(preposition, modifier, noun.head, "nmod")
            return Phrase(noun.nodes + after, noun.head, noun.plural)
        if self.draw.chance(0.1):
            second = self._bare_noun(people=people)
            conjunction = below(second.head, "cc", Node("and", "CCONJ"))
            return Phrase(noun.nodes + conjunction + below(noun.head, "conj", second), noun.head, plural=True)
        if allow_relative and self.draw.chance(0.15):
            return Phrase(noun.nodes + self._relative_clause(noun, people=people), noun.head, noun.plural)
        return noun

    def _bare_noun(self, *, people: bool) -> Phrase:
        plural = self.draw.chance(0.5)
        entry = self.draw.one_of(lexicon.PEOPLE if people else lexicon.THINGS)
        noun = Node(entry.form(plural=plural), "NOUN")
        determiners = lexicon.PLURAL_DETERMINERS if plural else lexicon.SINGULAR_DETERMINERS
        determiner = "the" if self.draw.chance(0.5) else self.draw.one_of(determiners)
        adjectives = [Node(self.draw.one_of(lexicon.ADJECTIVES), "ADJ")] if self.draw.chance(0.3) else []
        starts_with_vowel = (adjectives[0].form if adjectives else noun.form)[0] in "aeiou"
        article = "an" if determiner == "a" and starts_with_vowel else determiner
        nodes = below(noun, "det", Node(article, "DET")) + below(noun, "amod", *adjectives) + [noun]
        return Phrase(nodes, noun, plural)

    def _relative_clause(self, noun: Phrase, *, people: bool) -> list[Node]:
        """A clause after its noun, whose pronoun is the subject, or the object of a verb with a person as subject."""
        entry = self.draw.one_of(lexicon.TRANSITIVE)
        other = self._bare_noun(people=True)
        as_subject = self.draw.chance(0.5)
        form = ("who" if as_subject else "whom") if people else "which"
        pronoun = Node(form, "PRON")
        subject = noun if as_subject else other
        verb = Node(entry.present(plural=subject.plural) if self.draw.chance(0.5) else entry.past, "VERB")
        own, others = ("ARG0", "ARG1") if as_subject else ("ARG1", "ARG0")
        roles = [(own, noun.head), (f"R-{own}", pronoun), (others, other.head)]
        self.frames.append(Frame(verb, entry.roleset, roles))
        if as_subject:
            nodes = [*below(verb, "nsubj", pronoun), verb, *below(verb, "obj", other)]
        else:
            nodes = [*below(verb, "obj", pronoun), *below(verb, "nsubj", other), verb]
        verb.head, verb.relation = noun.head, "acl:relcl"
        return nodes

    def _postponed_relative(self, subject: Phrase, postponed: bool) -> list[Node]:
        return self._relative_clause(subject, people=True) if postponed else []

    def _adjunct(self, verb: Node) -> list[Node]:
        if self.draw.chance(0.25):
            place = Node(self.draw.one_of(lexicon.PLACES).singular, "NOUN")
            phrase = Phrase([*below(place, "det", Node("the", "DET")), place], place)
            self._add_role(verb, "ARGM-LOC", place)
            return self._prepositional(self.draw.one_of(lexicon.PLACE_PREPOSITIONS), phrase, verb, "obl")
        if self.draw.chance(0.2):
            adverb = Node(self.draw.one_of(lexicon.TIME_ADVERBS), "ADV")
            self._add_role(verb, "ARGM-TMP", adverb)
            return below(verb, "advmod", adverb)
        return []

    def _prepositional(self, preposition: str, phrase: Phrase, head: Node, relation: str) -> list[Node]:
        case = below(phrase.head, "case", Node(preposition, "ADP"))
        return case + below(head, relation, phrase)

    def _add_role(self, predicate: Node, role: str, argument: Node) -> None:
        for frame in self.frames:
            if frame.node is predicate:
                frame.roles.append((role, argument))
