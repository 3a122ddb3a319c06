"""Keeps freed memory with the process, so that big buffers are not faulted in anew at every step."""

from __future__ import annotations

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # <malloc.h>


def keep_freed_memory() -> bool:
    """Tells glibc's malloc to serve large blocks from the heap and to keep what is freed; no-op elsewhere.

    Returns:
        Whether both settings were taken.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_M_MMAP_MAX, 0)) and bool(mallopt(_M_TRIM_THRESHOLD, 2**31 - 1))
