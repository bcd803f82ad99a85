"""Contact sheets: what the judge saw, for the eye."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces import geometry
from function.faces.face import mesh_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from function.faces.face import Face

    Pixels = NDArray[np.uint8]

_SIDE, _TEXT = 200, 34
_WIDE = 1.7
"""How much is shown, in face heights."""


def upright(pixels: Pixels, face: Face, side: int = _SIDE) -> Pixels:
    """The face in the middle of a square of `side` pixels."""
    points = mesh_of(face)[:, :2]
    middle = (points.min(0) + points.max(0)) / 2
    scale = side / (_WIDE * float(np.ptp(points[:, 1])))
    shift = side / 2 - scale * middle
    matrix = np.array([[scale, 0, shift[0]], [0, scale, shift[1]]])
    return geometry.crop(pixels, matrix, (side, side), cv2.BORDER_REPLICATE)


def row(pictures: Sequence[Pixels], texts: Sequence[str]) -> Pixels:
    """Pictures side by side, with two lines of text under each (`\\n` parts them)."""
    cells = []
    for picture, text in zip(pictures, texts, strict=True):
        cell = np.full((_SIDE + _TEXT, _SIDE + 4, 3), 255, np.uint8)
        cell[:_SIDE, 2:-2] = picture
        for number, line in enumerate(text.split("\n")):
            at = 4, _SIDE + 13 + 14 * number
            cv2.putText(cell, line, at, cv2.FONT_HERSHEY_SIMPLEX, 0.37, (0, 0, 0), 1, cv2.LINE_AA)
        cells.append(cell)
    return np.concatenate(cells, 1)


def save(path: Path, rows: Sequence[Pixels]) -> None:
    """Rows below each other, as a file."""
    how = [cv2.IMWRITE_JPEG_QUALITY, 88] if path.suffix == ".jpg" else []
    cv2.imwrite(str(path), np.concatenate(rows)[..., ::-1], how)
