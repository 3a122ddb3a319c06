"""The words of the synthetic treebank. No form belongs to two parts of speech."""

from __future__ import annotations

from typing import NamedTuple


class Noun(NamedTuple):
    """A noun in both numbers."""

    singular: str
    plural: str

    def form(self, *, plural: bool) -> str:
        return self.plural if plural else self.singular


class Verb(NamedTuple):
    """A verb: "he knows", "they know", "he knew", "he is known"; its roleset and the role of its subject."""

    singular: str
    plural: str
    past: str
    participle: str
    roleset: str
    subject_role: str = "ARG0"

    def present(self, *, plural: bool) -> str:
        return self.plural if plural else self.singular


def _regular(*words: str) -> tuple[Noun, ...]:
    return tuple(Noun(word, f"{word}s") for word in words)


PEOPLE = (
    *_regular("teacher", "doctor", "lawyer", "student", "farmer", "driver", "singer", "writer", "soldier", "manager"),
    *_regular("officer", "reporter", "neighbor", "friend", "boy", "girl", "brother", "sister", "painter", "scientist"),
    *_regular("actor", "president", "visitor", "player"),
    Noun("man", "men"),
    Noun("woman", "women"),
    Noun("child", "children"),
    Noun("secretary", "secretaries"),
)

THINGS = (
    *_regular("car", "letter", "picture", "table", "bottle", "computer", "chair", "key", "bag", "ticket"),
    *_regular("song", "window", "shirt", "camera", "lamp", "coin", "ring", "newspaper", "gift", "machine"),
    Noun("box", "boxes"),
    Noun("story", "stories"),
    Noun("knife", "knives"),
    Noun("watch", "watches"),
)

PLACES = _regular("garden", "park", "office", "kitchen", "station", "school", "village", "hotel", "museum", "market")

NAMES = ("Anna", "David", "Maria", "Peter", "Sarah", "Thomas", "Laura", "Robert", "Julia", "Michael")

TRANSITIVE = (
    Verb("knows", "know", "knew", "known", "know.01"),
    Verb("sees", "see", "saw", "seen", "see.01"),
    Verb("likes", "like", "liked", "liked", "like.01"),
    Verb("finds", "find", "found", "found", "find.01"),
    Verb("remembers", "remember", "remembered", "remembered", "remember.01"),
    Verb("follows", "follow", "followed", "followed", "follow.01"),
    Verb("avoids", "avoid", "avoided", "avoided", "avoid.01"),
    Verb("chooses", "choose", "chose", "chosen", "choose.01"),
    Verb("admires", "admire", "admired", "admired", "admire.01"),
    Verb("describes", "describe", "described", "described", "describe.01"),
    Verb("protects", "protect", "protected", "protected", "protect.01"),
    Verb("recognizes", "recognize", "recognized", "recognized", "recognize.01"),
)

INTRANSITIVE = (
    Verb("sleeps", "sleep", "slept", "slept", "sleep.01"),
    Verb("laughs", "laugh", "laughed", "laughed", "laugh.01"),
    Verb("waits", "wait", "waited", "waited", "wait.01"),
    Verb("sings", "sing", "sang", "sung", "sing.01"),
    Verb("arrives", "arrive", "arrived", "arrived", "arrive.01", "ARG1"),
    Verb("disappears", "disappear", "disappeared", "disappeared", "disappear.01", "ARG1"),
    Verb("falls", "fall", "fell", "fallen", "fall.01", "ARG1"),
)

DITRANSITIVE = (
    Verb("gives", "give", "gave", "given", "give.01"),
    Verb("sends", "send", "sent", "sent", "send.01"),
    Verb("sells", "sell", "sold", "sold", "sell.01"),
    Verb("offers", "offer", "offered", "offered", "offer.01"),
    Verb("brings", "bring", "brought", "brought", "bring.01"),
)

CLAUSAL = (
    Verb("thinks", "think", "thought", "thought", "think.01"),
    Verb("says", "say", "said", "said", "say.01"),
    Verb("believes", "believe", "believed", "believed", "believe.01"),
    Verb("hopes", "hope", "hoped", "hoped", "hope.01"),
)

ADJECTIVES = ("old", "young", "small", "tall", "happy", "quiet", "famous", "busy", "rich", "strange", "nice", "tired")
SINGULAR_DETERMINERS = ("the", "a", "every", "this")
PLURAL_DETERMINERS = ("the", "some", "many", "these")
NOUN_PREPOSITIONS = ("of", "with", "near")
PLACE_PREPOSITIONS = ("in", "at")
TIME_ADVERBS = ("yesterday", "today", "soon", "again")
VERB_ADVERBS = {"often": "ARGM-TMP", "never": "ARGM-NEG", "quickly": "ARGM-MNR", "probably": "ARGM-ADV"}

EVENTS = (
    ("chase", "chased"),
    ("visit", "visited"),
    ("rescue", "rescued"),
    ("defeat", "defeated"),
    ("attack", "attacked"),
    ("interview", "interviewed"),
    ("search", "searched"),
    ("kick", "kicked"),
    ("warning", "warned"),
    ("examination", "examined"),
    ("invitation", "invited"),
    ("accusation", "accused"),
)
"""Event nouns whose two participants the text leaves open, each with the verb that asks for them."""
