"""How much work a target is, for its price and for the answer that it cannot wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.images import kinds, size
from function.images.frames import frames
from function.problems import Problem
from function.video.decoder import decoder

if TYPE_CHECKING:
    from function.images.kinds import Kind

_FRAME = 4
"""So many frames are as much work as a photo: faces are followed in them, not found."""


def pixels(data: bytes, kind: Kind | None) -> int | None:
    """Pixels of a photo, or of all frames of a clip; None where that cannot be told."""
    if kind is None:
        return size.pixels(data)
    if kind.still:
        return frames(data).total
    try:
        with decoder():
            from function.video.reader import pixels
        return pixels(data, kind)
    except Problem:
        return None  # whoever does the work says what is wrong


def worth(data: bytes) -> int:
    """Pixels of a photo that would be as much work; at least 1."""
    kind = kinds.clip(data)
    found = pixels(data, kind) or 1
    return found if kind is None else -(-found // _FRAME)
