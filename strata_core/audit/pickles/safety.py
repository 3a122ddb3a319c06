"""Judges what a pickle does: which names it looks up, and what it calls, builds and extends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from strata_core.audit.findings import CORRUPT, UNKNOWN_GLOBAL, UNSAFE, Finding, printable
from strata_core.audit.pickles.known_globals import KNOWN_GOOD, PLAIN_BASES, Standing, resolve_old_name, standing_of
from strata_core.audit.pickles.symbols import Dictionary, Event, Global, Made, Opaque, Persistent, PickleRun, Stretch

_BYTES_ENCODINGS = frozenset({"latin1", "latin-1", "iso-8859-1", "ascii", "utf-8", "utf8"})
_METHODS_A_LOADER_CALLS = frozenset({"__setstate__", "__setitem__", "__dict__", "__class__", "append", "extend", "add"})
_MOST_FILLED = 1 << 28
_MOST_ARGUMENTS = {
    ("collections", "OrderedDict"): 1,
    ("collections", "Counter"): 1,
    ("builtins", "set"): 1,
    ("builtins", "list"): 1,
    ("builtins", "dict"): 1,
    ("builtins", "tuple"): 1,
    ("builtins", "frozenset"): 1,
    ("torch", "Size"): 1,
}
_USES = ("names", "makes a", "calls")
_CONTAINERS = frozenset({"OrderedDict", "defaultdict", "Counter", "deque", "list", "dict", "set", "bytearray"})


@dataclass(frozen=True)
class GlobalUse:
    """A name that a pickle looks up, where it does so first, and how it is used at worst: one of `_USES`."""

    name: str
    standing: Standing
    use: str
    member: str
    position: int


NestedJudge = Callable[[Stretch], list[Finding]]
"""Inspects a whole checkpoint held as bytes inside a pickle."""


def judge(
    run: PickleRun, member: str, judge_nested: NestedJudge, known_good: frozenset[Global]
) -> tuple[list[Finding], list[GlobalUse]]:
    """The findings and the globals of one pickle.

    Args:
        run: what the pickle does.
        member: how messages call the place it lies in.
        known_good: further globals that are part of the format at hand.
        judge_nested: called for bytes that `torch.storage._load_from_bytes` would load as another checkpoint.
    """
    judging = _Judging(member, judge_nested, known_good)
    for event in run.events:
        judging.judge(event)
    judging.conclude()
    for difference in run.differences:
        judging.add(CORRUPT, f"{member}, {difference}")
    if run.broken is not None:
        judging.add(CORRUPT, f"{member}: {run.broken}")
    return judging.findings, list(judging.uses.values())


class _Judging:
    def __init__(self, member: str, judge_nested: NestedJudge, known_good: frozenset[Global]) -> None:
        self.known_good = known_good
        self.member = member
        self.judge_nested = judge_nested
        self.findings: list[Finding] = []
        self.rules: dict[Global, CallRule | None] = {}
        self.settled: set[tuple[Global, str]] = set()
        self.said: set[tuple[str, str]] = set()
        self.uses: dict[Global, GlobalUse] = {}

    def add(self, kind: str, text: str) -> None:
        self.findings.append(Finding(kind, text))

    def hold(self, kind: str, event: Event, what: str) -> None:
        """Records a reason once, however often the pickle repeats it."""
        if (kind, what) not in self.said:
            self.said.add((kind, what))
            self.add(kind, f"{self.member}, byte {event.position:,}: {what}")

    def judge(self, event: Event) -> None:
        if event.kind == "global":
            self._use(event, "names", event.subject)
        elif event.kind in ("call", "construct"):
            self._judge_making(event)
        elif event.kind == "build":
            self._judge_state(event, event.subject, event.detail)
        elif event.kind == "extend":
            self._judge_extension(event)
        elif event.kind == "unresolved":
            self.hold(UNSAFE, event, "looks up a global under a computed name, which can be any function")
        else:
            self.hold(UNSAFE, event, f"looks up extension code {event.subject} in the reader's own table of globals")

    def _use(self, event: Event, use: str, found: Global) -> None:
        """Notes the worst way in which a global is used; `conclude` turns that into a finding."""
        if (found, use) in self.settled:
            return
        self.settled.add((found, use))
        found = resolve_old_name(found)
        old = self.uses.get(found)
        if old is None or _USES.index(use) > _USES.index(old.use):
            standing = Standing.KNOWN_GOOD if found in self.known_good else standing_of(found)
            position = old.position if old else event.position
            self.uses[found] = GlobalUse(str(found), standing, use, self.member, position)

    def conclude(self) -> None:
        """Adds a finding for each global that is not known good."""
        for use in self.uses.values():
            shown = f"{self.member}, byte {use.position:,}: {use.use} {printable(use.name)}"
            if use.standing is Standing.DANGEROUS:
                self.add(UNSAFE, f"{shown}, which can run code")
            elif use.standing is Standing.NOT_CALLABLE and use.use == "calls":
                self.add(UNSAFE, f"{shown}, {use.standing.value}")
            elif use.standing is not Standing.KNOWN_GOOD:
                self.add(UNKNOWN_GLOBAL, f"{shown}, {use.standing.value}")

    def _judge_making(self, event: Event) -> None:
        made = event.subject
        maker = made.maker
        if not isinstance(maker, Global):
            if isinstance(maker, Made | Opaque):
                self.hold(UNSAFE, event, "calls the result of another call, which can be any function")
            else:
                self.add(CORRUPT, f"{self.member}, byte {event.position:,}: calls a {type(maker).__name__}")
            return
        self._use(event, "calls" if event.kind == "call" else "makes a", maker)
        if isinstance(made.arguments, Made | Opaque | Persistent):
            self.hold(UNSAFE, event, f"calls {printable(str(maker))} with computed arguments")
        if event.kind == "call":
            most = _MOST_ARGUMENTS.get((maker.module, maker.name))
            if most is not None and isinstance(made.arguments, tuple) and len(made.arguments) > most:
                self.hold(CORRUPT, event, f"calls {maker} with {len(made.arguments)} arguments")
            if maker not in self.rules:
                self.rules[maker] = _CALL_RULES.get(str(resolve_old_name(maker)))
            rule = self.rules[maker]
            if rule is not None:
                rule(self, event, made.arguments if isinstance(made.arguments, tuple) else ())

    def _judge_state(self, event: Event, target: Any, state: Any) -> None:
        if isinstance(target, Global):
            self.hold(UNSAFE, event, f"changes {printable(str(target))} itself, for the whole program")
        states = state if isinstance(state, tuple) else (state,)
        for part in states:
            keys = part.entries[::2] if isinstance(part, Dictionary) else ()
            for key in keys:
                if isinstance(key, str) and key in _METHODS_A_LOADER_CALLS:
                    self.hold(UNSAFE, event, f"puts something in place of the method {key}, which loading may call")

    def _judge_extension(self, event: Event) -> None:
        target = event.subject
        if isinstance(target, Made) and isinstance(target.maker, Global):
            maker = resolve_old_name(target.maker)
            if (maker.module, maker.name) not in KNOWN_GOOD or maker.name in _CONTAINERS:
                return
            if maker.module == "copyreg":
                return
        self.hold(UNSAFE, event, "adds items to something that is no container of data")

    def rule_encode(self, event: Event, arguments: tuple[Any, ...]) -> None:
        encoding = arguments[1] if len(arguments) > 1 else "utf-8"
        if not isinstance(encoding, str) or encoding.lower() not in _BYTES_ENCODINGS:
            shown = printable(encoding, limit=40) if isinstance(encoding, str) else "a computed name"
            self.hold(UNSAFE, event, f"calls _codecs.encode with the codec {shown}, which can be any module")

    def rule_reconstruct(self, event: Event, arguments: tuple[Any, ...]) -> None:
        kind = arguments[0] if arguments else None
        base = arguments[1] if len(arguments) > 1 else None
        if not isinstance(kind, Global):
            self.hold(UNSAFE, event, "reconstructs an object of a computed class")
            return
        self._use(event, "makes a", kind)
        if not isinstance(base, Global) or resolve_old_name(base) not in PLAIN_BASES:
            self.hold(UNSAFE, event, "reconstructs an object from a base that is no built-in type")

    def rule_new_object(self, event: Event, arguments: tuple[Any, ...]) -> None:
        if arguments and isinstance(arguments[0], Global):
            self._use(event, "makes a", arguments[0])
        else:
            self.hold(UNSAFE, event, "makes an object of a computed class")

    def rule_getattr(self, event: Event, arguments: tuple[Any, ...]) -> None:
        """Members of an enum are written as getattr(class, "MEMBER") by Python 3.11."""
        owner, name = (*arguments, None, None)[:2]
        is_member = isinstance(name, str) and name.isidentifier() and not name.startswith("_")
        if isinstance(owner, Global) and is_member:
            standing = standing_of(resolve_old_name(owner))
            last = owner.name.rpartition(".")[2]
            if standing is Standing.KNOWN_GOOD or (standing is Standing.CLASS and last.lstrip("_")[:1].isupper()):
                return
        self.hold(UNSAFE, event, "calls builtins.getattr on something other than a class of data")

    def rule_rebuild_from_type(self, event: Event, arguments: tuple[Any, ...]) -> None:
        function, _, inner, state = (*arguments, None, None, None, None)[:4]
        if isinstance(function, Global) and _CALL_RULES.get(str(function)) is _Judging.rule_rebuild_from_type:
            self.hold(UNSAFE, event, "rebuilds a tensor through itself")
            return
        self._judge_making(Event("call", Made(function, inner, "call", event.position), None, event.position))
        self._judge_state(event, None, state)

    def rule_type(self, event: Event, arguments: tuple[Any, ...]) -> None:
        """The types of None, ... and NotImplemented are written as type(value)."""
        if len(arguments) != 1:
            self.hold(UNSAFE, event, "calls builtins.type to make a class")

    def rule_getitem(self, event: Event, arguments: tuple[Any, ...]) -> None:
        """Type hints such as Union[int, str] are written as getitem(typing.Union, ...)."""
        if not (arguments and isinstance(arguments[0], Global) and arguments[0].module == "typing"):
            self.hold(UNSAFE, event, "calls operator.getitem on something other than a type hint")

    def rule_filling(self, event: Event, arguments: tuple[Any, ...]) -> None:
        """bytes(10**12) or list(range(10**12)) are short to write and fill all memory on loading."""
        first = arguments[0] if arguments else None
        if isinstance(first, Made) and first.is_made_by("builtins", "range"):
            limits = first.arguments if isinstance(first.arguments, tuple) else ()
        else:
            limits = (first,)
        if any(isinstance(limit, int) and abs(limit) > _MOST_FILLED for limit in limits):
            self.hold(CORRUPT, event, f"makes a value of more than {_MOST_FILLED:,} items")

    def rule_generator(self, event: Event, arguments: tuple[Any, ...]) -> None:
        """numpy's constructors of generators call their second argument on the first."""
        if len(arguments) > 1 and arguments[1] != Global("numpy.random._pickle", "__bit_generator_ctor"):
            self.hold(UNSAFE, event, "lets numpy call a function that the file chooses")

    def rule_load_from_bytes(self, event: Event, arguments: tuple[Any, ...]) -> None:
        held = arguments[0] if arguments else None
        if isinstance(held, Stretch):
            self.findings += self.judge_nested(held)
        else:
            self.hold(UNSAFE, event, "calls torch.storage._load_from_bytes on computed bytes")


