"""Runs the opcodes of a pickle on descriptions of values (protocols 0 to 5, as `pickletools` documents them).

Bounded: a stream of n bytes takes at most n steps and a fixed budget besides; long strings stay in the file.
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable
from typing import Any

from strata_core.audit.findings import Malformed
from strata_core.audit.formats.joblib_arrays import array_bytes, is_array_wrapper
from strata_core.audit.opening import FileBytes
from strata_core.audit.pickles import readers as pickle_readers
from strata_core.audit.pickles.symbols import (
    Dictionary,
    Event,
    Global,
    Group,
    Made,
    Opaque,
    Persistent,
    PickleRun,
    Stretch,
)

DEFAULT_OPERATIONS = 1_500_000
_WINDOW_BYTES = 1 << 16
_KEPT_VALUE_BYTES = 1 << 16
_KEPT_TOTAL_BYTES = 32 << 20
_LONGEST_LINE_BYTES = 1 << 20
_LONGEST_INTEGER_BYTES = 64
_MOST_DIFFERENCES = 20
_UNHASHABLE = frozenset({"OrderedDict", "defaultdict", "Counter", "deque", "list", "dict", "set", "bytearray"})
_DATA_MODULES = frozenset({"collections", "builtins", "__builtin__"})
_MOST_GLOBALS = 10_000
_FREE_MEMO_INDICES = 1 << 16
_DEEPEST_KEY = 64
_MOST_KEY_PARTS = 1000


class _Stop(Exception):
    """STOP was reached."""


def run_pickle(
    source: FileBytes, start: int = 0, *, operations: int = DEFAULT_OPERATIONS, with_arrays: bool = True
) -> PickleRun:
    """Follows one pickle from byte `start` to its STOP, or to where it breaks.

    Args:
        source: the bytes it lies in; positions in the result count from their start.
        operations: the most opcodes followed before the stream counts as broken.
        with_arrays: whether the bytes that joblib puts between the opcodes are passed over, as joblib does.

    Never raises for what the stream holds: `broken` says what is wrong with it, and the events up to there are kept,
    for an unpickler would have acted on them.
    """
    return _Machine(source, start, operations, with_arrays=with_arrays).run()


class _Machine:
    def __init__(self, source: FileBytes, start: int, operations: int, *, with_arrays: bool) -> None:
        self.with_arrays = with_arrays
        self.source = source
        self.window = b""
        self.window_start = start
        self.cursor = 0
        self.budget = operations
        self.kept_bytes = 0
        self.opcode_position = start
        self.frame_end = -1
        self.protocol = 0
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

    def differ(self, how: str | None) -> None:
        """Notes how the readers differ at this opcode, and goes on as the one that would."""
        if how is not None and len(self.result.differences) < _MOST_DIFFERENCES:
            self.result.differences.append(f"byte {self.opcode_position:,}: {how}")

    def stay_in_frame(self, start: int, end: int) -> None:
        """What is read at once may not reach over the end of a frame."""
        if start < self.frame_end < end:
            self.differ(pickle_readers.FRAME_CUT)
            self.frame_end = -1

    def take(self, size: int) -> bytes:
        if self.window_start + self.cursor < self.frame_end:
            self.stay_in_frame(self.position, self.position + size)
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
                raise Malformed(f"a line does not end, or not within {_LONGEST_LINE_BYTES:,} bytes")
        line = self.window[self.cursor : end]
        self.stay_in_frame(self.position, self.window_start + end + 1)
        self.cursor = end + 1
        return line

    def number(self, layout: str) -> int:
        value: int = struct.unpack(layout, self.take(struct.calcsize(layout)))[0]
        return value

    def skip(self, size: int, *, is_text: bool, is_mutable: bool = False) -> Stretch:
        """Leaves `size` bytes in the file."""
        if size < 0:
            raise Malformed(f"a length of {size:,}")
        left = self.source.length - self.position
        if size > left:
            raise Malformed(f"{size:,} bytes are announced and {left:,} are left")
        stretch = Stretch(self.position, size, is_text, is_mutable)
        self.stay_in_frame(stretch.position, stretch.position + size)
        self.cursor += size
        if self.cursor > len(self.window):
            self.window_start, self.window, self.cursor = stretch.position + size, b"", 0
        return stretch

    def text(self, size: int, encoding: str = "utf-8") -> Any:
        """Text of `size` bytes, left in the file when it is long or much was kept already."""
        if size > _KEPT_VALUE_BYTES or self.kept_bytes + size > _KEPT_TOTAL_BYTES:
            stretch = self.skip(size, is_text=True)
            self.check_text(stretch, encoding)
            return stretch
        if size < 0:
            raise Malformed(f"a length of {size:,}")
        self.kept_bytes += size
        return decoded(self.take(size), encoding)

    def check_text(self, stretch: Stretch, encoding: str) -> None:
        decoder = codecs.getincrementaldecoder(encoding)("surrogatepass" if encoding == "utf-8" else "strict")
        try:
            for chunk in self.source.chunks(stretch.position, stretch.size):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise Malformed(f"text that is not {encoding}") from error

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
            self.differ(pickle_readers.old_name(module, name, self.protocol))
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
        self.differ(pickle_readers.arguments(arguments))
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

    def extend(self, target: Any, values: list[Any], opcode: str = "APPENDS") -> None:
        self.differ(pickle_readers.added_items(target, len(values), opcode))
        if opcode == "ADDITEMS":
            _check_hashable(values)
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
        elif not all(isinstance(value, int) and 0 <= value < 256 for value in values):
            raise Malformed("it adds something else than bytes to a bytearray")

    def set_entries(self, target: Any, entries: list[Any]) -> None:
        if len(entries) % 2:
            raise Malformed("a key without a value")
        self.differ(pickle_readers.added_items(target, len(entries), "SETITEMS"))
        pickle_readers.indices(target, entries[::2])
        if isinstance(target, list | Stretch):
            _set_items_of_list(target, entries)
            return
        _check_hashable(entries[::2])
        if isinstance(target, Dictionary):
            target.entries.extend(entries)
        elif isinstance(target, Made):
            self.note("extend", target)
            target.entries = target.entries or []
            target.entries.extend(entries)
        elif isinstance(target, Global | Persistent | Opaque):
            self.note("extend", target)

    def build(self) -> None:
        state = self.pop()
        target = self.top()
        self.note("build", target, state)
        self.differ(pickle_readers.state(target, state))
        if isinstance(target, Made):
            target.states = target.states or []
            target.states.append(state)
        if self.with_arrays and is_array_wrapper(target, state):
            self.pass_over_array(state)

    def pass_over_array(self, state: Dictionary) -> None:
        self.result.arrays += 1
        padding, size = array_bytes(state, self.source, self.position)
        if size >= 0:
            self.skip(padding + size, is_text=False)
            return
        inner = run_pickle(self.source, self.position, operations=self.budget, with_arrays=False)
        self.budget = max(self.budget - inner.operations, 0)
        self.result.events += inner.events
        self.result.differences += inner.differences
        if inner.broken is not None:
            raise Malformed(f"an array of objects in which {inner.broken}")
        self.window_start, self.window, self.cursor = inner.end, b"", 0

    def persistent(self, identity: Any) -> None:
        self.result.persistent_ids.append(identity)
        is_class = isinstance(identity, tuple) and len(identity) > 1 and identity[0] == "module"
        self.stack.append(identity[1] if is_class else Persistent(identity))


def _set_items_of_list(target: list[Any] | Stretch, entries: list[Any]) -> None:
    for key, value in zip(entries[::2], entries[1::2], strict=True):
        if isinstance(target, list):
            target[key] = value
        elif not isinstance(value, int) or not 0 <= value < 256:
            raise Malformed("it sets an item of a bytearray to something else than a byte")


def _check_hashable(keys: list[Any]) -> None:
    if any(_is_unhashable(key) for key in keys):
        raise Malformed("a key that cannot be hashed")


def _is_unhashable(value: Any) -> bool:
    waiting = [(value, 0)]
    for _ in range(_MOST_KEY_PARTS):
        if not waiting:
            return False
        value, depth = waiting.pop()
        if isinstance(value, tuple) and depth < _DEEPEST_KEY:
            waiting += [(item, depth + 1) for item in value[:_MOST_KEY_PARTS]]
        elif isinstance(value, Made):
            maker = value.maker
            if isinstance(maker, Global) and maker.name in _UNHASHABLE and maker.module in _DATA_MODULES:
                return True
        elif isinstance(value, Group):
            if not value.is_frozen:
                return True
        elif isinstance(value, list | Dictionary) or (isinstance(value, Stretch) and value.is_mutable):
            return True
    return False


def decoded(data: bytes, encoding: str) -> str:
    """Text of the stream.

    Raises:
        Malformed: it is not in that encoding.
    """
    try:
        return data.decode(encoding, "surrogatepass" if encoding == "utf-8" else "strict")
    except UnicodeDecodeError as error:
        raise Malformed(f"text that is not {encoding}") from error


def _line_value(machine: _Machine, read: Callable[[bytes], pickle_readers.Outcome]) -> Any:
    value, difference = read(machine.line())
    machine.differ(difference)
    return value


def _long(machine: _Machine, size: int) -> None:
    if 0 <= size <= _LONGEST_INTEGER_BYTES:
        machine.push(int.from_bytes(machine.take(size), "little", signed=True))
    else:
        machine.skip(size, is_text=False)
        machine.push(Opaque("a very long integer"))


def _string_line(machine: _Machine) -> None:
    line = machine.line()
    if len(line) < 2 or line[0] != line[-1] or line[:1] not in (b"'", b'"'):
        raise Malformed("a string without its quotes")
    try:
        unescaped = codecs.escape_decode(line[1:-1])[0]  # type: ignore[attr-defined]
    except ValueError as error:
        raise Malformed("a string with a broken escape") from error
    machine.differ(pickle_readers.old_text(unescaped))
    machine.push(unescaped.decode("latin-1"))


def _old_string(machine: _Machine, size: int) -> None:
    value = machine.text(size, "latin-1")
    if isinstance(value, Stretch):
        for chunk in machine.source.chunks(value.position, value.size):
            if not chunk.isascii():
                machine.differ(pickle_readers.old_text(chunk))
                break
    else:
        machine.differ(pickle_readers.old_text(value.encode("latin-1")))
    machine.push(value)


def _put_line(machine: _Machine) -> None:
    machine.remember(_line_value(machine, pickle_readers.memo_line))


def _add_items(machine: _Machine) -> None:
    values = machine.pop_mark()
    machine.extend(machine.top(), values, "ADDITEMS")


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
    module = decoded(machine.line(), "ascii")
    name = decoded(machine.line(), "ascii")
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
    pickle_readers.keywords(keywords)
    arguments = machine.pop()
    machine.differ(pickle_readers.arguments(arguments))
    machine.make(machine.pop(), (arguments, keywords), "construct")


def _extension(machine: _Machine, layout: str) -> None:
    machine.note("extension", machine.number(layout))
    machine.push(Opaque("something that the reader's own table of extensions names"))


def _persistent_line(machine: _Machine) -> None:
    machine.persistent(decoded(machine.line(), "ascii"))


def _frozenset(machine: _Machine) -> None:
    members = machine.pop_mark()
    _check_hashable(members)
    machine.push(Group(members, is_frozen=True))


def _frame(machine: _Machine) -> None:
    size = machine.number("<Q")
    if size >> 63:
        raise Malformed(f"a frame of {size:,} bytes")
    if machine.position < machine.frame_end:
        machine.differ(pickle_readers.FRAME_WITHIN_FRAME)
    left = machine.source.length - machine.position
    if size > left:
        machine.differ(pickle_readers.frame_beyond_end(size, left))
    machine.frame_end = machine.position + size if size <= left else -1


def _protocol(machine: _Machine) -> None:
    version = machine.number("<B")
    if version > 5:
        raise Malformed(f"pickle protocol {version}")
    machine.protocol = version


def _unicode_line(machine: _Machine) -> None:
    machine.push(decoded(machine.line(), "raw-unicode-escape"))


def _next_buffer(machine: _Machine) -> None:
    raise Malformed("it takes an out-of-band buffer, which no file supplies")


def _read_only(machine: _Machine) -> None:
    pickle_readers.buffer(machine.top())


def _stop(machine: _Machine) -> None:
    if machine.position < machine.frame_end:
        machine.differ(pickle_readers.STOP_WITHIN_FRAME)
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
    ord("F"): lambda machine: machine.push(_line_value(machine, pickle_readers.float_line)),
    ord("I"): lambda machine: machine.push(_line_value(machine, pickle_readers.int_line)),
    ord("J"): lambda machine: machine.push(machine.number("<i")),
    ord("K"): lambda machine: machine.push(machine.take(1)[0]),
    ord("L"): lambda machine: machine.push(_line_value(machine, pickle_readers.long_line)),
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
    ord("g"): lambda machine: machine.recall(_line_value(machine, pickle_readers.memo_line)),
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
    0x90: _add_items,
    0x91: _frozenset,
    0x92: _newobj_ex,
    0x93: _stack_global,
    0x94: lambda machine: machine.remember(len(machine.memo)),
    0x95: _frame,
    0x96: lambda machine: machine.push(machine.skip(machine.number("<Q"), is_text=False, is_mutable=True)),
    0x97: _next_buffer,
    0x98: _read_only,
}
