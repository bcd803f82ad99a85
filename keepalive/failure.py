"""What ends a command: words for people, and an exit code for programs."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """How a command of this package ended, after BSD's sysexits; `docs/errors.md` lists them."""

    BAD_INPUT = 65
    UNAVAILABLE = 69
    CANNOT_WRITE = 74
    AGAIN = 75
    WRONG = 76
    FORBIDDEN = 77
    CONFIG = 78


class Failure(Exception):
    """A command cannot do what it is for: words for people, and an exit code for programs."""

    def __init__(self, message: str, exit_code: Exit) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def bring(extra: str) -> str:
    """What to do to have an extra, e.g. "k8s"; Ember is on no index, so its name would not do."""
    return (
        f"make install EXTRAS={extra} in a checkout, elsewhere pip install 'WHEEL[{extra}]' with"
        " Ember's wheel"
    )
