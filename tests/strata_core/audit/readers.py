"""The real readers of pickles, and random streams of harmless opcodes for them.

`python -m tests.strata_core.audit.readers --streams 200000` gives each stream to CPython's C reader (from a stream and
from a buffered file), to its Python reader and to torch's restricted one, and compares with the verdict. Only three
harmless classes can be looked up.
"""

from __future__ import annotations

import _pickle
import argparse
import collections
import io
import pickle
import random
import re
import struct
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

from strata_core.audit.opening import FileBytes
from strata_core.audit.pickles.machine import run_pickle
from strata_core.audit.pickles.safety import judge

_CLASSES = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("collections", "deque"): collections.deque,
    ("builtins", "set"): set,
}
REFUSED = "refused"


class _CReader(_pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _harmless(module, name)


class _PythonReader(pickle._Unpickler):  # type: ignore[name-defined, misc]
    def find_class(self, module: str, name: str) -> Any:
        return _harmless(module, name)


def _harmless(module: str, name: str) -> Any:
    try:
        return _CLASSES[module, name]
    except KeyError:
        raise pickle.UnpicklingError(f"{module}.{name} is not looked up here") from None


def _outcome(read: Callable[[], Any]) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.sub(r"0x[0-9a-f]+", "", repr(read()))
    except Exception:
        return REFUSED


def _positioned(reader: Any, file: Any) -> tuple[Any, int]:
    return reader(file).load(), file.tell()


def outcomes(data: bytes) -> dict[str, str]:
    """What each reader of the standard library makes of a stream, with where it stops where that can differ.

    From a stream C's reader drops bytes where a frame is cut, and what follows can make it ask for all memory; Python's
    refuses those, so that nothing is lost by leaving it out there.
    """
    found = {
        "C, from a buffered file": _outcome(lambda: _positioned(_CReader, io.BufferedReader(io.BytesIO(data)))),
        "Python": _outcome(lambda: _positioned(_PythonReader, io.BytesIO(data))),
    }
    if found["Python"] != REFUSED:
        found["C, from a stream"] = _outcome(lambda: _CReader(io.BytesIO(data)).load())
    return found


def torch_outcome(data: bytes) -> str:
    """What torch's restricted reader makes of a stream."""
    from torch._weights_only_unpickler import Unpickler

    return _outcome(lambda: Unpickler(io.BytesIO(data), encoding="ASCII").load())


def agreed(data: bytes) -> str | None:
    """What all readers of the standard library make of a stream, "refused", or None where two of them differ."""
    found = outcomes(data)
    from_stream = found.pop("C, from a stream", REFUSED)
    values = set(found.values())
    if len(values) > 1:
        return None
    (value,) = values
    return value if value == REFUSED or value.startswith(f"({from_stream}, ") else None


def complaint(data: bytes) -> str | None:
    """What the inspection holds against a stream."""
    run = run_pickle(FileBytes.of_memory(data, "stream"))
    findings, _ = judge(run, "stream", lambda stretch: [], frozenset())
    return findings[0].text if findings else None


_TEXTS = [b"0", b"1", b"00", b"01", b"7", b"07", b"08", b"+1", b"-1", b" 1", b"1 ", b"1_0", b"0x1f", b"0o7", b"1\0"]
_TEXTS += [b"\0", b"", b"L", b"5L", b"5LL", b"0xg", b"99999999999999999999", b"-99999999999999999999", b"1.5", b" 1.5"]
_TEXTS += [b"1e400", b"1.5\0x", b"nan", b"-inf", b".5", b"5.", b"1e", b"0777777777777777777777777", b"\x0b1", b"0_0"]
_QUOTED = [
    b"'a'",
    b'"a"',
    b"'a",
    b"a",
    b" 'a'",
    b"'a' ",
    b"'\\x41'",
    b"'\\xg'",
    b"'\xe9'",
    b"''",
    b"'",
    b"'a\"",
    b"'\\'",
]
_UTF8 = [b"", b"a", "\u00e9".encode(), b"\xed\xa0\x80", b"\xff", b"abcdef"]
_SIMPLE = [b"N", b"\x88", b"\x89", b"]", b"}", b")", b"\x8f", b"K\x05", b"M\x01\x02", b"J\xff\xff\xff\xff"]
_SIMPLE += [b"G" + b"\0" * 8, b"C\x01a\x98", b"K\x01\x98", b"\x8a\x00", b"\x8a\x01\xff", b"\x8b\0\0\0\0"]
_SIMPLE += [b"\x8b\xff\xff\xff\xff", b"C\x01a", b"B\x01\0\0\0a", b"\x96\x01\0\0\0\0\0\0\0a", b"\x8e\x01\0\0\0\0\0\0\0a"]
_SIMPLE += [b"(t", b"(l", b"(d", b"(\x91", b"U\x01a", b"U\x01\xff", b"T\x01\0\0\0a"]
_CLASS_NAMES = [b"ccollections\nOrderedDict\n", b"ccollections\ndeque\n", b"cbuiltins\nset\n"]
_CHANGES = [b"a", b"e", b"s", b"u", b"\x90", b"\x85", b"\x86", b"\x87", b"t", b"l", b"d", b"\x91", b"2", b"(", b"b"]
_CHANGES += [
    b"R",
    b"\x81",
    b"\x92",
    b"o",
    b"\x94",
    b"q\x00",
    b"h\x00",
    b"q\x01",
    b"h\x01",
    b"r\x02\0\0\0",
    b"j\x02\0\0\0",
]
_MADE = b"ccollections\nOrderedDict\n)R"
_TARGETS = [b"]", b"}", b"\x8f", b"K\x05", b")", b"\x96\x01\0\0\0\0\0\0\0a", _MADE, b"ccollections\ndeque\n)R"]


def random_stream(rng: random.Random) -> bytes:
    """A stream of harmless opcodes whose values mostly end in one tuple, with frames that end anywhere."""
    pieces = [rng.choice((b"", b"\x80\x02", b"\x80\x04", b"\x80\x05")) + b"("]
    for _ in range(rng.randrange(1, 12)):
        pieces.append(_piece(rng))
    pieces.append(rng.choice((b"t", b"t", b"t", b"0", b"1N", b"")))
    if rng.random() < 0.4:
        pieces.insert(rng.randrange(len(pieces)), b"\x95" + struct.pack("<Q", rng.randrange(len(b"".join(pieces)) + 3)))
    if rng.random() < 0.3:
        at = rng.randrange(len(pieces) + 1)
        rest = len(b"".join(pieces[at:])) + 1
        pieces.insert(at, b"\x95" + struct.pack("<Q", rest))
    return b"".join(pieces) + b"." + rng.choice((b"", b"", b"N.", b"..."))


def _piece(rng: random.Random) -> bytes:
    way = rng.randrange(10)
    if way < 3:
        return rng.choice(_SIMPLE)
    if way < 6:
        return rng.choice(_CHANGES)
    if way == 6:
        return rng.choice((b"I", b"L", b"F", b"p", b"g")) + rng.choice(_TEXTS) + b"\n"
    if way == 7:
        text = rng.choice(_UTF8)
        return rng.choice((b"S" + rng.choice(_QUOTED) + b"\n", b"V" + text + b"\n", _counted(rng, text)))
    if way == 8:
        return rng.choice(_CLASS_NAMES) + rng.choice((b")R", b")\x81", b"]R", b")}\x92", b""))
    items = rng.choice((b"", b"K\x01", b"K\x00K\x02", b"]K\x01"))
    filling = b"(" + items + rng.choice((b"e", b"u", b"\x90"))
    return rng.choice(_TARGETS) + rng.choice((filling, rng.choice(_SIMPLE) + b"b"))


def _counted(rng: random.Random, text: bytes) -> bytes:
    layout, code = rng.choice((("<I", b"X"), ("<B", b"\x8c"), ("<Q", b"\x8d")))
    return code + struct.pack(layout, len(text)) + text


_NOT_SEEN = re.compile("C's reader takes it as .*, Python's takes it as|for the whole program|no container of data")
"""Two readings of a value that the rest of the stream drops, and changes of a class: no difference comes out."""


def compare(streams: int, seed: int, *, with_torch: bool) -> tuple[Counter[str], list[str]]:
    """Counts of what was found, and every stream whose verdict breaks a rule."""
    counts: Counter[str] = Counter()
    broken: list[str] = []
    for number in range(streams):
        data = random_stream(random.Random(f"{seed}/{number}"))
        found = agreed(data)
        told = complaint(data)
        if with_torch and found is not None:
            by_torch = torch_outcome(data)
            if by_torch != REFUSED and not found.startswith(f"({by_torch}, "):
                found = None
        kind = "differ" if found is None else REFUSED if found == REFUSED else "agree"
        counts[f"{kind}, {'accused' if told else 'ok'}"] += 1
        if kind != "agree" and told is None:
            broken.append(f"{data!r}: ok, but the readers {kind}: {outcomes(data)}")
        elif kind == "agree" and told is not None and not _NOT_SEEN.search(told):
            broken.append(f"{data!r}: all readers agree on {found}, and it is accused: {told}")
    return counts, broken


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found_counts, found_broken = compare(options.streams, options.seed, with_torch=True)
    print(*(f"{kind}: {count}" for kind, count in sorted(found_counts.items())), sep="\n")
    print(*found_broken[:30], sep="\n")
    print(f"{len(found_broken)} rules broken in {options.streams} streams")
    raise SystemExit(1 if found_broken else 0)
