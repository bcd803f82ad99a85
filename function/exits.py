"""The exit codes of every Ember command, after BSD's sysexits."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """How a process ended; 0 is success and 2 a command that was called wrongly."""

    BAD_INPUT = 65
    UNAVAILABLE = 69
    INTERNAL = 70
    CANNOT_WRITE = 74
    AGAIN = 75
    CONFIG = 78
    INTERRUPTED = 130
