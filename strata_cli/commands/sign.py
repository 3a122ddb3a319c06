"""`strata sign`: a signature over a folder or a file, for those who do not have strata too."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from strata_cli.display.figures import bytes_text, count_text
from strata_cli.display.output import write_json, write_text
from strata_cli.display.prediction_output import check_place
from strata_cli.display.progress import shown_progress
from strata_cli.display.streams import is_live, printable
from strata_core.attestation.signing import Signed, sign
from strata_core.files import expand_path, write_file

_SHOWN_DIGITS = 12


def sign_path(path: str, *, key: str, certificates: str | None, out: str | None, json_output: bool) -> int:
    """Signs what lies at a path and writes the bundle.

    Args:
        path: a folder or a file.
        key: the private key's file.
        certificates: the file of the signer's certificate and those above it.
        out: the bundle to make; None: NAME.sig in the working directory.
        json_output: print one JSON object.

    Returns:
        0.

    Raises:
        StrataError: as `strata_core.attestation.signing.sign`; the place of the bundle is taken or cannot be written.
    """
    place = expand_path(path)
    target = Path(f"{Path(os.path.realpath(place)).name or 'model'}.sig") if out is None else expand_path(out)
    check_place(target)
    with shown_progress(quiet=json_output or not is_live(sys.stderr)) as observer:
        signed = sign(
            place,
            key=expand_path(key),
            certificates=None if certificates is None else expand_path(certificates),
            out=target,
            observer=observer,
        )
    check_place(target)
    write_file(target, signed.data)
    if json_output:
        write_json(_json(signed, target))
    else:
        write_text("\n".join(_lines(signed, place, target)))
    return 0


def _json(signed: Signed, target: Path) -> dict[str, object]:
    return {
        "signature": str(target),
        "subject": {"name": signed.name, "sha256": signed.digest},
        "files": signed.files,
        "bytes": signed.size,
        "method": signed.method,
        "signer": signed.signer,
        "curve": signed.curve,
        "ignored": list(signed.ignored),
    }


def _lines(signed: Signed, place: Path, target: Path) -> list[str]:
    files = "1 file" if signed.files == 1 else f"{count_text(signed.files)} files"
    signer = signed.signer if signed.method == "certificate" else f"key {signed.signer[:_SHOWN_DIGITS]}"
    lines = [
        f"signed: {signed.name} {signed.digest[:_SHOWN_DIGITS]}, {files}, {bytes_text(signed.size)}, by {signer}"
        f" ({signed.curve}), in {target}"
    ]
    folder = os.path.realpath(place)
    if os.path.isdir(folder) and os.path.realpath(target).startswith(f"{folder}{os.sep}"):
        lines.append("note: it lies in what it signs; verify-manifest without --signature calls it an extra file")
    trust = "--public-key PUBLIC.pem" if signed.method == "key" else "--cert-chain ROOT.pem"
    shown_place, shown_target = (shlex.quote(printable(str(item))) for item in (place, target))
    lines.append(f"next: strata verify-manifest {shown_place} --signature {shown_target} {trust}")
    return [printable(line) for line in lines]
