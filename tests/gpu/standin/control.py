"""What a test tells the stand-in, and asks of it, in the process where it is the driver."""

from __future__ import annotations

import ctypes
from functools import cache


@cache
def library():
    found = ctypes.CDLL("libcuda.so.1")
    found.standin_log.restype = ctypes.c_char_p
    found.standin_room.argtypes = [ctypes.c_size_t]
    return found


def fail(call, code, *, number=1, forever=False):
    """Let one call fail with an error of CUDA: that of a number from now on; then all, for ever."""
    library().standin_fail(call.encode(), number, code, int(forever))


def mend():
    """Let nothing fail any more, as no real GPU does."""
    library().standin_mend()


def room(size):
    """How many bytes of memory the GPUs have, all together."""
    library().standin_room(size)


def log():
    """The calls so far, and after "!" what was wrong with them."""
    return library().standin_log().decode().splitlines()


def calls():
    """The names of the calls so far."""
    return [line.split()[0] for line in log() if line.startswith("cu")]


def wrong():
    """What was done that a real driver would punish."""
    return [line for line in log() if line.startswith("!")]


def held():
    """What was not given back."""
    numbers = (ctypes.c_size_t * 4)()
    library().standin_held(numbers)
    return dict(zip(("device", "host", "streams", "contexts"), numbers, strict=True))
