"""Where the readers of pickles part: the one place that knows how each of them takes what the others take differently.

The readers are CPython's `_pickle` ("C's", from memory, from a stream, and from a buffered file), `pickle._Unpickler`
("Python's", Lib/pickle.py), and torch's restricted one (torch/_weights_only_unpickler.py). Each function says in words
how they differ about what stands in the stream, or gives None. What all of them refuse raises Malformed. That torch's
reader knows fewer opcodes and names than the others is no difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from strata_core.audit.findings import Malformed, printable
from strata_core.audit.pickles.symbols import Dictionary, Global, Group, Made, Opaque, Persistent, Stretch

_MOST_DIGITS = 4300
"""`sys.int_info.default_max_str_digits`: since Python 3.11 (and fixes of older ones) longer integers are refused."""
_LARGEST_C_INDEX = (1 << 63) - 1
_C_INTEGER = re.compile(rb"[ \t\n\v\f\r]*([+-]?)(?:0[xX]([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*))")
_C_FLOAT = re.compile(rb"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:inf(?:inity)?|nan))")
_NOTHING = object()
_WITHOUT_STATE = frozenset({"OrderedDict", "Counter"})
"""Known classes that keep attributes in a `__dict__` and have no `__setstate__`."""
_PLAIN = frozenset({"deque", "defaultdict", "list", "tuple", "dict", "set", "frozenset", "bytes", "bytearray", "str"})
_DATA_MODULES = frozenset({"collections", "builtins", "__builtin__"})
_LIST_LIKE = frozenset({"list", "deque", "bytearray"})
_SET_LIKE = frozenset({"set"})
_TABLES = frozenset({"dict", "OrderedDict", "defaultdict", "Counter", "list", "deque", "bytearray"})

Outcome = tuple[Any, str | None]


def int_line(line: bytes) -> Outcome:
    """The operand of INT: C reads it with strtol first, so 010 is 8 and +1 is True."""
    return _compared(_c_int(line), _attempted(lambda: _python_int(line)), line, "integer")


def long_line(line: bytes) -> Outcome:
    """The operand of LONG: C's ends at a NUL."""
    digits = line.removesuffix(b"L")
    if line and _is_too_long(digits):
        return Opaque("a very long integer"), _TOO_LONG
    in_c = _attempted(lambda: int(digits.split(b"\0")[0], 0)) if line else _NOTHING
    return _compared(in_c, _attempted(lambda: int(digits, 0)), line, "integer")


def memo_line(line: bytes) -> Outcome:
    """The operand of GET and PUT: C's ends at a NUL and at 63 bits."""
    in_c = _attempted(lambda: int(line.split(b"\0")[0], 10)) if line else _NOTHING
    if isinstance(in_c, int) and in_c > _LARGEST_C_INDEX:
        in_c = _NOTHING
    return _compared(in_c, _attempted(lambda: int(line, 10)), line, "memo index")


def float_line(line: bytes) -> Outcome:
    """The operand of FLOAT: C's takes no spaces and underscores, refuses overflow, and ends at a NUL."""
    match = _C_FLOAT.match(line)
    in_c: Any = _NOTHING
    if match and line[match.end() : match.end() + 1] in (b"", b"\0"):
        in_c = float(match[0])
        if abs(in_c) == float("inf") and b"n" not in match[0].lower():
            in_c = _NOTHING
    return _compared(in_c, _attempted(lambda: float(line)), line, "number")


def old_text(data: bytes) -> str | None:
    """How the readers differ about an 8-bit string of Python 2: by the encoding they were given."""
    if data.isascii():
        return None
    return "8-bit text that is not ASCII: pickle.load refuses it, torch.load takes it as UTF-8, numpy.load as Latin-1"


def frame_beyond_end(size: int, left: int) -> str:
    """How they differ about a frame longer than the rest."""
    return f"a frame of {size:,} bytes with {left:,} left: C's reader refuses it, Python's reads what there is"


FRAME_CUT = (
    "a frame ends within what is read here: Python's reader refuses it, C's reads on from memory, and from a stream it "
    "drops the frame's last bytes"
)
FRAME_WITHIN_FRAME = "a frame begins before the one before it ended: Python's reader refuses it, C's goes on"
STOP_WITHIN_FRAME = (
    "it stops before its frame ends: what follows begins at the frame's end for Python's reader, here for C's"
)
_TOO_LONG = f"an integer of more than {_MOST_DIGITS:,} digits: Python 3.11 and later refuse it, older ones read it"


