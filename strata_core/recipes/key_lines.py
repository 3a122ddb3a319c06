"""On which line each key of a TOML text is written. `tomllib` gives the values; this gives their places."""

from __future__ import annotations

import re
import tomllib

KeyPath = tuple[str | int, ...]
"""Keys from the top, with the index of an element for arrays: `("run", "seed")`, `("table", 0, "key")`."""

_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}'
    r"|'''(?:[^']|'{1,2}(?!'))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]+")


def find_key_lines(text: str) -> dict[KeyPath, int]:
    """The line (from 1) on which each key, table and array element begins.

    Args:
        text: valid TOML with LF line ends; on anything else the result is meaningless.
    """
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.lines: dict[KeyPath, int] = {}
        self.array_lengths: dict[KeyPath, int] = {}
        self.counted_to = (0, 1)

    def scan(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._skip_blank() < len(self.text):
            if self._take("[["):
                table = self._open_array_element(self._keys())
                self._take("]]")
            elif self._take("["):
                table = self._place((), self._keys())
                self._take("]")
            else:
                self._pair(table)
        return self.lines

    def _pair(self, table: KeyPath) -> None:
        path = self._place(table, self._keys())
        self._take("=")
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        self._skip_blank()
        if self._take("["):
            index = 0
            while not self._take("]"):
                self._note((*path, index))
                self._value((*path, index))
                self._take(",")
                index += 1
        elif self._take("{"):
            while not self._take("}"):
                self._pair(path)
                self._take(",")
        else:
            self._match(_STRING) or self._match(_SCALAR)

    def _keys(self) -> list[str]:
        keys = []
        while True:
            self._skip_blank()
            quoted = self._match(_STRING)
            keys.append(tomllib.loads(f"key = {quoted}")["key"] if quoted else self._match(_BARE_KEY))
            if not self._take("."):
                return keys

    def _place(self, table: KeyPath, keys: list[str]) -> KeyPath:
        """Notes a key and the tables above it; a name of an array of tables stands for its last element."""
        path = table
        for key in keys:
            path = (*path, key)
            self._note(path)
            if path in self.array_lengths:
                path = (*path, self.array_lengths[path] - 1)
        return path

    def _open_array_element(self, keys: list[str]) -> KeyPath:
        array = (*self._place((), keys[:-1]), keys[-1])
        index = self.array_lengths.get(array, 0)
        self.array_lengths[array] = index + 1
        self._note(array)
        self._note((*array, index))
        return (*array, index)

    def _note(self, path: KeyPath) -> None:
        position, line = self.counted_to
        line += self.text.count("\n", position, self.position)
        self.counted_to = (self.position, line)
        self.lines.setdefault(path, line)

    def _skip_blank(self) -> int:
        blank = _BLANK.match(self.text, self.position)
        self.position = blank.end() if blank else self.position
        return self.position

    def _take(self, mark: str) -> bool:
        self._skip_blank()
        if not self.text.startswith(mark, self.position):
            return False
        self.position += len(mark)
        return True

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.position)
        if found is None:
            return ""
        self.position = found.end()
        return found[0]
