"""What a large photo has used is returned to the system when it is freed."""

from __future__ import annotations

import subprocess
import sys

PROBE = """
import ctypes, sys
from function.runtime import heap
from function.runtime.memory import resident
if sys.argv[1] == "settled":
    heap.settle()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
libc.malloc.argtypes = [ctypes.c_size_t]
SIZE = 24 * 1024**2  # glibc raises its threshold up to 32 MiB
libc.free(libc.malloc(SIZE))  # from now on glibc would take such blocks from its heap
block, top = libc.malloc(SIZE), libc.malloc(100_000)
ctypes.memset(block, 1, SIZE)
before = resident()
libc.free(block)
print(before - resident())
"""


def returned(how: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, how], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def test_a_large_block_is_returned_when_it_is_freed():
    assert returned("settled") > 20e6


def test_without_that_it_would_be_kept():
    assert returned("plain") < 4e6
