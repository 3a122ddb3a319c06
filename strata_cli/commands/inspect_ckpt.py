"""`strata inspect-ckpt`: what a checkpoint is, whether it is whole, and whether it is safe to load."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from strata_cli.commands.bill import write_bill
from strata_cli.display.figures import bytes_text, count_text
from strata_cli.display.output import write_json, write_text
from strata_cli.display.prediction_output import check_place
from strata_cli.display.progress import shown_progress
from strata_cli.display.streams import columns, is_live, printable, wants_colour
from strata_cli.display.table import write_pairs
from strata_core.audit import Report, inspect_checkpoint
from strata_core.audit.report import stats_key
from strata_core.audit.summary import is_optimizer_state
from strata_core.errors import UsageError
from strata_core.files import expand_path

if TYPE_CHECKING:
    from strata_core.audit.difference import Difference
    from strata_core.audit.tensors import Tensor

_WIDE_COLUMNS = 120
_SHOWN_SETTINGS = 12
_SHOWN_REASONS = 50
_COLOURS = {"ok": "green", "unknown-global": "yellow"}


def inspect_ckpt(
    path: str,
    *,
    stats: bool,
    diff: str | None,
    tensors: str | None,
    strict: bool,
    output: str = "text",
    bom: str | None = None,
) -> int:
    """Inspects a checkpoint file, checkpoint folder or run, and prints what was found.

    Args:
        stats: also read all elements: NaN, Inf, ranges, checksums.
        diff: another checkpoint to compare the tensors with.
        tensors: a shell pattern of the names to list.
        strict: whether classes outside the known-good list fail.
        output: "text" for tables, "json" for one JSON object, "sarif" for a SARIF 2.1.0 log.
        bom: the bill of materials to write where nothing is wrong.

    Returns:
        0 when nothing is wrong, 4 when it is unsafe or has impossible numbers, 5 when it is damaged.

    Raises:
        UsageError: there is nothing at `path` or at `diff`, or `diff` is asked for in SARIF, which cannot tell it.
        DataError: one of them may not be read.
    """
    if output == "sarif" and diff is not None:
        raise UsageError("SARIF has no place for --diff", hint="leave out --diff, or use --json")
    difference = None
    if bom is not None:
        check_place(expand_path(bom), option="--bom")
    with shown_progress(quiet=output != "text" or not is_live(sys.stderr)) as observer:
        report = inspect_checkpoint(expand_path(path), stats=stats, tensors=tensors, observer=observer)
        if diff is not None:
            from strata_core.audit.difference import compare_checkpoints

            difference = compare_checkpoints(expand_path(path), expand_path(diff), observer=observer)
    if output == "sarif":
        from strata_core.audit.sarif import to_sarif

        write_json(to_sarif(report))
    elif output == "json":
        shown = report.to_json()
        if difference is not None:
            shown["diff"] = difference.to_json()
        write_json(shown)
    else:
        _write_report(report, every_tensor=tensors is not None or stats)
        if difference is not None:
            _write_difference(difference)
        _write_verdict(report)
    if bom is not None and report.exit_code(strict=strict) == 0:
        write_bill(expand_path(path), expand_path(bom))
    return report.exit_code(strict=strict)


def _write_report(report: Report, *, every_tensor: bool) -> None:
    """Writes what was found; optimizer state, which the facts sum up, is listed where every tensor is asked for."""
    write_pairs(printable(report.path), _facts(report))
    shown = [tensor for tensor in report.tensors if every_tensor or not is_optimizer_state(tensor)]
    if shown:
        _write_tensors(report, shown)
    if len(shown) < len(report.tensors):
        left_out = count_text(len(report.tensors) - len(shown))
        write_text(f"{left_out} tensors of optimizer state are not listed; --tensors '*' lists all")
    for names in report.sharing:
        write_text(f"shared: {printable(', '.join(names[:8]))} share a storage")
    for note in report.notes:
        write_text(f"note: {printable(note)}")


def _facts(report: Report) -> list[tuple[str, str]]:
    totals = report.totals
    rows = [
        ("format", report.format),
        ("tensors", f"{count_text(totals['tensors'])} in {bytes_text(totals['bytes'])}"),
        ("parameters", count_text(totals["parameters"])),
    ]
    if report.step is not None:
        rows.append(("step", count_text(report.step)))
    if report.optimizer is not None:
        kinds = ", ".join(f"{kind} {count}" for kind, count in report.optimizer["kinds"].items())
        rows.append(("optimizer", f"{kinds}; {bytes_text(report.optimizer['bytes'])}"))
    if report.wrappers.wrappers:
        rows.append(("wrappers", ", ".join(report.wrappers.wrappers)))
    if report.details.get("checkpoint"):
        rows.append(("checkpoint", report.details["checkpoint"]))
    rows += [("version", f"{name} {value}") for name, value in report.versions.items()]
    settings = list(report.settings.items())
    if settings:
        text = ", ".join(f"{name}={value}" for name, value in settings[:_SHOWN_SETTINGS])
        more = f", and {len(settings) - _SHOWN_SETTINGS} more" if len(settings) > _SHOWN_SETTINGS else ""
        rows.append(("settings", text + more))
    rows += [("file", f"{file['path']}: {file['format']}, {file['verdict']}") for file in report.files]
    return rows


def _write_tensors(report: Report, tensors: list[Tensor]) -> None:
    headings = ["name", "dtype", "shape", "size", *(["nan", "inf", "min", "max", "norm"] if report.stats else [])]
    if not is_live(sys.stdout):
        for tensor in tensors:
            write_text("  ".join(_cells(tensor, report, len(headings))))
        return
    from rich.box import HEAVY_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = columns()
    table = Table(box=None if width < _WIDE_COLUMNS else HEAVY_HEAD, pad_edge=False)
    for heading in headings:
        is_text = heading in ("name", "dtype", "shape")
        table.add_column(heading, overflow="fold", justify="left" if is_text else "right", no_wrap=not is_text)
    for tensor in tensors:
        table.add_row(*(Text(cell) for cell in _cells(tensor, report, len(headings))))
    Console(file=sys.stdout, width=width, no_color=not wants_colour(sys.stdout)).print(table)


def _cells(tensor: Tensor, report: Report, count: int) -> list[str]:
    name = printable(tensor.name)
    plain = report.wrappers.plain_names.get(tensor.name)
    if plain is not None:
        name += f" (plain {printable(plain)})"
    element_type = tensor.element_type.name
    if tensor.layout != "strided":
        element_type += f" {tensor.layout}"
    cells = [name, element_type, f"[{', '.join(map(str, tensor.shape))}]", bytes_text(tensor.size_bytes)]
    statistics: dict[str, Any] | None = (report.stats or {}).get(stats_key(tensor))
    if statistics is not None:
        cells += [count_text(statistics["nan"]), count_text(statistics["inf"])]
        cells += ["-" if statistics[key] is None else f"{statistics[key]:.4g}" for key in ("min", "max", "norm")]
    return cells + ["-"] * (count - len(cells))


def _write_difference(difference: Difference) -> None:
    write_text(f"compared with {printable(difference.other)}: {count_text(difference.equal)} tensors are equal")
    for name in difference.added:
        write_text(f"added: {printable(name)}")
    for name in difference.removed:
        write_text(f"removed: {printable(name)}")
    for label, entries in (("reshaped", difference.reshaped), ("retyped", difference.retyped)):
        for entry in entries:
            write_text(f"{label}: {printable(entry['name'])}: {entry['old']} -> {entry['new']}")
    for entry in difference.changed:
        largest = "unknown" if entry["largest_difference"] is None else f"{entry['largest_difference']:.6g}"
        write_text(
            f"changed: {printable(entry['name'])}: {count_text(entry['count'])} elements, first at "
            f"{entry['first_index']}, largest difference {largest}"
        )
    for entry in difference.not_compared:
        write_text(f"not compared: {printable(entry['name'])}: {printable(entry['reason'])}")


def _write_verdict(report: Report) -> None:
    reasons = report.reasons()
    for reason in reasons[:_SHOWN_REASONS]:
        write_text(f"reason: {printable(reason)}")
    if len(reasons) > _SHOWN_REASONS:
        write_text(f"and {len(reasons) - _SHOWN_REASONS} more reasons; --json has them all")
    verdict = report.verdict
    if wants_colour(sys.stdout):
        from rich.console import Console
        from rich.text import Text

        Console(file=sys.stdout).print(Text(f"verdict: {verdict}", style=f"bold {_COLOURS.get(verdict, 'red')}"))
    else:
        write_text(f"verdict: {verdict}")
