import os

from strata_core.training.checkpoint import missing_bytes


def test_a_small_checkpoint_fits(tmp_path):
    assert missing_bytes(tmp_path, 1) == 0


def test_what_is_missing_is_told_for_a_folder_that_is_not_there_yet(tmp_path):
    status = os.statvfs(tmp_path)
    size_bytes = status.f_blocks * status.f_frsize
    missing = missing_bytes(tmp_path / "not" / "yet", 2 * size_bytes)
    assert size_bytes <= missing <= 2 * size_bytes
