"""File names: which of them a manifest may hold, which are twins of each other, how to show them."""

from __future__ import annotations

import unicodedata


def name_problem(name: str) -> str | None:
    """Why a listed path is refused, judged by its text alone, or None for a plain one.

    Plain is: relative, forward slashes, no empty part and no `.` or `..`, no NUL, and nothing that a shell or
    another system reads as a home folder, a drive or a separator.
    """
    if not name:
        return "the path is empty"
    if "\0" in name:
        return "the path holds a NUL"
    if "\\" in name:
        return "the path holds a backslash"
    if name.startswith("/"):
        return "the path is absolute"
    if name.startswith("~"):
        return "the path starts with ~"
    if len(name) > 1 and name[1] == ":" and name[0].isascii() and name[0].isalpha():
        return "the path starts with a drive letter"
    parts = name.split("/")
    if ".." in parts:
        return "the path climbs out with .."
    if "." in parts or "" in parts:
        return "the path is not in plain form"
    return None


def folded_form(name: str) -> str:
    """Equal for names that a file system which ignores case, or how accents are encoded, takes for one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def differ_only_in_unicode_form(one: str, other: str) -> bool:
    """Whether two names are the same text with accents encoded in different ways."""
    return unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other)


def show_name(name: str) -> str:
    """A name for people: what cannot be printed, or is not UTF-8, as escapes."""
    if not name:
        return "(empty)"
    return "".join(character if character.isprintable() else _escaped(character) for character in name)


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # how Python holds a byte of a file name that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()
