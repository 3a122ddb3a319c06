"""`strata verify-manifest`: whether a corpus, a run or a checkpoint is what its manifest says."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata_cli.commands.attest import NO_STATEMENT, AttestOptions, write_statement
from strata_cli.commands.replay import next_command, parse_step, replay_json, replay_run, write_replay
from strata_cli.commands.training_command import training_command
from strata_cli.display.figures import bytes_text, count_text
from strata_cli.display.output import write_json, write_text
from strata_cli.display.progress import shown_progress
from strata_cli.display.streams import columns, is_live, printable, wants_colour
from strata_cli.replay_option import LAST
from strata_core.errors import UsageError, VerificationError
from strata_core.files import expand_path
from strata_core.manifest import Fault, Report, verify
from strata_core.manifest.faults import FAULT_KINDS
from strata_core.manifest.names import show_name
from strata_core.observer import Observer

if TYPE_CHECKING:
    from strata_core.attestation.verification import SignatureOutcome
    from strata_core.replay.proof import Replay

_DIGEST_DIGITS = 64
_SHOWN_DIGITS = 12


@dataclass(frozen=True)
class SignatureOptions:
    """What `--signature`, `--public-key` and `--cert-chain` say, each None where it is not given."""

    signature: str | None = None
    public_key: str | None = None
    cert_chain: str | None = None

    def check(self) -> None:
        """Refuses options that do not go together.

        Raises:
            UsageError: two kinds of trust, or trust without a signature.
        """
        if self.public_key is not None and self.cert_chain is not None:
            raise UsageError(
                "--public-key and --cert-chain exclude each other", hint="give the one that vouches for it"
            )
        if self.signature is None and (self.public_key is not None or self.cert_chain is not None):
            option = "--cert-chain" if self.public_key is None else "--public-key"
            raise UsageError(f"{option} goes with --signature FILE", hint="name the signature that it vouches for")


NO_SIGNATURE = SignatureOptions()


def verify_manifest(
    path: str,
    *,
    quick: bool,
    replay: str | None,
    json_output: bool,
    options: SignatureOptions = NO_SIGNATURE,
    attest: AttestOptions = NO_STATEMENT,
) -> int:
    """Verifies what lies at a path and prints what was found.

    Args:
        path: a run, checkpoint, corpus, manifest or list of checksums; with a signature any folder or file.
        quick: compare sizes only.
        replay: the step of a run to train up to again, "last", or None for no replay.
        options: the signature to hold it against, and whom to trust.
        attest: the statement to write where nothing is wrong; `replay` means one about the last step, if none is given.
        json_output: print one JSON object.

    Returns:
        0 when everything is as listed and comes out the same again, 4 when anything is or does not.

    Raises:
        UsageError: the path does not exist, or cannot be replayed to that step.
        DataError: there is no manifest, or it or the signature cannot be used; or the run cannot be replayed here.
    """
    if replay is None and attest.statement == "replay":
        replay = LAST
    step = parse_step(replay) if replay is not None else None
    options.check()
    attest.check(quick=quick)
    place = expand_path(path)
    with shown_progress(quiet=json_output or not is_live(sys.stderr)) as observer:
        report, signature = _verified(place, options, quick, observer)
    if not json_output:
        _write_faults(report.faults)
        signed = [_signature_line(signature)] if signature is not None else []
        write_text("\n".join([*_remarks(report), *signed, _summary(report)]))
    outcome = None
    if replay is not None:
        with shown_progress(quiet=json_output) as observer:
            outcome = replay_run(place, report, step, observer)
    is_whole = report.ok and (outcome is None or outcome.equal)
    written = write_statement(attest, place, report, outcome, signature) if is_whole else None
    if json_output:
        result = _json(report, outcome, signature, replayed=replay is not None)
        write_json(result if attest.file is None else {**result, "statement": str(written) if written else None})
    else:
        if replay is not None:
            write_replay(outcome)
        if attest.file is not None:
            write_text(printable(f"statement: {written or 'not written, since not all holds'}"))
        following = _next_command(report, signature) if outcome is None else next_command(report.path, outcome)
        write_text(f"next: {following}")
    return 0 if is_whole else VerificationError.exit_code


def _verified(
    place: Path, options: SignatureOptions, quick: bool, observer: Observer
) -> tuple[Report, SignatureOutcome | None]:
    if options.signature is None:
        return verify(place, quick=quick, observer=observer), None
    from strata_core.attestation.verification import Trust, verify_signature

    key, chain = (None if given is None else expand_path(given) for given in (options.public_key, options.cert_chain))
    return verify_signature(place, expand_path(options.signature), Trust(key, chain), quick=quick, observer=observer)


def _json(
    report: Report, outcome: Replay | None, signature: SignatureOutcome | None, *, replayed: bool
) -> dict[str, Any]:
    result = report.to_json()
    if signature is not None:
        result["signature"] = signature.to_json()
    if replayed:
        result["replay"] = replay_json(outcome)
    if outcome is not None and not outcome.equal:
        result["verdict"] = "failed"
    return result


def _write_faults(faults: Sequence[Fault]) -> None:
    """A table on a terminal; elsewhere one line a fault, nothing shortened."""
    if faults and is_live(sys.stdout):
        _write_table(faults)
        return
    for fault in faults:
        values = [f"{name} {value}" for name, value in (("expected", fault.expected), ("found", fault.found)) if value]
        shown = f" ({', '.join(values)})" if values else ""
        write_text(printable(f"{fault.kind}: {show_name(fault.path)}: {fault.what}{shown}"))


def _write_table(faults: Sequence[Fault]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("path", "what", "expected", "found"):
        table.add_column(heading, overflow="fold")
    for fault in faults:
        cells = (show_name(fault.path), fault.what, _short(fault.expected), _short(fault.found))
        table.add_row(*(Text(printable(cell)) for cell in cells))
    Console(file=sys.stdout, width=columns(), no_color=not wants_colour(sys.stdout)).print(table)


def _short(value: str) -> str:
    """The beginning of a digest, other values as they are."""
    return f"{value[:_SHOWN_DIGITS]}..." if len(value) == _DIGEST_DIGITS and value.isalnum() else value


def _remarks(report: Report) -> list[str]:
    parents = [
        f"parent: {parent.describes} {parent.digest[:_SHOWN_DIGITS]}: {parent.status}"
        + (f", {parent.path}" if parent.path is not None else "")
        for parent in report.parents
    ]
    return [printable(line) for line in [*(f"note: {note}" for note in report.notes), *parents]]


def _signature_line(signature: SignatureOutcome) -> str:
    name, digest = signature.subject
    signer = f"key {signature.signer[:_SHOWN_DIGITS]}" if signature.method == "key" else signature.signer
    verdict = f"holds, by {signer}" if signature.holds else "does not hold"
    unchecked = ", identity unchecked" if signature.identity == "unchecked" else ""
    return printable(
        f"signature: {verdict}{unchecked}: {name} {digest[:_SHOWN_DIGITS]}, {signature.files} files listed"
    )


def _summary(report: Report) -> str:
    identity = f" {report.digest[:_SHOWN_DIGITS]}" if report.digest is not None else ""
    read = "sizes only" if report.quick else f"{bytes_text(report.checked_bytes)} read"
    files = "1 file" if report.checked == 1 else f"{count_text(report.checked)} files"
    looked_at = f"{report.describes}{identity}, {files} checked, {read}"
    if report.ok:
        return printable(f"ok: {looked_at}")
    counts = ", ".join(f"{len(report.paths(kind))} {kind}" for kind in FAULT_KINDS if report.paths(kind))
    return printable(f"failed: {counts}; {looked_at}")


def _next_command(report: Report, signature: SignatureOutcome | None) -> str:
    path = shlex.quote(printable(report.path))
    if signature is not None and not signature.holds and len(report.faults) == 1:
        return "ask who signed for the key or the certificate that belongs to this signature, or for a new one"
    if not report.ok:
        return f"get what is named above from where it came from, then strata verify-manifest {path}"
    if report.quick:
        return f"strata verify-manifest {path} reads the contents too"
    if report.describes == "checkpoint":
        return f"strata inspect-ckpt {path}"
    if report.describes == "run":
        return f"strata inspect-ckpt {shlex.quote(printable(report.path.rstrip('/') + '/checkpoints/latest'))}"
    if report.describes == "corpus":
        place = Path(report.path)
        return training_command(place if place.is_dir() else place.parent)
    return "nothing more to check"
