"""Runs the opcodes of a pickle on descriptions of values (protocols 0 to 5, as `pickletools` documents them).

Bounded: a stream of n bytes takes at most n steps and a fixed budget besides; long strings stay in the file.
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable
from typing import Any

from strata_core.audit.findings import Malformed, printable
from strata_core.audit.opening import FileBytes
from strata_core.audit.symbols import Dictionary, Event, Global, Group, Made, Opaque, Persistent, PickleRun, Stretch

DEFAULT_OPERATIONS = 1_500_000
_WINDOW_BYTES = 1 << 16
_KEPT_VALUE_BYTES = 1 << 16
_KEPT_TOTAL_BYTES = 32 << 20
_LONGEST_LINE_BYTES = 1 << 20
_LONGEST_INTEGER_BYTES = 64
_UNHASHABLE = frozenset({"OrderedDict", "defaultdict", "Counter", "deque", "list", "dict", "set", "bytearray"})
_DATA_MODULES = frozenset({"collections", "builtins", "__builtin__"})
_MOST_GLOBALS = 10_000
_FREE_MEMO_INDICES = 1 << 16


class _Stop(Exception):
    """STOP was reached."""


def run_pickle(source: FileBytes, start: int = 0, *, operations: int = DEFAULT_OPERATIONS) -> PickleRun:
    """Follows one pickle from byte `start` to its STOP, or to where it breaks.

    Args:
        source: the bytes it lies in; positions in the result count from their start.
        operations: the most opcodes followed before the stream counts as broken.

    Never raises for what the stream holds: `broken` says what is wrong with it, and the events up to there are kept,
    for an unpickler would have acted on them.
    """
    return _Machine(source, start, operations).run()


class _Machine:
    def __init__(self, source: FileBytes, start: int, operations: int) -> None:
        self.source = source
        self.window = b""
        self.window_start = start
        self.cursor = 0
        self.budget = operations
        self.kept_bytes = 0
        self.opcode_position = start
        self.stack: list[Any] = []
        self.outer_stacks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.globals: dict[tuple[str, str], Global] = {}
        self.result = PickleRun(end=start)

    def run(self) -> PickleRun:
        operations = 0
        handlers = _HANDLERS
        try:
            while True:
                if self.cursor >= len(self.window):
                    self._refill(1)
                code = self.window[self.cursor]
                self.opcode_position = self.window_start + self.cursor
                self.cursor += 1
                operations += 1
                handler = handlers.get(code)
                if handler is None:
                    raise Malformed(f"byte {code:#04x} is no pickle opcode")
                if operations > self.budget:
                    raise Malformed(f"more than {self.budget:,} opcodes; it was followed no further")
                handler(self)
        except _Stop:
            self.result.end = self.position
        except Malformed as error:
            self.result.broken = f"the pickle breaks at byte {self.opcode_position:,}: {error.message}"
            self.result.end = self.opcode_position
        self.result.operations = operations
        return self.result

    # Reading

    @property
    def position(self) -> int:
        return self.window_start + self.cursor

    def _refill(self, size: int) -> None:
        position = self.position
        left = self.source.length - position
        if left < size:
            raise Malformed(f"{size:,} bytes are due here and {max(left, 0):,} are left")
        self.window = self.source.read(position, min(left, max(size, _WINDOW_BYTES)))
        self.window_start = position
        self.cursor = 0

    def take(self, size: int) -> bytes:
        if self.cursor + size > len(self.window):
            self._refill(size)
        self.cursor += size
        return self.window[self.cursor - size : self.cursor]

    def line(self) -> bytes:
        end = self.window.find(b"\n", self.cursor)
        if end < 0:
            self._refill(min(_LONGEST_LINE_BYTES, self.source.length - self.position))
            end = self.window.find(b"\n", self.cursor)
            if end < 0:
                raise Malformed("a line does not end")
        line = self.window[self.cursor : end]
        self.cursor = end + 1
        return line

    def number(self, layout: str) -> int:
        value: int = struct.unpack(layout, self.take(struct.calcsize(layout)))[0]
        return value

    def skip(self, size: int, *, is_text: bool) -> Stretch:
        """Leaves `size` bytes in the file."""
        if size < 0:
            raise Malformed(f"a length of {size:,}")
        left = self.source.length - self.position
        if size > left:
            raise Malformed(f"{size:,} bytes are announced and {left:,} are left")
        stretch = Stretch(self.position, size, is_text)
        self.cursor += size
        if self.cursor > len(self.window):
            self.window_start, self.window, self.cursor = stretch.position + size, b"", 0
        return stretch

    def text(self, size: int, encoding: str = "utf-8") -> Any:
        """Text of `size` bytes, left in the file when it is long or much was kept already."""
        if size > _KEPT_VALUE_BYTES or self.kept_bytes + size > _KEPT_TOTAL_BYTES:
            return self.skip(size, is_text=True)
        if size < 0:
            raise Malformed(f"a length of {size:,}")
        self.kept_bytes += size
        return decoded(self.take(size), encoding)

    # Stack

    def pop(self) -> Any:
        if not self.stack:
            raise Malformed("it takes a value from an empty stack")
        return self.stack.pop()

    def top(self) -> Any:
        if not self.stack:
            raise Malformed("it uses a value of an empty stack")
        return self.stack[-1]

    def push(self, value: Any) -> None:
        """Puts a value on the stack that is current once the value was made: a mark's own stack is gone by then."""
        self.stack.append(value)

    def pop_mark(self) -> list[Any]:
        if not self.outer_stacks:
            raise Malformed("it goes back to a mark that was not set")
        items = self.stack
        self.stack = self.outer_stacks.pop()
        return items

    def note(self, kind: str, subject: Any, detail: Any = None) -> None:
        self.result.events.append(Event(kind, subject, detail, self.opcode_position))

    # What the opcodes do

    def look_up(self, module: Any, name: Any) -> None:
        if isinstance(module, str) and isinstance(name, str):
            found = self.globals.get((module, name))
            if found is None:
                if len(self.globals) >= _MOST_GLOBALS:
                    raise Malformed(f"more than {_MOST_GLOBALS:,} different globals; it was followed no further")
                found = self.globals[module, name] = Global(module, name)
                self.note("global", found)
            self.stack.append(found)
        else:
            self.note("unresolved", (module, name))
            self.stack.append(Opaque("something looked up under a computed name"))

    def make(self, maker: Any, arguments: Any, how: str) -> None:
        made = Made(maker, arguments, how, self.opcode_position)
        self.note(how, made)
        self.stack.append(made)

    def remember(self, index: int) -> None:
        if not 0 <= index <= max(self.source.length, _FREE_MEMO_INDICES):
            raise Malformed(f"memo index {index:,} in a stream of {self.source.length:,} bytes")
        self.memo[index] = self.top()

    def recall(self, index: int) -> None:
        if index not in self.memo:
            raise Malformed(f"memo index {index:,} was never stored")
        self.stack.append(self.memo[index])

    def extend(self, target: Any, values: list[Any]) -> None:
        if isinstance(target, list):
            target.extend(values)
        elif isinstance(target, Group):
            target.members.extend(values)
        elif isinstance(target, Made):
            self.note("extend", target)
            target.items = target.items or []
            target.items.extend(values)
        elif isinstance(target, Global | Persistent | Opaque):
            self.note("extend", target)
        else:
            raise Malformed(f"it adds items to a {type(target).__name__}")

    def set_entries(self, target: Any, entries: list[Any]) -> None:
        if len(entries) % 2:
            raise Malformed("a key without a value")
        if any(_is_unhashable(key) for key in entries[::2]):
            raise Malformed("a key that cannot be hashed")
        if isinstance(target, Dictionary):
            target.entries.extend(entries)
        elif isinstance(target, Made):
            self.note("extend", target)
            target.entries = target.entries or []
            target.entries.extend(entries)
        elif isinstance(target, Global | Persistent | Opaque):
            self.note("extend", target)
        elif isinstance(target, list):
            raise Malformed("it sets items of a list by key")
        else:
            raise Malformed(f"it sets entries of a {type(target).__name__}")

    def build(self) -> None:
        state = self.pop()
        target = self.top()
        self.note("build", target, state)
        if isinstance(target, Made):
            target.states = target.states or []
            target.states.append(state)
        elif not isinstance(target, Global | Persistent | Opaque):
            raise Malformed(f"it sets the state of a {type(target).__name__}")

    def persistent(self, identity: Any) -> None:
        self.result.persistent_ids.append(identity)
        is_class = isinstance(identity, tuple) and len(identity) > 1 and identity[0] == "module"
        self.stack.append(identity[1] if is_class else Persistent(identity))


