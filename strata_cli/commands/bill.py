"""The part of `strata inspect-ckpt --bom` that writes a bill of materials."""

from __future__ import annotations

from pathlib import Path

from strata_cli.display.prediction_output import check_place
from strata_core.files import write_file


def write_bill(place: Path, target: Path) -> None:
    """Writes the bill of a strata run or checkpoint.

    Raises:
        DataError: it has no manifest that can be used.
        UsageError: it is neither a run nor a checkpoint.
        PlaceTakenError: the file appeared meanwhile.
        StorageError: the file system refused.
    """
    from strata_core.attestation.bill_of_materials import bill_of_materials
    from strata_core.attestation.lineage import described

    data = bill_of_materials(described(place))
    check_place(target, option="--bom")
    write_file(target, data)
