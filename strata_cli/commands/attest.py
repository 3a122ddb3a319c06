"""The part of `strata verify-manifest --attest` that writes down what was verified, for other programs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from strata_cli.commands.replay import replay_json
from strata_cli.display.prediction_output import check_place
from strata_core.errors import UsageError
from strata_core.files import expand_path, write_file
from strata_core.manifest import Report

if TYPE_CHECKING:
    from strata_core.attestation.verification import SignatureOutcome
    from strata_core.replay.proof import Replay


@dataclass(frozen=True)
class AttestOptions:
    """What `--attest` and `--statement` say, each None where it is not given."""

    file: str | None = None
    statement: str | None = None

    def check(self, *, quick: bool) -> None:
        """Refuses options that do not go together, and a place that cannot take the statement.

        Raises:
            UsageError: a statement without a file, or about contents that are not to be read.
            PlaceTakenError: the file is there already.
        """
        if self.file is None:
            if self.statement is not None:
                raise UsageError("--statement goes with --attest FILE", hint="name the file that the statement goes to")
            return
        if quick:
            raise UsageError("--attest vouches for contents, which --quick does not read", hint="leave out --quick")
        check_place(expand_path(self.file), option="--attest")


NO_STATEMENT = AttestOptions()


def write_statement(
    options: AttestOptions, place: Path, report: Report, outcome: Replay | None, signature: SignatureOutcome | None
) -> Path | None:
    """Writes the statement that is asked for about what was verified without a fault; returns its path.

    Raises:
        StrataError: nothing can be said about what lies there; the place is taken or cannot be written.
    """
    if options.file is None:
        return None
    from strata_core.attestation.claims import provenance_statement, verification_statement
    from strata_core.attestation.lineage import described

    item = described(place)
    if options.statement == "slsa":
        data = provenance_statement(item)
    else:
        data = verification_statement(
            item,
            report,
            datetime.now(UTC),
            replay=None if outcome is None else replay_json(outcome),
            signature=None if signature is None else signature.to_json(),
        )
    target = expand_path(options.file)
    check_place(target, option="--attest")
    write_file(target, data)
    return target