def _is_unhashable(value: Any, *, depth: int = 0) -> bool:
    if isinstance(value, tuple):
        return depth < 3 and any(_is_unhashable(item, depth=depth + 1) for item in value)
    if isinstance(value, Made):
        return (
            isinstance(value.maker, Global) and value.maker.name in _UNHASHABLE and value.maker.module in _DATA_MODULES
        )
    return isinstance(value, list | Dictionary)


def decoded(data: bytes, encoding: str) -> str:
    """Text of the stream.

    Raises:
        Malformed: it is not in that encoding.
    """
    try:
        return data.decode(encoding, "surrogatepass" if encoding == "utf-8" else "strict")
    except UnicodeDecodeError as error:
        raise Malformed(f"text that is not {encoding}") from error


def _parsed(parse: Callable[[bytes], Any], data: bytes, what: str) -> Any:
    try:
        return parse(data)
    except (ValueError, OverflowError) as error:
        raise Malformed(f"{printable(repr(data), limit=40)} is no {what}") from error


def _whole_number(data: bytes) -> Any:
    if len(data) > 4 * _LONGEST_INTEGER_BYTES:
        return Opaque("a very long integer")
    return int(data)


def _int_line(machine: _Machine) -> None:
    line = machine.line()
    value = {b"00": False, b"01": True}.get(line)
    machine.push(_parsed(_whole_number, line, "integer") if value is None else value)


