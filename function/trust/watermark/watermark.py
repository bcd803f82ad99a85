"""The imperceptible mark: written into a swapped picture, and read from any.

A mark says which key made it and a digest of the request (`keys.py`). It lies in the square of each
face (`faces.py`) and, where an operator wants that, all over the picture (`tiles.py`). Importing
this brings numpy and OpenCV.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from function.documented_enum import DocumentedEnum
from function.trust.watermark import code, faces, tiles
from function.trust.watermark.carriers import rings
from function.trust.watermark.keys import key_id, text
from function.trust.watermark.policy import plan
from function.trust.watermark.square import luma, window

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.trust.watermark.keys import WatermarkKey, WatermarkKeys
    from function.trust.watermark.policy import MarkPlan, WhichMarks
    from function.trust.watermark.reading import Found

    Pixels = NDArray[np.uint8]

_LOOKED_AT = {4, 16, 64}
"""After how many frames what they say together is decoded: seldom, as each try may err."""


class MarkPlace(DocumentedEnum):
    """Where a mark was read."""

    FACE = "face", "in a face"
    PICTURE = "picture", "all over the picture"
    CLIP = "clip", "in the faces of several frames together"


@dataclass(frozen=True, slots=True)
class WatermarkReading:
    """A mark that was read.

    Attributes:
        payload: its 48 bits; `WatermarkKey.payload` of the request that made it.
        confidence: how surely there is a mark, in standard deviations of noise.
        place: where it was.
        face: the index of that face; None where it was in no single one.
        mirrored: whether the picture is a mirror image of what was marked.
    """

    payload: int
    confidence: float
    place: MarkPlace
    face: int | None = None
    mirrored: bool = False

    @property
    def key_id(self) -> int:
        """The number of the key that it was made with; 0 is the public one."""
        return key_id(self.payload)

    @property
    def text(self) -> str:
        """The payload as the audit has it: 12 hexadecimal digits."""
        return text(self.payload)


class Watermark:
    """Marks and reads with a deployment's keys. It keeps no state, so threads may share it.

    Args:
        keys: the current key marks, all of them read.
    """

    def __init__(self, keys: WatermarkKeys) -> None:
        self._current, self._readable = keys.current, keys.readable

    def prepare(self) -> None:
        """Make what is kept, the current key's waves and the code's tables: then no swap waits."""
        window()
        rings(self._current.secret, faces.USE)
        code.encode(0)

    def mark(
        self,
        canvas: Pixels,
        targets: Sequence[Face],
        payload: int,
        which: WhichMarks,
        *,
        steady: bool = False,
    ) -> MarkPlan:
        """Mark a picture in place, as an operator wants it.

        Args:
            canvas: uint8 [H, W, 3] RGB; a gray one stays gray. Without a mark of the whole picture,
                nothing outside of the faces' boxes changes.
            targets: the swapped faces.
            payload: 48 bits, see `WatermarkKey.payload`.
            which: what the operator wants.
            steady: the picture is a frame of a clip: the same marks in each, so that a reader can
                add frames up.

        Returns:
            What was marked.
        """
        found = plan(which, [faces.size_of(face) for face in targets])
        if found.picture:
            tiles.write(canvas, self._current, payload)
        for face, marked in zip(targets, found.faces, strict=True):
            if marked:
                faces.write(canvas, face, self._current, payload, steady=steady)
        return found

    def read_faces(self, pixels: Pixels, targets: Sequence[Face]) -> list[WatermarkReading]:
        """The marks in faces, at most one for each.

        Args:
            pixels: uint8 [H, W, 3] RGB.
            targets: all faces that were found there.
        """
        gray = luma(pixels)
        found = (self._read_face(gray, face) for face in targets)
        return [reading for reading in found if reading is not None]

    def read_picture(self, pixels: Pixels) -> WatermarkReading | None:
        """The mark of a whole picture, uint8 [H, W, 3] RGB."""
        for squares in tiles.folded(luma(pixels)):
            for key, mirrored in product(self._readable, (False, True)):
                best = tiles.find(squares, key, mirrored=mirrored)
                if (payload := decoded(best, key, tiles.SURE)) is not None:
                    return WatermarkReading(payload, best.z, MarkPlace.PICTURE, mirrored=mirrored)
        return None

    def read_frames(
        self, frames: Iterable[tuple[Pixels, Sequence[Face]]]
    ) -> WatermarkReading | None:
        """The mark that the faces of a clip carry, from as many frames as it takes.

        Args:
            frames: of each, uint8 [H, W, 3] RGB and the faces in it. No more are taken than needed.
        """
        each_way = product(self._readable, (False, True))
        sums = {way: _Sum(np.zeros(code.CODED, np.float32)) for way in each_way}
        for number, (pixels, targets) in enumerate(frames, 1):
            gray = luma(pixels)
            for (key, mirrored), total in sums.items():
                for face in targets:
                    shown = faces.mirrored(gray, face.five) if mirrored else (gray, face.five)
                    best = faces.find(*shown, key, faces.NEAR)
                    total.add(best)
                    if (payload := decoded(best, key, faces.NEAR.sure)) is not None:
                        return WatermarkReading(payload, best.z, MarkPlace.CLIP, mirrored=mirrored)
            if number in _LOOKED_AT and (reading := _summed(sums)):
                return reading
        return _summed(sums)

    def _read_face(self, gray: Pixels, face: Face) -> WatermarkReading | None:
        for reach, mirrored in product((faces.NEAR, faces.FAR), (False, True)):
            shown = faces.mirrored(gray, face.five) if mirrored else (gray, face.five)
            for key in self._readable:
                found = faces.find(*shown, key, reach)
                if (payload := decoded(found, key, reach.sure)) is not None:
                    place = MarkPlace.FACE
                    return WatermarkReading(payload, found.z, place, face.index, mirrored)
        return None


def _summed(sums: dict[tuple[WatermarkKey, bool], _Sum]) -> WatermarkReading | None:
    for (key, mirrored), total in sums.items():
        if total.count > 1 and (payload := total.decoded(key)) is not None:
            return WatermarkReading(payload, total.z, MarkPlace.CLIP, mirrored=mirrored)
    return None


def decoded(found: Found, key: WatermarkKey, sure: float) -> int | None:
    """The payload of a place, if it is sure enough and names the key it was read with."""
    if found.z < sure:
        return None
    for bits in dict.fromkeys((found.bits.tobytes(), found.inner.tobytes())):
        payload = code.decode(np.frombuffer(bits, np.float32))
        if payload is not None and key_id(payload) == key.id:
            return payload
    return None


@dataclass(slots=True)
class _Sum:
    """What the frames of a clip say together.

    Attributes:
        bits: float32 [288].
        total: sum of how sure each was.
        count: how many there are.
    """

    bits: NDArray[np.float32]
    total: float = 0.0
    count: int = 0

    @property
    def z(self) -> float:
        """How sure they are on average, in standard deviations of noise."""
        return self.total / max(self.count, 1)

    def add(self, found: Found) -> None:
        """Count one more."""
        self.bits += found.bits
        self.total += found.z
        self.count += 1

    def decoded(self, key: WatermarkKey) -> int | None:
        """The payload, if it can be told."""
        payload = code.decode(self.bits)
        return payload if payload is not None and key_id(payload) == key.id else None
