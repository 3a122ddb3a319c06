"""The allocator's settings, in a process of their own: they last as long as it does."""

import platform
import subprocess
import sys

import pytest

from strata_core.training import allocator

PROGRAM = """
import resource
import torch
from strata_core.training.allocator import keep_freed_memory

def faults_of_a_buffer_half_as_big_as_the_one_freed_before():
    torch.empty(2**24).fill_(1.0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.empty(2**23).fill_(1.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

default = faults_of_a_buffer_half_as_big_as_the_one_freed_before()
taken = keep_freed_memory()
print(taken, default, faults_of_a_buffer_half_as_big_as_the_one_freed_before())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")
def test_a_buffer_is_put_where_a_freed_one_was_without_new_page_faults():
    finished = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    taken, default, kept = finished.stdout.split()
    assert taken == "True"
    assert int(default) > 100
    assert int(kept) < 10


def test_other_systems_are_left_alone(monkeypatch):
    monkeypatch.setattr(allocator.sys, "platform", "darwin")
    assert allocator.keep_freed_memory() is False
