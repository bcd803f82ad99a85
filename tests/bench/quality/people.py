"""The people whose faces are swapped: photos, paintings, and heads that nobody has."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

import cv2

from function.faces.face import mesh_of
from tests.bench.quality.body import front
from tests.bench.quality.heads import Head, render
from tests.bench.quality.trees import ROOT, read

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from tests.bench.quality.judge import Judge

    Pixels = NDArray[np.uint8]

PHOTOS = {
    "collins": "function/samples/collins.jpg",
    "hopper": "function/samples/hopper.jpg",
    **{
        name: f"tests/photos/{name}.jpg"
        for name in ("lincoln", "douglass", "tubman", "mona_lisa", "pearl_earring", "van_gogh")
    },
}

_GRAY, _BLACK = (190, 185, 180), (24, 18, 16)
HEADS = {
    "light": Head(1),
    "brown": Head(2, tone=3, age=0.1, hair=_BLACK),
    "old": Head(3, tone=0, age=0.9, hair=_GRAY, spectacles=True),
    "dark": Head(4, tone=5, beard=True, hair=_BLACK),
    "painted": Head(5, tone=2, paint=True, smile=0.8, yaw=20),
    "turned": Head(6, yaw=-38),
    "covered": Head(7, tone=2, hand=True),
    "shaded": Head(8, tone=0, light=(1.0, -0.1, -0.25), ambient=0.12),
}


def photo(name: str) -> Pixels:
    """A photo or painting of `PHOTOS`, uint8 [H, W, 3] RGB."""
    return _photo(name).copy()


@cache
def _photo(name: str) -> Pixels:
    return read(ROOT / PHOTOS[name])


@dataclass(frozen=True)
class Studio:
    """Makes pictures of heads, each once.

    Args:
        judge: finds the mesh that all have been made of.
        folder: where pictures are kept.
    """

    judge: Judge
    folder: Path = field(default=ROOT / "build" / "quality" / "heads")

    @cached_property
    def _base(self) -> NDArray[np.floating]:
        return front(mesh_of(self.judge.face(photo("hopper"))))

    @cached_property
    def _recipe(self) -> bytes:
        code = [ROOT / "tests" / "bench" / "quality" / f"{n}.py" for n in ("body", "skin", "heads")]
        return b"".join(path.read_bytes() for path in code)

    def picture(self, head: Head, **changed: object) -> Pixels:
        """A head, or the same one with some attributes changed; uint8 [size, size, 3] RGB."""
        head = replace(head, **changed)  # type: ignore[arg-type]
        name = sha256(self._recipe + repr(head).encode()).hexdigest()[:24]
        path = self.folder / f"{name}.png"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(path), render(head, self._base)[..., ::-1])
        return read(path)
