"""Which marks a picture gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.documented_enum import DocumentedEnum

if TYPE_CHECKING:
    from collections.abc import Sequence

RELIABLE = 192
"""A face this long (the longer side of its detection, in pixels) keeps its mark on usual ways."""
LEAST = 96
"""A smaller face is not marked: nothing would be left to read."""


class WhichMarks(DocumentedEnum):
    """Where the imperceptible mark goes."""

    OFF = "off", "no mark"
    FACES = "faces", "into swapped faces; every pixel outside of them stays as it was"
    SMALL = "small", "into swapped faces, and into the whole picture where one of them is small"
    ALWAYS = "always", "into swapped faces and into the whole picture"


@dataclass(frozen=True, slots=True)
class MarkPlan:
    """Which marks one picture gets.

    Attributes:
        faces: for each face whether it is marked.
        picture: whether the whole picture is.
    """

    faces: tuple[bool, ...]
    picture: bool


def plan(which: WhichMarks, sizes: Sequence[float]) -> MarkPlan:
    """Decide which marks a picture gets.

    Args:
        which: what the operator wants.
        sizes: the longer side of each swapped face's detection, in pixels.
    """
    faces = tuple(which is not WhichMarks.OFF and size >= LEAST for size in sizes)
    small = any(size < RELIABLE for size in sizes)
    picture = which is WhichMarks.ALWAYS or (which is WhichMarks.SMALL and small)
    return MarkPlan(faces, picture and bool(sizes))
