"""Reading a load from CSV: lines of `seconds,load`, each from then on until the next."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Unreadable(Exception):
    """A file is not what it should be; the text says which line and why."""

    exit_code = 65


def read(path: Path) -> list[tuple[float, float]]:
    """The steps of a file, by time; a first line of names and lines after `#` are left out.

    Raises:
        Unreadable: it is missing, has no step, or a line is not as it should be.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise Unreadable(f"{path} cannot be read: {reason}.") from None
    steps: list[tuple[float, float]] = []
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        if not text or (not steps and text[0].isalpha() and text[:3] not in {"nan", "inf"}):
            continue
        try:
            steps.append(_step(text))
        except ValueError:
            raise Unreadable(
                f"{path}, line {number}: {text!r} is not two numbers from 0, as in 60,12.5."
            ) from None
    if not steps:
        raise Unreadable(f"{path} has no line such as 60,12.5: seconds and the load from then on.")
    for (before, _), (after, _) in pairwise(steps):
        if after <= before:
            raise Unreadable(f"{path}: {after:g} s comes after {before:g} s; sort it by time.")
    return steps


def _step(text: str) -> tuple[float, float]:
    at, load = (float(cell) for cell in text.split(","))
    if not (0 <= at < math.inf and 0 <= load < math.inf):
        raise ValueError
    return at, load