def _long_line(machine: _Machine) -> None:
    machine.push(_parsed(_whole_number, machine.line().removesuffix(b"L"), "integer"))


def _long(machine: _Machine, size: int) -> None:
    if 0 <= size <= _LONGEST_INTEGER_BYTES:
        machine.push(int.from_bytes(machine.take(size), "little", signed=True))
    else:
        machine.skip(size, is_text=False)
        machine.push(Opaque("a very long integer"))


def _string_line(machine: _Machine) -> None:
    line = machine.line().strip()
    if len(line) < 2 or line[0] != line[-1] or line[:1] not in (b"'", b'"'):
        raise Malformed("a string without its quotes")
    unescaped = _parsed(lambda data: codecs.escape_decode(data)[0], line[1:-1], "string")  # type: ignore[attr-defined]
    machine.push(decoded(unescaped, "latin-1"))


def _old_string(machine: _Machine, size: int) -> None:
    machine.push(machine.text(size, "latin-1"))


def _put_line(machine: _Machine) -> None:
    index = _parsed(int, machine.line(), "memo index")
    machine.remember(index)


def _pop(machine: _Machine) -> None:
    if machine.stack:
        machine.stack.pop()
    else:
        machine.pop_mark()


def _mark(machine: _Machine) -> None:
    machine.outer_stacks.append(machine.stack)
    machine.stack = []


def _dictionary(machine: _Machine) -> None:
    entries = machine.pop_mark()
    made = Dictionary()
    machine.set_entries(made, entries)
    machine.push(made)


def _tuple_of(machine: _Machine, size: int) -> None:
    if len(machine.stack) < size:
        raise Malformed("it takes a value from an empty stack")
    values = tuple(machine.stack[-size:])
    del machine.stack[-size:]
    machine.push(values)


def _append(machine: _Machine) -> None:
    value = machine.pop()
    machine.extend(machine.top(), [value])


def _appends(machine: _Machine) -> None:
    values = machine.pop_mark()
    machine.extend(machine.top(), values)


def _set_item(machine: _Machine) -> None:
    value = machine.pop()
    key = machine.pop()
    machine.set_entries(machine.top(), [key, value])


def _set_items(machine: _Machine) -> None:
    entries = machine.pop_mark()
    machine.set_entries(machine.top(), entries)


def _global(machine: _Machine) -> None:
    module = decoded(machine.line(), "utf-8")
    machine.look_up(module, decoded(machine.line(), "utf-8"))


def _stack_global(machine: _Machine) -> None:
    name = machine.pop()
    machine.look_up(machine.pop(), name)


def _inst(machine: _Machine) -> None:
    module = decoded(machine.line(), "utf-8")
    name = decoded(machine.line(), "utf-8")
    arguments = tuple(machine.pop_mark())
    machine.look_up(module, name)
    machine.make(machine.pop(), arguments, "call")


def _obj(machine: _Machine) -> None:
    values = machine.pop_mark()
    if not values:
        raise Malformed("it makes an object of nothing")
    machine.make(values[0], tuple(values[1:]), "call")


def _reduce(machine: _Machine) -> None:
    arguments = machine.pop()
    machine.make(machine.pop(), arguments, "call")


def _newobj(machine: _Machine) -> None:
    arguments = machine.pop()
    machine.make(machine.pop(), arguments, "construct")


def _newobj_ex(machine: _Machine) -> None:
    keywords = machine.pop()
    arguments = machine.pop()
    machine.make(machine.pop(), (arguments, keywords), "construct")


def _extension(machine: _Machine, layout: str) -> None:
    machine.note("extension", machine.number(layout))
    machine.push(Opaque("something that the reader's own table of extensions names"))


def _persistent_line(machine: _Machine) -> None:
    machine.persistent(decoded(machine.line(), "latin-1"))


def _frozenset(machine: _Machine) -> None:
    machine.push(Group(machine.pop_mark()))