CallRule = Callable[[_Judging, Event, tuple[Any, ...]], None]
_CALL_RULES: dict[str, CallRule] = {
    "_codecs.encode": _Judging.rule_encode,
    "copyreg._reconstructor": _Judging.rule_reconstruct,
    "copyreg.__newobj__": _Judging.rule_new_object,
    "copyreg.__newobj_ex__": _Judging.rule_new_object,
    "builtins.getattr": _Judging.rule_getattr,
    "builtins.type": _Judging.rule_type,
    "builtins.bytes": _Judging.rule_filling,
    "builtins.bytearray": _Judging.rule_filling,
    "builtins.list": _Judging.rule_filling,
    "builtins.tuple": _Judging.rule_filling,
    "builtins.set": _Judging.rule_filling,
    "builtins.frozenset": _Judging.rule_filling,
    "collections.deque": _Judging.rule_filling,
    "operator.getitem": _Judging.rule_getitem,
    "_operator.getitem": _Judging.rule_getitem,
    "numpy.random._pickle.__generator_ctor": _Judging.rule_generator,
    "numpy.random._pickle.__randomstate_ctor": _Judging.rule_generator,
    "torch._tensor._rebuild_from_type": _Judging.rule_rebuild_from_type,
    "torch._tensor._rebuild_from_type_v2": _Judging.rule_rebuild_from_type,
    "torch.storage._load_from_bytes": _Judging.rule_load_from_bytes,
}
