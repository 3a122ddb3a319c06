from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import pytest

from tests.strata_core.audit.building import (
    archive,
    call,
    floats,
    inspected,
    name,
    program,
    table,
    tensor,
    text,
    zipped,
)

SOUND = program(table(w=tensor("0", (2, 2), (2, 1), elements=4)))
EVIL = program(call(name("posix", "system"), text("touch CANARY")))
SOUND_FILE = archive(SOUND, {"0": floats(1, 2, 3, 4)})


def patched(
    data: bytes, member: bytes, *, local: tuple[int, bytes] | None = None, central: tuple[int, bytes] | None = None
) -> bytes:
    """The archive with bytes written over at an offset of a member's local or central header."""
    changed = bytearray(data)
    central_at = data.rfind(b"PK\x01\x02", 0, data.rfind(member))
    (local_at,) = struct.unpack_from("<I", data, central_at + 42)
    for at, change in ((local_at, local), (central_at, central)):
        if change is not None:
            changed[at + change[0] : at + change[0] + len(change[1])] = change[1]
    return bytes(changed)


def test_a_sound_archive_has_no_faults(tmp_path: Path) -> None:
    report = inspected(tmp_path, SOUND_FILE)
    assert report.verdict == "ok"
    assert report.to_json()["tensors"][0]["shape"] == [2, 2]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (SOUND_FILE[:-30], "cut short"),
        (SOUND_FILE + b"tail", "4 bytes after the end"),
        (b"PK\x03\x04" + SOUND_FILE, "announced at bytes"),
        (patched(SOUND_FILE, b"data.pkl", central=(8, b"\x01\x00")), "encrypted"),
        (patched(SOUND_FILE, b"data.pkl", local=(6, b"\x20\x00")), "patched data"),
        (patched(SOUND_FILE, b"data.pkl", local=(30, b"zz")), "local header calls it"),
        (patched(SOUND_FILE, b"data.pkl", local=(8, b"\x08\x00")), "compression methods 8 and 0"),
        (patched(SOUND_FILE, b"data.pkl", central=(10, b"\x63\x00"), local=(8, b"\x63\x00")), "compression method 99"),
        (patched(SOUND_FILE, b"data/0", central=(20, struct.pack("<II", 12, 12))), "disagree about size"),
        (patched(SOUND_FILE, b"data/0", central=(38, b"\x10")), "marked as a folder"),
        (patched(SOUND_FILE, b"data/0", central=(34, b"\x01\x00")), "another disk"),
        (patched(SOUND_FILE, b"data/0", central=(42, struct.pack("<I", 0))), "overlaps"),
        (zipped({}), "zip archive without records"),
        (zipped({"archive/readme": b"x"}), "without data.pkl"),
        (zipped({"archive/data.pkl": SOUND, "other/version": b"3"}), "2 top folders"),
        (
            zipped({"archive/data.pkl": SOUND, "ARCHIVE/DATA.PKL": SOUND, "archive/version": b"3"}),
            "two records have this name",
        ),
        (zipped({"archive/data.pkl": SOUND, "archive/../x": b"", "archive/version": b"3"}), "leads out of the archive"),
        (archive(SOUND, {"0": floats(1, 2, 3)}), "has 12 bytes where 16 are due"),
        (archive(SOUND, {"0": floats(1, 2, 3, 4, 5)}), "has 20 bytes where 16 are due"),
        (archive(SOUND), "is not in the archive"),
        (archive(SOUND + b"junk", {"0": floats(1, 2, 3, 4)}), "4 bytes after the end of the pickle"),
        (SOUND_FILE.replace(floats(1, 2, 3, 4), floats(1, 2, 3, 5)), "checksum"),
    ],
)
def test_a_fault_of_the_archive_is_corrupt_and_named(data: bytes, reason: str, tmp_path: Path) -> None:
    report = inspected(tmp_path, data)
    assert report.verdict == "corrupt"
    assert any(reason in found for found in report.reasons()), report.reasons()


@pytest.mark.parametrize("member", ["config.p", "data/7", "data.pkl/x", ".data/x", "version.bak"])
def test_a_payload_in_any_other_record_is_found(member: str, tmp_path: Path) -> None:
    data = archive(SOUND, {"0": floats(1, 2, 3, 4)}, {member: EVIL})
    report = inspected(tmp_path, data)
    assert report.verdict == "unsafe"


def test_a_payload_in_a_record_that_a_tensor_uses_is_found(tmp_path: Path) -> None:
    padded = EVIL.ljust(64, b"\0")
    pickle = program(table(w=tensor("0", (16,), (1,), elements=16)))
    assert inspected(tmp_path, archive(pickle, {"0": padded})).verdict == "unsafe"


def test_a_deflated_archive_is_read(tmp_path: Path) -> None:
    members = {"archive/data.pkl": SOUND, "archive/data/0": floats(1, 2, 3, 4), "archive/version": b"3\n"}
    report = inspected(tmp_path, zipped(members, zipfile.ZIP_DEFLATED), stats=True)
    assert report.verdict == "ok"
    assert report.stats is not None
    assert report.stats["w"]["max"] == 4.0


def test_a_deflated_payload_is_found(tmp_path: Path) -> None:
    members = {"archive/data.pkl": EVIL, "archive/version": b"3\n"}
    assert inspected(tmp_path, zipped(members, zipfile.ZIP_DEFLATED)).verdict == "unsafe"


def test_a_deflate_bomb_is_not_inflated(tmp_path: Path) -> None:
    members = {"archive/data.pkl": b"\x80\x02" + b"N0" * (80 << 20), "archive/version": b"3\n"}
    report = inspected(tmp_path, zipped(members, zipfile.ZIP_DEFLATED))
    assert report.verdict == "corrupt"


def test_an_archive_written_without_checksums_is_noted(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        torch.save({"w": torch.ones(2)}, tmp_path / "x")
    finally:
        torch.serialization.set_crc32_options(before)
    report = inspected(tmp_path, (tmp_path / "x").read_bytes(), stats=True)
    assert report.verdict == "ok"
    assert "the archive was written without checksums" in report.notes


def test_large_archives_have_their_checksums_verified_with_stats_only(tmp_path: Path) -> None:
    elements = 5 << 20
    pickle = program(table(w=tensor("0", (elements,), (1,), elements=elements)))
    data = bytearray(archive(pickle, {"0": bytes(4 * elements)}))
    data[len(data) // 2] ^= 1
    assert inspected(tmp_path, bytes(data)).verdict == "ok"
    report = inspected(tmp_path, bytes(data), stats=True)
    assert report.verdict == "corrupt"
    assert "archive/data/0" in report.reasons()[0]


def test_objects_in_a_numpy_member_are_judged(tmp_path: Path) -> None:
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n"
    member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + EVIL
    assert inspected(tmp_path, zipped({"weights.npy": member})).verdict == "unsafe"
    assert inspected(tmp_path, member).verdict == "unsafe"


@pytest.mark.parametrize("member", ["code/model.py", "lib/helper.so", ".data/extern_modules", "constants.pkl"])
def test_an_archive_that_brings_code_is_unsafe(member: str, tmp_path: Path) -> None:
    report = inspected(tmp_path, archive(SOUND, {"0": floats(1, 2, 3, 4)}, {member: b"x"}))
    assert report.verdict == "unsafe"
