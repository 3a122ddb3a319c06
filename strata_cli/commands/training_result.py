"""How a training command ends: its figures, what to try next, its exit code."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from strata_cli.display.figures import bytes_text, count_text, seconds_text
from strata_cli.display.lines import number_text
from strata_cli.display.output import write_json, write_text
from strata_cli.display.streams import printable
from strata_cli.display.table import write_pairs
from strata_core.errors import EXIT_PREEMPTED

PREEMPTED = "preempted"


def finish(result: Mapping[str, Any], *, json_output: bool, quiet: bool) -> int:
    """Writes a training result as it was asked for and returns the exit code it stands for."""
    if json_output:
        write_json(result)
    elif not quiet:
        write_pairs(f"training: {result['stopped_because']}", _rows(result))
        write_text("\n".join(["", "next:", *(f"  {command}" for command in _next_commands(result))]))
    return EXIT_PREEMPTED if result["stopped_because"] == PREEMPTED else 0


def _rows(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = [
        ("run", str(result["run_dir"])),
        ("steps", count_text(result["steps"])),
        ("tokens seen", count_text(result["tokens_seen"])),
        ("first loss", number_text(result["first_loss"])),
        ("final loss", number_text(result["final_loss"])),
    ]
    best = result.get("best")
    if best:
        name = f"best {best['metric'].replace('_', ' ')}"
        rows.append((name, f"{number_text(best['value'])} at step {best['step']}"))
    if result.get("seconds") is not None:
        rows.append(("time", seconds_text(result["seconds"])))
    if result.get("tokens_per_second"):
        rows.append(("tokens/s", count_text(result["tokens_per_second"])))
    if result.get("peak_memory_bytes"):
        rows.append(("peak memory", bytes_text(result["peak_memory_bytes"])))
    rows.append(("checkpoint", str(result["checkpoint"])))
    return rows


def _next_commands(result: Mapping[str, Any]) -> list[str]:
    run = printable(shlex.quote(str(result["run_dir"])))
    if result["stopped_because"] == PREEMPTED:
        return [f"strata resume {run}"]
    commands = [f"strata resume {run} --set run.max_steps={2 * max(result['steps'], 1)}"]
    return commands + [f"strata {name} {run}" for name in ("inspect-ckpt", "verify-manifest")]