def old_name(module: str, name: str, protocol: int) -> str | None:
    """How they differ about a name: old Python 2 names are translated by torch's reader in every protocol."""
    from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING

    if protocol >= 3 and (module in IMPORT_MAPPING or (module, name) in NAME_MAPPING):
        return (
            f"the Python 2 name {printable(module)}.{printable(name)} in protocol {protocol}: torch's reader "
            "translates it, C's and Python's look it up as it is"
        )
    if protocol < 4 and "." in name:
        return (
            f"the dotted name {printable(name)} in protocol {protocol}: torch's reader follows the dots, C's and "
            "Python's do from protocol 4 on"
        )
    return None


def arguments(value: Any) -> str | None:
    """How they differ about arguments that are no tuple.

    Raises:
        Malformed: no reader can unpack them.
    """
    if isinstance(value, tuple | Made | Opaque | Global | Persistent):
        return None
    if isinstance(value, list | str | Dictionary | Group | Stretch):
        return f"arguments in a {_kind(value)}: C's reader takes a tuple only, Python's and torch's take them"
    raise Malformed(f"arguments in a {_kind(value)}")


def keywords(value: Any) -> None:
    """
    Raises:
        Malformed: no reader can take them as keyword arguments.
    """
    if not isinstance(value, Dictionary | Made | Opaque | Global | Persistent):
        raise Malformed(f"keyword arguments in a {_kind(value)}")


def added_items(target: Any, count: int, opcode: str) -> str | None:
    """How they differ about items given to what cannot take them (`opcode`: "APPENDS", "ADDITEMS" or "SETITEMS").

    C's reader does not look at the target when there are no items; Python's asks it for its method all the same.

    Raises:
        Malformed: no reader can add them.
    """
    if _takes(target, opcode):
        return None
    if count:
        raise Malformed(f"it adds items to a {_kind(target)} by {opcode}")
    if opcode == "SETITEMS":
        return None
    return f"no items for a {_kind(target)}, which takes none by {opcode}: C's reader goes on, Python's refuses it"


def buffer(value: Any) -> None:
    """
    Raises:
        Malformed: READONLY_BUFFER is given what is no buffer.
    """
    is_bytes = isinstance(value, Stretch) and not value.is_text
    is_unknown = not _is_plain(value) and not _is_made_of(value, _WITHOUT_STATE)
    if not is_bytes and not is_unknown and not _is_made_of(value, frozenset({"bytes", "bytearray"})):
        raise Malformed(f"it makes a {_kind(value)} read-only, which is no buffer")


def indices(target: Any, keys: list[Any]) -> None:
    """
    Raises:
        Malformed: SETITEMS is given keys that a list cannot have.
    """
    if isinstance(target, list | Stretch):
        size = len(target) if isinstance(target, list) else target.size
    elif _is_made_of(target, _LIST_LIKE):
        size = len(target.items) if target.arguments == () else 1 << 62
    else:
        return
    if not all(isinstance(key, int) and -size <= key < size for key in keys):
        raise Malformed(f"it sets an item that a {_kind(target)} has not")


def state(target: Any, value: Any) -> str | None:
    """How they differ about the state that BUILD gives to what has no `__setstate__`.

    C's wants a dict or None, and a pair of them for slots; Python's leaves out whatever is empty; torch's fills an
    OrderedDict from pairs too.

    Raises:
        Malformed: no reader takes it.
    """
    has_table = _is_made_of(target, _WITHOUT_STATE)
    if not has_table and not _is_plain(target):
        return None
    slots: Any = _NOTHING
    if isinstance(value, tuple) and len(value) == 2:
        value, slots = value
    in_c = _c_takes(value, has_table) and (slots is _NOTHING or _c_takes_slots(slots, has_table))
    in_python = _python_takes(value, has_table) and (slots is _NOTHING or _python_takes(slots, has_table))
    if in_c and in_python:
        return None
    if in_python:
        return f"the state of a {_kind(target)} is empty and no dict: C's reader refuses it, Python's leaves it out"
    if has_table and isinstance(value, list | Group) and slots is _NOTHING:
        return (
            f"the state of a {_kind(target)} is a {_kind(value)}: torch's reader takes pairs, C's and Python's refuse"
        )
    raise Malformed(f"it sets the state of a {_kind(target)}")


