"""Which way of showing progress fits where standard error goes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from strata_cli.display.plain import PlainObserver, QuietObserver
from strata_cli.display.streams import is_live
from strata_core.observer import Observer


@contextlib.contextmanager
def shown_progress(*, quiet: bool) -> Iterator[Observer]:
    """An observer to hand to the library: bars on a terminal, lines elsewhere, warnings alone when quiet."""
    if quiet:
        yield QuietObserver()
    elif is_live(sys.stderr):
        from strata_cli.display.live import LiveObserver

        with LiveObserver() as observer:
            yield observer
    else:
        yield PlainObserver()
