from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from strata_core.memory_fit.budget import _left_by_cgroups, free_device_bytes


def group(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(f"{text}\n")


def version_2(limit: str) -> dict[str, str]:
    return {"memory.max": limit, "memory.current": "300", "memory.stat": "anon 200\ninactive_file 50"}


def membership(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "membership"
    path.write_text(text)
    return path


def test_a_group_leaves_its_limit_less_what_is_used_but_for_droppable_cache(tmp_path: Path) -> None:
    group(tmp_path / "root/job", version_2("1000"))
    assert list(_left_by_cgroups(tmp_path / "root", membership(tmp_path, "0::/job\n"))) == [1000 - 300 + 50]


def test_every_group_above_counts_and_one_without_limit_does_not(tmp_path: Path) -> None:
    group(tmp_path / "root/job", version_2("2000"))
    group(tmp_path / "root/job/step", version_2("max"))
    assert list(_left_by_cgroups(tmp_path / "root", membership(tmp_path, "0::/job/step\n"))) == [1750]


def test_a_container_that_sees_its_group_at_the_root_is_limited_by_it(tmp_path: Path) -> None:
    group(tmp_path / "root", version_2("1000"))
    assert list(_left_by_cgroups(tmp_path / "root", membership(tmp_path, "0::/elsewhere\n"))) == [750]


def test_version_1_is_read_below_its_memory_controller(tmp_path: Path) -> None:
    files = {
        "memory.limit_in_bytes": "1000",
        "memory.usage_in_bytes": "300",
        "memory.stat": "inactive_file 1\ntotal_inactive_file 50",
    }
    unlimited = {**files, "memory.limit_in_bytes": "9223372036854771712"}
    group(tmp_path / "root/memory", unlimited)
    group(tmp_path / "root/memory/job", files)
    text = "5:cpu,cpuacct:/other\n4:memory:/job\n0::/\n"
    assert list(_left_by_cgroups(tmp_path / "root", membership(tmp_path, text))) == [750]


def test_a_machine_without_groups_has_no_such_limit(tmp_path: Path) -> None:
    assert list(_left_by_cgroups(tmp_path, tmp_path / "absent")) == []


def test_the_budget_is_at_most_the_machine_and_shared_by_its_ranks() -> None:
    alone, shared = free_device_bytes("cpu"), free_device_bytes("cpu", ranks_on_host=4)
    assert 0 < alone < psutil.virtual_memory().total
    assert shared < alone / 2


@pytest.mark.skipif(sys.platform != "linux", reason="process limits are enforced on Linux only")
@pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_a_limit_on_the_process_limits_the_budget(limit: str) -> None:
    program = (
        "import resource; from strata_core.memory_fit.budget import free_device_bytes;"
        f"resource.setrlimit(resource.{limit}, (2**33, 2**33)); print(free_device_bytes('cpu'))"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert 0 < int(output) < 2**33
