"""A label that people see: that a face was changed, in a corner of a photo or of a clip's frames.

The letters are light on a dark plate or dark on a light one, whichever is nearer to what is below.
The plate lets some of that through, but never so much that letters could not be read: white on the
dark plate has a contrast of 8.5:1 over pure white, black on the light one 9.9:1 over pure black
(WCAG 2.2 wants 4.5:1, and 7:1 for its highest level: success criteria 1.4.3 and 1.4.6).

Sizes follow from the shortest side, of which GB 45438-2025 wants letters to have 5 % at least.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from function.faces.face import Box
from function.trust.marking import label_layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.trust.marking.label_choice import Label

_OPACITY = 0.7  # of the plate


class Tone(Enum):
    """How a label is coloured: the grey of its plate, and that of its letters."""

    DARK = 0, 255
    LIGHT = 255, 0


def draw(
    canvas: NDArray[np.uint8],
    label: Label,
    alpha: NDArray[np.uint8] | None = None,
    tone: Tone | None = None,
) -> Box:
    """Draw a label into a picture, in its place.

    Args:
        canvas: uint8 [H, W, 3] RGB.
        label: what is drawn.
        alpha: uint8 [H, W], the canvas's opacity, which is whole where the label is; None for none.
        tone: how it is coloured; None for what is nearer to the picture. All frames of a clip have
            to have the same one, so that it does not flicker.

    Returns:
        Where something may have changed, within the picture.
    """
    height, width = canvas.shape[:2]
    place = _place(label, width, height)
    below = canvas[place.rows, place.columns]
    kept, added = _mixing(label, width, height, tone or nearer(below))
    for channel in range(3):  # numpy takes three times as long for all at once
        mixed = below[..., channel] * kept
        mixed += added
        mixed >>= 8
        below[..., channel] = mixed
    if alpha is not None:
        seen = alpha[place.rows, place.columns]
        np.maximum(seen, place.plate, out=seen)
    return Box(place.columns.start, place.rows.start, place.columns.stop, place.rows.stop)


def nearer(below: NDArray[np.uint8]) -> Tone:
    """The tone that is nearer to some pixels, uint8 [H, W, 3] RGB."""
    return Tone.DARK if float(below.mean()) < 128 else Tone.LIGHT


@dataclass(frozen=True, slots=True)
class _Place:
    """A label in pictures of one size.

    Attributes:
        rows, columns: where it is.
        plate: uint8 [h, w], how much of each pixel the plate covers, 255 for all of it.
        letters: uint8 [h, w], how much letters do.
    """

    rows: slice
    columns: slice
    plate: NDArray[np.uint8]
    letters: NDArray[np.uint8]


@lru_cache(maxsize=4)
def _place(label: Label, width: int, height: int) -> _Place:
    """The label in pictures of this size, which frames of a clip and photos of a camera share."""
    layout = label_layout.lay_out(label.text, label.font, width, height)
    rows, columns = layout.plate.shape
    return _Place(
        _along(height, rows, layout.margin, first=label.corner.startswith("top")),
        _along(width, columns, layout.margin, first=label.corner.endswith("left")),
        layout.plate,
        layout.letters,
    )


@lru_cache(maxsize=4)
def _mixing(
    label: Label, width: int, height: int, tone: Tone
) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """With what the pixels below are multiplied and what is added: uint16 [h, w], 256 times."""
    place = _place(label, width, height)
    ground, ink = tone.value
    covered = place.plate.astype(np.float32) * (_OPACITY / 255)
    bare = 1 - place.letters.astype(np.float32) * (1 / 255)
    added = covered * bare * ground + (1 - bare) * ink
    return _fixed((1 - covered) * bare * 256), _fixed(added * 256 + 127)  # a half, for rounding


def _along(whole: int, length: int, margin: int, *, first: bool) -> slice:
    """Where something is along a side of the picture."""
    begin = margin if first else whole - margin - length
    return slice(begin, begin + length)


def _fixed(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    return np.rint(values).astype(np.uint16)
