import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_gpu_benchmark_says_what_it_needs_where_there_is_no_gpu():
    result = subprocess.run(
        [sys.executable, "benchmarks/gpu.py"],
        cwd=ROOT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert "CUDA" in result.stderr and "Traceback" not in result.stderr
