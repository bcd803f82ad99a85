"""One frame of a video as a picture, and what was changed in the picture back in the frame.

Only the boxes of faces go through RGB and back: everything else stays as it was decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from av.video.frame import VideoFrame

from function.images.picture import Picture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from av.video.plane import VideoPlane
    from numpy.typing import NDArray

    from function.faces.face import Box
    from function.video.facts import VideoFacts

FORMAT = "yuv420p"
"""How frames are written: what every player can show."""


class EditableFrame:
    """One frame that is decoded and not yet encoded.

    Args:
        frame: as it was decoded.
        facts: of the video.

    Attributes:
        picture: upright, in RGB.
        frame: what is going to be encoded.
        at: when it is shown, in seconds.
    """

    def __init__(self, frame: VideoFrame, facts: VideoFacts) -> None:
        self._facts = facts
        self._turns, self._mirrored = facts.turned
        colour = {
            "src_colorspace": facts.colour.matrix,
            "src_color_range": 1 + facts.colour.full,
        }
        rgb = frame.reformat(*facts.size, format="rgb24", dst_color_range=2, **colour)
        self.frame = frame
        if frame.format.name not in {FORMAT, "yuvj420p"} or (
            facts.size != (frame.width, frame.height)
        ):
            self.frame = frame.reformat(
                *facts.size,
                format=FORMAT,
                dst_colorspace=facts.colour.matrix,
                dst_color_range=1 + facts.colour.full,
                **colour,
            )
            self.frame.pts, self.frame.time_base = frame.pts, frame.time_base
            self.frame.duration = frame.duration
        pixels = np.rot90(rgb.to_ndarray(), self._turns)
        pixels = pixels[:, ::-1] if self._mirrored else pixels
        self.picture = Picture(np.ascontiguousarray(pixels), format="video")
        self.at = float((frame.pts or 0) * facts.time_base)

    def put(self, canvas: NDArray[np.uint8], boxes: Sequence[Box]) -> None:
        """Copy what was changed into the frame.

        Args:
            canvas: uint8 [H, W, 3] RGB, of the size of the picture.
            boxes: where it differs from the picture.
        """
        if not boxes:
            return
        self.frame.make_writable()  # the decoder still reads what it has given
        coded = np.rot90(canvas[:, ::-1] if self._mirrored else canvas, -self._turns)
        for box in boxes:
            left, top, right, bottom = self._coded(box)
            part = VideoFrame.from_ndarray(
                np.ascontiguousarray(coded[top:bottom, left:right]), format="rgb24"
            )
            part = part.reformat(
                format=FORMAT,
                dst_colorspace=self._facts.colour.matrix,
                src_color_range=2,
                dst_color_range=1 + self._facts.colour.full,
            )
            for k, (new, old) in enumerate(zip(part.planes, self.frame.planes, strict=True)):
                half = int(k > 0)
                rows = slice(top >> half, bottom >> half)
                columns = slice(left >> half, right >> half)
                _rows(old)[rows, columns] = _rows(new)[:, : (right - left) >> half]

    def _coded(self, box: Box) -> tuple[int, int, int, int]:
        """The box in the coded frame, grown to even numbers."""
        width, height = self.picture.size
        left, top, right, bottom = (
            int(each) for each in (box.left, box.top, box.right, box.bottom)
        )
        if self._mirrored:
            left, right = width - right, width - left
        for _ in range(self._turns):
            left, top, right, bottom = height - bottom, left, height - top, right
            width, height = height, width
        return left & ~1, top & ~1, min(right + 1 & ~1, width), min(bottom + 1 & ~1, height)


def _rows(plane: VideoPlane) -> NDArray[np.uint8]:
    """A plane as an array, uint8 [height, width with padding]."""
    whole = np.frombuffer(memoryview(plane), np.uint8)
    return whole.reshape(-1, plane.line_size)[: plane.height]
