"""Numbers as people read them."""

from __future__ import annotations


def bytes_text(count: float) -> str:
    """A size in binary units: "512 B", "1.5 MiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def seconds_text(seconds: float) -> str:
    """A duration: "8.4 s", "3 min 05 s", "2 h 07 min", "1 d 03 h"."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes:02d} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours:02d} h"


def count_text(count: float) -> str:
    """A count with its thousands marked, rounded to an integer."""
    return f"{count:,.0f}"


def short_count_text(count: float) -> str:
    """A count in three digits: "950", "12.3k", "1.25B"."""
    for limit, unit in ((1e3, ""), (1e6, "k"), (1e9, "M"), (1e12, "B")):
        if abs(count) < limit * 0.9995:
            scaled = count / (limit / 1e3)
            return f"{scaled:.0f}" if not unit else f"{scaled:.3g}{unit}"
    return f"{count / 1e12:.3g}T"