def _c_takes(value: Any, has_table: bool) -> bool:
    return value is None or (has_table and _is_table(value)) or isinstance(value, Opaque | Persistent)


def _c_takes_slots(value: Any, has_table: bool) -> bool:
    return _is_table(value) and (has_table or _is_empty(value))


def _python_takes(value: Any, has_table: bool) -> bool:
    return _is_empty(value) or (has_table and _is_table(value)) or isinstance(value, Opaque | Persistent)


def _is_table(value: Any) -> bool:
    return isinstance(value, Dictionary) or _is_made_of(value, frozenset({"OrderedDict", "dict", "defaultdict"}))


def _is_empty(value: Any) -> bool:
    if isinstance(value, Dictionary):
        return not value.entries
    if isinstance(value, Group):
        return not value.members
    if isinstance(value, Stretch):
        return value.size == 0
    if isinstance(value, Made):
        return _is_table(value) and not value.entries
    return not isinstance(value, Global | Opaque | Persistent) and not value


def _is_made_of(value: Any, names: frozenset[str]) -> bool:
    return (
        isinstance(value, Made)
        and isinstance(value.maker, Global)
        and value.maker.module in _DATA_MODULES
        and value.maker.name in names
    )


def _is_plain(value: Any) -> bool:
    return not isinstance(value, Made | Global | Opaque | Persistent) or _is_made_of(value, _PLAIN)


def _takes(target: Any, opcode: str) -> bool:
    if isinstance(target, Made):
        known = _is_plain(target) or _is_made_of(target, _WITHOUT_STATE)
        kinds = {"APPENDS": _LIST_LIKE, "ADDITEMS": _SET_LIKE, "SETITEMS": _TABLES}[opcode]
        return not known or _is_made_of(target, kinds)
    if isinstance(target, Global | Opaque | Persistent):
        return True
    if opcode == "ADDITEMS":
        return isinstance(target, Group) and not target.is_frozen
    is_bytearray = isinstance(target, Stretch) and target.is_mutable
    return isinstance(target, list) or is_bytearray or (opcode == "SETITEMS" and isinstance(target, Dictionary))


def _kind(value: Any) -> str:
    if isinstance(value, Made):
        return str(value.maker)
    if isinstance(value, Stretch):
        return "str" if value.is_text else "bytes"
    return {"Dictionary": "dict", "Group": "set"}.get(type(value).__name__, type(value).__name__)


def _is_too_long(digits: bytes) -> bool:
    return len(digits) > _MOST_DIGITS and digits.lstrip(b" +-")[:2].lower() not in (b"0x", b"0b", b"0o")


def _python_int(line: bytes) -> Any:
    return {b"00": False, b"01": True}[line] if line in (b"00", b"01") else int(line, 0)


def _c_int(line: bytes) -> Any:
    if not line:
        return _NOTHING
    match = _C_INTEGER.match(line)
    end = match.end() if match else 0
    found = 0
    if match:
        sign, sixteen, eight, ten = match.groups()
        found = int(sixteen, 16) if sixteen else int(eight or b"0", 8) if eight else int(ten[:_MOST_DIGITS])
        found = -found if sign == b"-" else found
    is_whole = line[end : end + 1] == b"\0" or (match is not None and end == len(line))
    if not is_whole or not -(1 << 63) <= found < 1 << 63:
        return _attempted(lambda: int(line.split(b"\0")[0], 0))
    return bool(found) if len(line) == 2 and found in (0, 1) else found


def _attempted(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (ValueError, OverflowError):
        return _NOTHING


def _compared(in_c: Any, in_python: Any, line: bytes, what: str) -> Outcome:
    """One outcome of two, C's where both read something.

    Raises:
        Malformed: both refuse it.
    """
    shown = printable(repr(line), limit=40)
    if in_c is _NOTHING and in_python is _NOTHING:
        raise Malformed(f"{shown} is no {what}")
    if type(in_c) is type(in_python) and repr(in_c) == repr(in_python):
        return in_c, None
    told = [f"C's reader {_taken(in_c)}", f"Python's {_taken(in_python)}"]
    return in_python if in_c is _NOTHING else in_c, f"{shown} as {what}: {', '.join(told)}"


def _taken(value: Any) -> str:
    return "refuses it" if value is _NOTHING else f"takes it as {printable(repr(value), limit=40)}"
