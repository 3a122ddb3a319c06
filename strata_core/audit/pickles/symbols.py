"""What a pickle would make, as plain descriptions: nothing named in the file is imported, called or built.

Numbers, short text, tuples and lists stand for themselves. Everything else is one of the classes here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Global:
    """Something looked up by name when the pickle is loaded."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class Dictionary:
    """A dict, as its keys and values in turn (keys may be unhashable here; a later pair replaces an earlier one)."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: list[Any] = []

    def pairs(self) -> list[tuple[Any, Any]]:
        """(key, value) in the order of writing."""
        return list(zip(self.entries[::2], self.entries[1::2], strict=True))

    def get(self, key: str) -> Any:
        """The last value under a text key, or None."""
        for position in range(len(self.entries) - 2, -1, -2):
            if isinstance(self.entries[position], str) and self.entries[position] == key:
                return self.entries[position + 1]
        return None


class Group:
    """A set or frozenset: its members in the order of writing."""

    __slots__ = ("is_frozen", "members")

    def __init__(self, members: list[Any], *, is_frozen: bool = False) -> None:
        self.members = members
        self.is_frozen = is_frozen


@dataclass(eq=False, slots=True)
class Made:
    """The result of calling or constructing something.

    `how` is "call" (REDUCE, INST, OBJ: its code runs on the arguments) or "construct" (NEWOBJ: `__new__` alone).
    `states` has what BUILD gave it, `items` and `entries` what APPENDS and SETITEMS added (keys and values in turn);
    each is an empty tuple until something is added, for a hostile stream makes a great many of these.
    """

    maker: Any
    arguments: Any
    how: str
    position: int
    states: list[Any] | tuple[()] = ()
    items: list[Any] | tuple[()] = ()
    entries: list[Any] | tuple[()] = ()

    def is_made_by(self, module: str, name: str) -> bool:
        """Whether the maker is the global of that name."""
        return isinstance(self.maker, Global) and self.maker.module == module and self.maker.name == name

    def attribute(self, name: str) -> Any:
        """What BUILD stored under a name, or None."""
        for state in reversed(self.states):
            if isinstance(state, Dictionary) and (value := state.get(name)) is not None:
                return value
        return None


@dataclass(frozen=True, slots=True)
class Persistent:
    """Something the loader supplies for an id of its own; torch puts storages there."""

    identity: Any


@dataclass(frozen=True, slots=True)
class Stretch:
    """Bytes, a bytearray (mutable) or long text left in the file: where they lie in the pickle's source."""

    position: int
    size: int
    is_text: bool
    is_mutable: bool = False


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that no reader needs (a very long integer), in words."""

    description: str


@dataclass(slots=True)
class Event:
    """A step of a pickle that can matter for safety.

    `kind` is "global", "call", "construct", "build", "extend", "unresolved" or "extension". `subject` is the
    global, the Made, or the object worked on; `detail` the state that BUILD gives.
    """

    kind: str
    subject: Any
    detail: Any
    position: int


@dataclass
class PickleRun:
    """What one pickle does: the value at its end, the position after STOP, its events, the persistent ids it asks for,
    why it broke off, if so, and where readers would take it differently (it is followed as the one that goes on).
    `arrays` counts those that joblib put between the opcodes."""

    value: Any = None
    end: int = 0
    events: list[Event] = field(default_factory=list)
    broken: str | None = None
    differences: list[str] = field(default_factory=list)
    operations: int = 0
    arrays: int = 0
    persistent_ids: list[Any] = field(default_factory=list)
