"""Lemmas as classes: a rule says how a lemma is made from a form, and the same rule serves many forms.

A rule is text, `CASE;PREFIX;SUFFIX` or `!LEMMA`:

- PREFIX is an edit script for the first characters of the form, SUFFIX one for its last; what lies between stays.
  `=` keeps a character, `-` leaves one out, `+c` puts in a c. So "L;;---+y" makes "city" of "cities".
- CASE is L where the script edits the form in lower case, K where it edits the form with the case it has. Where an edit
  in lower case is followed by capitals, it is T for a first capital, U for all capitals, and `@1.4` for capitals at
  these places, from 0.
- `!LEMMA` is the lemma itself, whatever the form: "!be" for "was".

Of the rules that give a lemma, `rule_of` takes the first of L, K, T, U and `@`, with as much of the form kept in one
piece as can be, and `!` where none does. The idea is that of Straka et al. 2019, "UDPipe at SIGMORPHON 2019"; the
notation is strata's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import lru_cache

_WHOLE = "!"


@lru_cache(maxsize=1 << 16)
def rule_of(form: str, lemma: str) -> str:
    """The rule that makes a lemma of a form; `apply_rule` undoes it for every pair.

    Args:
        form: at least one character.
        lemma: likewise.
    """
    return next((rule for rule in _candidates(form, lemma) if apply_rule(rule, form) == lemma), _WHOLE + lemma)


@lru_cache(maxsize=1 << 16)
def apply_rule(rule: str, form: str) -> str | None:
    """The lemma that a rule makes of a form; None where the form is too short for it, or nothing would be left.

    Raises:
        ValueError: it is no rule.
    """
    if rule.startswith(_WHOLE):
        return rule[1:] or None
    case, prefix, suffix = _parts(rule)
    source = form if case == "K" else form.lower()
    taken = [sum(step in "=-" for step in script) for script in (prefix, suffix)]
    if sum(taken) > len(source):
        return None
    kept = source[taken[0] : len(source) - taken[1]]
    lemma = _edited(source[: taken[0]], prefix) + kept + _edited(source[len(source) - taken[1] :], suffix)
    return _cased(lemma, case) or None


def is_rule(text: str) -> bool:
    """Whether `apply_rule` understands it."""
    try:
        apply_rule(text, "")
    except ValueError:
        return False
    return True


def lemma_by(rule: str | None, form: str) -> str:
    """The lemma that a rule makes of a form; the form itself where it cannot, or there is no rule."""
    return (apply_rule(rule, form) if rule is not None else None) or form


def _candidates(form: str, lemma: str) -> Iterator[str]:
    lower = lemma.lower()
    script = _script(form.lower(), lower)
    if script is not None and lemma == lower:
        yield f"L;{script}"
    # Capitals that stay are the form's own only where they do not change what is edited.
    if script is not None and script == _script(form, lemma):
        yield f"K;{script}"
    if script is not None:
        places = [str(place) for place, character in enumerate(lemma) if character != character.lower()]
        yield from (f"{case};{script}" for case in ("T", "U", f"@{'.'.join(places)}"))
    cased = _script(form, lemma)
    if cased is not None:
        yield f"K;{cased}"


def _script(form: str, lemma: str) -> str | None:
    """PREFIX;SUFFIX around the longest piece that both have; None where they share no character."""
    kept = SequenceMatcher(None, form, lemma, autojunk=False).find_longest_match()
    if kept.size == 0:
        return None
    prefix = _edits(form[: kept.a], lemma[: kept.b])
    suffix = _edits(form[kept.a + kept.size :], lemma[kept.b + kept.size :])
    return f"{prefix};{suffix}"


def _edits(source: str, target: str) -> str:
    """The steps that make the target of the source, as few as can be; of equals those that leave out first."""
    fewest = [list(range(len(target), -1, -1))]
    for left in range(1, len(source) + 1):
        row = [0] * len(target) + [left]
        for place in range(len(target) - 1, -1, -1):
            changed = 1 + min(row[place + 1], fewest[-1][place])
            same = source[len(source) - left] == target[place]
            row[place] = min(changed, fewest[-1][place + 1]) if same else changed
        fewest.append(row)
    steps: list[str] = []
    done, made = 0, 0
    while done < len(source) or made < len(target):
        best, left = fewest[len(source) - done][made], len(source) - done - 1
        same = source[done : done + 1] == target[made : made + 1]
        if same and best == fewest[left][made + 1]:
            steps.append("=")
            done, made = done + 1, made + 1
        elif left >= 0 and best == 1 + fewest[left][made]:
            steps.append("-")
            done += 1
        else:
            steps.append("+" + target[made])
            made += 1
    return "".join(steps)


def _parts(rule: str) -> tuple[str, list[str], list[str]]:
    """CASE and the steps of both scripts."""
    case, mark, scripts = rule.partition(";")
    steps: list[list[str]] = [[]]
    rest = iter(scripts)
    for character in rest:
        if character == ";":
            steps.append([])
        elif character == "+":
            steps[-1].append("+" + next(rest, ""))
        else:
            steps[-1].append(character)
    known = mark and (case in {"L", "K", "T", "U"} or case.startswith("@"))
    broken = any(step[0] not in "=-+" or step == "+" for script in steps for step in script)
    if not known or len(steps) != 2 or broken:
        raise ValueError(f"{rule!r} is no lemma rule")
    return case, steps[0], steps[1]


def _edited(source: str, script: list[str]) -> str:
    rest = iter(source)
    made = []
    for step in script:
        if step.startswith("+"):
            made.append(step[1:])
        else:
            character = next(rest)
            made.append(character if step == "=" else "")
    return "".join(made)


def _cased(lemma: str, case: str) -> str:
    if case == "T":
        return lemma[:1].upper() + lemma[1:]
    if case == "U":
        return lemma.upper()
    if case.startswith("@"):
        capitals = {int(place) for place in case[1:].split(".") if place}
        return "".join(c.upper() if place in capitals else c for place, c in enumerate(lemma))
    return lemma
