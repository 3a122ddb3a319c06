"""`strata compare`: where two runs of one recipe part, and which of them is right."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from strata_cli.display.output import write_json, write_text
from strata_cli.display.progress import shown_progress
from strata_cli.display.streams import printable
from strata_core.errors import UsageError, VerificationError
from strata_core.files import expand_path

if TYPE_CHECKING:
    from strata_core.replay.settling import Settlement


def compare(run_a: str, run_b: str, *, json_output: bool) -> int:
    """Compares two runs and prints how they came out.

    Returns:
        0 when they are equal, 4 when they differ.

    Raises:
        UsageError: one of them is not there, or is no run.
        DataError: one of them cannot be read.
    """
    places = expand_path(run_a), expand_path(run_b)
    for place in places:
        if not place.is_dir():
            raise UsageError(f"{place}: no such directory", hint="give two runs of one recipe")
    from strata_core.replay.settling import settle

    with shown_progress(quiet=json_output) as observer:
        outcome = settle(*places, observer=observer)
    if json_output:
        write_json(outcome.to_json())
    else:
        write_text("\n".join(printable(line) for line in _lines(outcome, places)))
    return 0 if outcome.equal else VerificationError.exit_code


def _lines(outcome: Settlement, places: tuple[Path, Path]) -> list[str]:
    notes = [f"note: {note}" for note in outcome.notes]
    if outcome.equal:
        return [*notes, "equal: records and checkpoints, as far as both go"]
    tensor = f", first {outcome.tensor}" if outcome.tensor else ""
    at = f" (checkpoint {outcome.checkpoint_step}{tensor})" if outcome.checkpoint_step is not None else ""
    right = {
        "a": f"right: a, {places[0]}",
        "b": f"right: b, {places[1]}",
        "neither": "right: neither alone",
        None: "right: not decided",
    }[outcome.right]
    shown = shlex.quote(str(places[1] if outcome.right == "a" else places[0]))
    return [
        *notes,
        f"differ: from step {outcome.first_step} on, as far as they were logged{at}",
        right,
        f"next: strata verify-manifest {shown} --replay shows every difference",
    ]
