"""The part of `strata verify-manifest --replay` that trains again and tells how it came out."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata_cli.display.figures import count_text
from strata_cli.display.output import write_text
from strata_cli.display.streams import printable
from strata_cli.display.table import write_pairs
from strata_cli.replay_option import LAST
from strata_core.errors import UsageError
from strata_core.manifest import Report
from strata_core.manifest.names import show_name
from strata_core.observer import Observer

if TYPE_CHECKING:
    from strata_core.replay.proof import Replay
    from strata_core.replay.state_comparison import Difference

_SHOWN_DIFFERENCES = 10


def parse_step(text: str) -> int | None:
    """The step to arrive at, None for the last one.

    Raises:
        UsageError: it is neither a number nor left out.
    """
    if text != LAST and not text.isdecimal():
        raise UsageError(f"--replay {text}: must be the number of a step, or left out for the last one")
    return None if text == LAST else int(text)


def replay_run(path: Path, report: Report, step: int | None, observer: Observer) -> Replay | None:
    """Replays the verified run at a path; None where its files are not what they should be to begin with.

    Raises:
        UsageError: it is no run, or has no checkpoint of that step.
        DataError: it cannot be replayed here.
    """
    if report.describes != "run":
        raise UsageError(
            f"--replay: {path} is a {report.describes}, not a run",
            hint="name the run that the checkpoint belongs to, and its step: strata verify-manifest RUN --replay STEP",
        )
    if not report.ok:
        return None
    from strata_core.replay.proof import replay

    return replay(path if path.is_dir() else path.parent, step=step, observer=observer)


def replay_json(outcome: Replay | None) -> dict[str, Any]:
    """The value of the key "replay"."""
    if outcome is None:
        return {"equal": None, "not_made": "the files are not what the manifests say"}
    return outcome.to_json()


def write_replay(outcome: Replay | None) -> None:
    """A line on the outcome, and where it is not as claimed what differs and how the environments do."""
    if outcome is None:
        write_text("replay: not made, since the files are not what the manifests say")
        return
    for note in outcome.notes:
        write_text(printable(f"note: {note}"))
    if not outcome.equal:
        shown = outcome.differences[:_SHOWN_DIFFERENCES]
        write_pairs("claimed and replayed differ:", [_difference_row(difference) for difference in shown])
        if len(outcome.differences) > len(shown):
            write_text(f"and {count_text(len(outcome.differences) - len(shown))} more")
    if outcome.environment:
        rows = [(name, f"{_shown(old)} -> {_shown(new)}") for name, (old, new) in outcome.environment.items()]
        write_pairs("environment, recorded -> present:", rows)
    write_text(_summary(outcome))


def next_command(path: str, outcome: Replay) -> str:
    """What to do after a replay."""
    run = shlex.quote(printable(path))
    replay = f"strata verify-manifest {run} --replay"
    if not outcome.equal and outcome.environment:
        return f"{replay} {outcome.to_step} in the recorded environment, to tell rounding from forgery"
    if outcome.from_step:
        return f"{replay} {outcome.from_step}, for the steps before"
    return f"strata inspect-ckpt {run}"


def _difference_row(difference: Difference) -> tuple[str, str]:
    subject = show_name(difference.name or difference.file)
    figures = [difference.what]
    if difference.claimed is not None or difference.replayed is not None:
        figures.append(f"claimed {_shown(difference.claimed)}, replayed {_shown(difference.replayed)}")
    if difference.largest is not None:
        figures.append(f"by up to {difference.largest:.3g}")
    if difference.is_tensor and difference.relative is not None:
        figures.append(f"{difference.relative:.2g} x the way it goes")
    return f"step {difference.step} {show_name(difference.file)}", f"{subject}: {', '.join(figures)}"


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)


def _summary(outcome: Replay) -> str:
    start = f"step {outcome.from_step}" if outcome.from_step else "the start"
    threads = "1 thread" if outcome.threads == 1 else f"{outcome.threads} threads"
    trained = f"trained from {start} to step {outcome.to_step} again on {outcome.device}, {threads}"
    tensors = f"{count_text(outcome.tensors)} tensors"
    if not outcome.equal:
        first = outcome.first_differing_step
        return f"replay failed: {trained}: not what the run claims, from step {first} on, as far as it was logged"
    if outcome.tolerance is None:
        return f"replay ok: {trained}: {tensors} and the trainer's state equal bit for bit"
    found = f"{outcome.largest_relative:.2g} x the way they go at most"
    return f"replay ok: {trained}: {tensors} and the trainer's state equal but for rounding, {found}"
