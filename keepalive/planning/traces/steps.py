"""Reading a load from CSV: lines of `seconds,load`, each from then on until the next."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from keepalive.failure import Exit, Failure

if TYPE_CHECKING:
    from pathlib import Path

_MOST_SECONDS = 366 * 86_400
_MOST_LOAD = 1e7
_SHOWN = 60


class UnreadableTrace(Failure):
    """A file is not what it should be; the text says which line and why."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.BAD_INPUT)


def read(path: Path) -> list[tuple[float, float]]:
    """The steps of a file, by time; a first line of names and lines after `#` are left out.

    Raises:
        UnreadableTrace: it is missing, has no step, or a line is not as it should be.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UnreadableTrace(f"{path} cannot be read: {reason}.") from None
    steps: list[tuple[float, float]] = []
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        if not text or (not steps and text[0].isalpha() and text[:3] not in {"nan", "inf"}):
            continue
        try:
            steps.append(_step(text))
        except ValueError:
            raise UnreadableTrace(
                f"{path}, line {number}: {text[:_SHOWN]!r} is not two numbers from 0, as in"
                f" 60,12.5: at most {_MOST_SECONDS} seconds, a load of {_MOST_LOAD:.0f}."
            ) from None
    if not steps:
        raise UnreadableTrace(
            f"{path} has no line such as 60,12.5: seconds and the load from then on."
        )
    for (before, _), (after, _) in pairwise(steps):
        if after <= before:
            raise UnreadableTrace(f"{path}: {after:g} s comes after {before:g} s; sort it by time.")
    return steps


def _step(text: str) -> tuple[float, float]:
    at, load = (float(cell) for cell in text.split(","))
    if not (0 <= at <= _MOST_SECONDS and 0 <= load <= _MOST_LOAD):
        raise ValueError
    return at, load