def _frame(machine: _Machine) -> None:
    size = machine.number("<Q")
    left = machine.source.length - machine.position
    if size > left:
        raise Malformed(f"a frame of {size:,} bytes with {left:,} left")


def _protocol(machine: _Machine) -> None:
    version = machine.number("<B")
    if version > 5:
        raise Malformed(f"pickle protocol {version}")


def _unicode_line(machine: _Machine) -> None:
    machine.push(decoded(machine.line(), "raw-unicode-escape"))


def _float_line(machine: _Machine) -> None:
    machine.push(_parsed(float, machine.line(), "number"))


def _next_buffer(machine: _Machine) -> None:
    raise Malformed("it takes an out-of-band buffer, which no file supplies")


def _stop(machine: _Machine) -> None:
    machine.result.value = machine.pop()
    raise _Stop


def _push(value: Callable[[], Any]) -> Callable[[_Machine], None]:
    return lambda machine: machine.push(value())


_HANDLERS: dict[int, Callable[[_Machine], None]] = {
    ord("("): _mark,
    ord("."): _stop,
    ord("0"): _pop,
    ord("1"): lambda machine: (machine.pop_mark(), None)[1],
    ord("2"): lambda machine: machine.push(machine.top()),
    ord("F"): _float_line,
    ord("I"): _int_line,
    ord("J"): lambda machine: machine.push(machine.number("<i")),
    ord("K"): lambda machine: machine.push(machine.take(1)[0]),
    ord("L"): _long_line,
    ord("M"): lambda machine: machine.push(machine.number("<H")),
    ord("N"): _push(lambda: None),
    ord("P"): _persistent_line,
    ord("Q"): lambda machine: machine.persistent(machine.pop()),
    ord("R"): _reduce,
    ord("S"): _string_line,
    ord("T"): lambda machine: _old_string(machine, machine.number("<i")),
    ord("U"): lambda machine: _old_string(machine, machine.number("<B")),
    ord("V"): _unicode_line,
    ord("X"): lambda machine: machine.push(machine.text(machine.number("<I"))),
    ord("a"): _append,
    ord("b"): lambda machine: machine.build(),
    ord("c"): _global,
    ord("d"): _dictionary,
    ord("}"): _push(Dictionary),
    ord("e"): _appends,
    ord("g"): lambda machine: machine.recall(_parsed(int, machine.line(), "memo index")),
    ord("h"): lambda machine: machine.recall(machine.take(1)[0]),
    ord("i"): _inst,
    ord("j"): lambda machine: machine.recall(machine.number("<I")),
    ord("l"): lambda machine: machine.push(machine.pop_mark()),
    ord("]"): _push(list),
    ord("o"): _obj,
    ord("p"): _put_line,
    ord("q"): lambda machine: machine.remember(machine.take(1)[0]),
    ord("r"): lambda machine: machine.remember(machine.number("<I")),
    ord("s"): _set_item,
    ord("t"): lambda machine: machine.push(tuple(machine.pop_mark())),
    ord(")"): _push(tuple),
    ord("u"): _set_items,
    ord("G"): lambda machine: machine.push(struct.unpack(">d", machine.take(8))[0]),
    ord("B"): lambda machine: machine.push(machine.skip(machine.number("<I"), is_text=False)),
    ord("C"): lambda machine: machine.push(machine.skip(machine.number("<B"), is_text=False)),
    0x80: _protocol,
    0x81: _newobj,
    0x82: lambda machine: _extension(machine, "<B"),
    0x83: lambda machine: _extension(machine, "<H"),
    0x84: lambda machine: _extension(machine, "<i"),
    0x85: lambda machine: _tuple_of(machine, 1),
    0x86: lambda machine: _tuple_of(machine, 2),
    0x87: lambda machine: _tuple_of(machine, 3),
    0x88: _push(lambda: True),
    0x89: _push(lambda: False),
    0x8A: lambda machine: _long(machine, machine.number("<B")),
    0x8B: lambda machine: _long(machine, machine.number("<i")),
    0x8C: lambda machine: machine.push(machine.text(machine.number("<B"))),
    0x8D: lambda machine: machine.push(machine.text(machine.number("<Q"))),
    0x8E: lambda machine: machine.push(machine.skip(machine.number("<Q"), is_text=False)),
    0x8F: _push(lambda: Group([])),
    0x90: _appends,
    0x91: _frozenset,
    0x92: _newobj_ex,
    0x93: _stack_global,
    0x94: lambda machine: machine.remember(len(machine.memo)),
    0x95: _frame,
    0x96: lambda machine: machine.push(machine.skip(machine.number("<Q"), is_text=False)),
    0x97: _next_buffer,
    0x98: lambda machine: None,
}
