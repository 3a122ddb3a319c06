"""Domains of typed entities, and the relations that generated graphs are made of.

In each domain every ordered pair of types has two relations, so that there is always a wrong relation that fits as well
as the right one. Beside each relation there is its denial, and relations of doubt and levels that belong to no domain.
"""

from __future__ import annotations

from typing import NamedTuple


class Relation(NamedTuple):
    """A relation of a domain, between entities of two types (numbers in NODE_TYPES)."""

    name: str
    source_type: int
    destination_type: int


_DOMAINS: dict[str, dict[tuple[str, str], tuple[str, str]]] = {
    "science": {
        ("person", "person"): ("advises", "works_with"),
        ("person", "paper"): ("wrote", "reviewed"),
        ("paper", "person"): ("thanks", "is_presented_by"),
        ("paper", "paper"): ("cites", "extends"),
    },
    "trade": {
        ("company", "company"): ("owns", "supplies"),
        ("company", "city"): ("is_based_in", "ships_to"),
        ("city", "company"): ("hosts", "taxes"),
        ("city", "city"): ("exports_to", "is_twinned_with"),
    },
    "nature": {
        ("species", "species"): ("eats", "shelters"),
        ("species", "region"): ("is_native_to", "migrates_to"),
        ("region", "species"): ("protects", "threatens"),
        ("region", "region"): ("borders", "drains_into"),
    },
}

NODE_TYPES = tuple(f"{domain}/{name}" for domain, pairs in _DOMAINS.items() for name in {pair[0]: 0 for pair in pairs})
"""Types of entities, domain by domain."""

RELATIONS = tuple(
    Relation(f"{domain}/{name}", NODE_TYPES.index(f"{domain}/{source}"), NODE_TYPES.index(f"{domain}/{destination}"))
    for domain, pairs in _DOMAINS.items()
    for (source, destination), names in pairs.items()
    for name in names
)
"""Relations that queries follow; the two between the same types stand side by side."""

N_DOMAINS = len(_DOMAINS)
TYPES_IN_DOMAIN = len(NODE_TYPES) // N_DOMAINS

DOUBT_GRADES = (0.9, 0.75, 0.6)
"""How likely an edge of each grade of doubt is to be the relation that the query follows there; 0.5 at least."""

LARGEST_NUMBER = 5
"""Counts and levels go from 1 to this."""

_FIRST_DOUBT = 2 * len(RELATIONS)
_FIRST_LEVEL = _FIRST_DOUBT + len(DOUBT_GRADES)

RELATION_NAMES = (
    *(relation.name for relation in RELATIONS),
    *(f"{relation.name}/denied" for relation in RELATIONS),
    *(f"doubtful/{grade}" for grade in DOUBT_GRADES),
    *(f"level/{number}" for number in range(1, LARGEST_NUMBER + 1)),
)
"""Names of all relations of edges, by number."""


def denial(relation: int) -> int:
    """The relation that says of two entities that this one does not hold between them."""
    return relation + len(RELATIONS)


def sibling(relation: int) -> int:
    """The other relation between the same types."""
    return relation ^ 1


def doubt(grade: int) -> int:
    """The relation of an edge that nobody recorded well; `grade` is an index in DOUBT_GRADES."""
    return _FIRST_DOUBT + grade


def level(number: int) -> int:
    """The relation of an edge from an entity to itself that gives it a level, 1 to LARGEST_NUMBER."""
    return _FIRST_LEVEL + number - 1


def relations_into(node_type: int) -> list[int]:
    """The relations that lead to entities of a type."""
    return [number for number, relation in enumerate(RELATIONS) if relation.destination_type == node_type]


def relations_out_of(node_type: int) -> list[int]:
    """The relations that leave entities of a type."""
    return [number for number, relation in enumerate(RELATIONS) if relation.source_type == node_type]
