"""How much work a target is, for its price and for the answer that it cannot wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.images import size
from function.images.frames import frames
from function.video.decoder import decoder

if TYPE_CHECKING:
    from function.images.kinds import FileKind

_FRAME = 4
"""So many frames are as much work as a photo: faces are followed in them, not found."""


def pixels(data: bytes, kind: FileKind | None) -> int | None:
    """Pixels of a photo, or of all frames of a clip; None where no decoder can read it.

    Raises:
        Problem: `bad_clip`, or what is missing to read it.
    """
    if kind is None:
        return size.pixels(data)
    if kind.still:
        return frames(data).total
    with decoder():
        from function.video.facts import pixels
    return pixels(data, kind)


def worth(data: bytes, kind: FileKind | None) -> int | None:
    """Pixels of a photo that would be as much work; None where no decoder can read it.

    Args:
        data: the file.
        kind: what clip it is; None for a photo.

    Raises:
        Problem: as `pixels`.
    """
    found = pixels(data, kind)
    return found if kind is None or found is None else -(-found // _FRAME)
