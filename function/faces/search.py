"""Finding every face of a photo, whatever its size, crop, light and orientation.

The detector finds faces of about 20 to 600 pixels that are roughly upright, in a view of at most
640 × 640. Most photos need one pass. The rest of this module is about the others: which further
passes to make, and when to stop.

| pass         | what the network sees                   | taken when                     | runs |
|--------------|-----------------------------------------|--------------------------------|------|
| `plain`      | the whole photo                         | always                         | 1    |
| `padded`     | half its size around a small copy of it | nothing found yet              | 1    |
| `enlarged`   | a small photo at up to 4 times its size | nothing found yet              | 1    |
| `rotated-…`  | the photo turned clockwise by degrees   | nothing found yet; or the one  | ≤ 3  |
|              |                                         | by which most found faces lie  |      |
| `tiles-1184` | a larger photo, shrunk to that long     | nothing found yet, or what was | ≤ 4  |
| `tiles-2272` | side and cut into overlapping tiles     | found is small or hints at more| ≤ 16 |

So an ordinary photo costs one run of the detector, and the worst photo 26. A small face next to a
large one is missed only where the larger view shows not even a hint of it (a score of 0.2, which
most faces of 14 pixels reach): searching every photo in full detail would cost 20 runs, mostly to
find strangers in the background.
"""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from function.faces.detect import View
from function.faces.face import Box, Detection, Fitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from function.faces.detect import Detector
    from function.telemetry.timings import Timings

    Fit = Callable[[NDArray[np.uint8], Detection], Fitted]

_SIDE, _OVERLAP = 640, 96
_PADDED = 224  # side of a padded view: without its surroundings a face is best seen small
_TILED = (1184, 2272)  # two and four tiles of 640 in a row, with their overlaps
_LEAST_SIDE = 8  # of a photo; there is no face in fewer pixels
_WORTH_IT = 1.25  # least gain in scale for another pass

# The least score and presence of a face. The landmark model hardly errs about what is a face, so
# it may confirm what the detector only suspects.
_SCORE, _PRESENCE = 0.5, 0.5
_WEAK_SCORE, _WEAK_PRESENCE = 0.3, 0.9
_MOST_FITS = 100  # confirmations for one photo, and so its faces: the best of each pass first
_MOST_WEAK = 8  # of them for mere suspicions, at each pass

# Signs of smaller faces: half of the faces this small, or a hint; sizes in network pixels.
_SMALL, _SMALL_IN_LARGE = 40, 64
_LARGE = 2048  # long side of a photo in which a face three times smaller is still worth finding
_HINT_SCORE, _HINT_SIZE = 0.2, 24


class Search:
    """Finds faces.

    Args:
        detector: finds faces in one view.
    """

    def __init__(self, detector: Detector) -> None:
        self._detector = detector

    def faces(
        self,
        pixels: NDArray[np.uint8],
        fit: Fit,
        timings: Timings,
        *,
        quick: bool = False,
        most: int | None = None,
    ) -> list[Fitted]:
        """Every face, confirmed by the landmark model, in the documented order.

        Args:
            pixels: uint8 [H, W, 3] RGB.
            fit: `FaceMesh.fit` or the like, or `unconfirmed`; called about once for each face.
            timings: gets a span `detect` for each pass and `landmarks` for each fit.
            quick: search no tiles, in which small faces are found.
            most: the search ends as soon as more faces than these are found; None for never.

        Returns:
            Left to right by the centre of the detected box, then top to bottom, then the higher
            score.
        """
        if min(pixels.shape[:2]) < _LEAST_SIDE:
            return []
        results = _Results(self._detector, pixels, fit, timings, most=most)
        for view in _whole_views(pixels):
            results.search([view])
            if results.found:
                break
        turn = results.turn()
        if turn and results.found[0].detection.found_by != (name := f"rotated-{90 * turn}"):
            results.search([_whole(pixels, name, turn=turn)])
        for tiles in _tilings(pixels, turn):
            if quick or results.enough or not results.expects_more():
                break
            results.search(tiles)
        return sorted(results.found, key=lambda fitted: _place(fitted.detection))

    def glance(self, pixels: NDArray[np.uint8], fit: Fit, timings: Timings) -> list[Fitted]:
        """The faces that one pass over the whole picture finds, for frames of a clip."""
        if min(pixels.shape[:2]) < _LEAST_SIDE:
            return []
        results = _Results(self._detector, pixels, fit, timings)
        results.search([_whole(pixels, "plain")])
        return sorted(results.found, key=lambda fitted: _place(fitted.detection))


def unconfirmed(_: NDArray[np.uint8], detection: Detection) -> Fitted:
    """The detector's own points, where there is no landmark model; its score is the presence."""
    return Fitted(detection, detection.points, max(detection.score, _PRESENCE))


class _Results:
    """The faces found in one photo so far.

    Attributes:
        found: the faces, in the order in which they were found.
    """

    def __init__(
        self,
        detector: Detector,
        pixels: NDArray[np.uint8],
        fit: Fit,
        timings: Timings,
        *,
        most: int | None = None,
    ) -> None:
        self._detector, self._pixels, self._fit, self._timings = detector, pixels, fit, timings
        self._scale = 1.0
        self._hints = False
        self._fits_left, self._most = _MOST_FITS, most
        self.found: list[Fitted] = []

    def search(self, views: list[View]) -> None:
        """Search views of one scale, and add the faces that are new."""
        self._scale, self._hints = max(views[0].scale), False
        with self._timings.span("detect"):
            seen = [
                detection
                for view in views
                for detection in self._detector.detect(self._pixels, view, _HINT_SCORE)
            ]
        seen.sort(key=lambda detection: -detection.score)
        weak_left = _MOST_WEAK
        for detection in seen:
            if any(_overlap(detection.box, other.detection.box) for other in self.found):
                continue
            weak = detection.score < _SCORE
            if detection.score < _WEAK_SCORE or (weak and not weak_left):
                self._hints |= self._size(detection) < _HINT_SIZE
                continue
            weak_left -= weak
            self._confirm(detection, _WEAK_PRESENCE if weak else _PRESENCE)

    def _confirm(self, detection: Detection, least: float) -> None:
        """Add a face if the landmark model sees one there that is not known yet."""
        if not self._fits_left or self.enough:
            return
        self._fits_left -= 1
        with self._timings.span("landmarks"):
            fitted = self._fit(self._pixels, detection)
        if fitted.presence >= least and not any(_coincide(fitted, other) for other in self.found):
            self.found.append(fitted)

    @property
    def enough(self) -> bool:
        """Whether more faces have been found than are wanted."""
        return self._most is not None and len(self.found) > self._most

    def turn(self) -> int:
        """Quarter turns clockwise after which most of the faces are upright."""
        turns = Counter(_upright(fitted.five) for fitted in self.found)
        return turns.most_common(1)[0][0] if turns else 0

    def expects_more(self) -> bool:
        """Whether larger views may well show more faces."""
        sizes = [self._size(fitted.detection) for fitted in self.found]
        small = _SMALL_IN_LARGE if max(self._pixels.shape[:2]) > _LARGE else _SMALL
        return self._hints or not sizes or median(sizes) < small

    def _size(self, detection: Detection) -> float:
        """The longer side of a face in pixels of the network in the last pass."""
        return max(detection.box.width, detection.box.height) * self._scale


def _whole_views(pixels: NDArray[np.uint8]) -> Iterator[View]:
    """The whole photo in several ways, in the order in which they are tried."""
    height, width = pixels.shape[:2]
    long_side = max(height, width)
    yield _whole(pixels, "plain")
    yield _whole(pixels, "padded", border=long_side // 2, side=_PADDED)
    if long_side * _WORTH_IT < _SIDE:
        yield _whole(pixels, "enlarged", most=4.0)
    for turn in (1, 3, 2):
        yield _whole(pixels, f"rotated-{90 * turn}", turn=turn)


def _whole(
    pixels: NDArray[np.uint8],
    name: str,
    *,
    border: int = 0,
    turn: int = 0,
    most: float = 1.0,
    side: int = _SIDE,
) -> View:
    """The whole photo and a border in so many pixels, enlarged at most so many times."""
    height, width = pixels.shape[:2]
    window = -border, -border, width + border, height + border
    sides = width + 2 * border, height + 2 * border
    scale = min(most, side / max(sides))
    return View(name, window, _scaled(sides, scale), turn)


def _tilings(pixels: NDArray[np.uint8], turn: int) -> Iterator[list[View]]:
    """Overlapping tiles of a photo, at larger and larger scales."""
    height, width = pixels.shape[:2]
    before, long_side = _SIDE, max(height, width)
    for side in (min(side, long_side) for side in _TILED):
        if side < before * _WORTH_IT:
            return
        before = side
        scale = side / long_side
        windows = [
            (left, top, right, bottom)
            for top, bottom in _spans(height, scale)
            for left, right in _spans(width, scale)
        ]
        size = _scaled((windows[0][2], windows[0][3]), scale)
        yield [View(f"tiles-{side}", window, size, turn) for window in windows]


def _spans(side: int, scale: float) -> list[tuple[int, int]]:
    """Equal overlapping stretches of a side, each at most 640 pixels long when scaled."""
    count = max(1, -int(-(side * scale - _OVERLAP) // (_SIDE - _OVERLAP)))
    length = min(side, round((side + (count - 1) * _OVERLAP / scale) / count))
    starts = [round(i * (side - length) / max(count - 1, 1)) for i in range(count)]
    return [(start, start + length) for start in starts]


def _scaled(sides: tuple[int, int], scale: float) -> tuple[int, int]:
    return max(1, round(sides[0] * scale)), max(1, round(sides[1] * scale))


def _upright(five: NDArray[np.float32]) -> int:
    """Quarter turns clockwise that bring a face closest to upright."""
    across = five[1] - five[0]
    return round(-float(np.arctan2(across[1], across[0])) / (np.pi / 2)) % 4


def _overlap(a: Box, b: Box) -> bool:
    """Whether two boxes are of one face: half of the smaller one lies in the other."""
    width = min(a.right, b.right) - max(a.left, b.left)
    height = min(a.bottom, b.bottom) - max(a.top, b.top)
    return min(width, height) > 0 and width * height > 0.5 * min(a.area, b.area)


def _coincide(a: Fitted, b: Fitted) -> bool:
    """Whether two are of one face: their middles are nearer than half of the smaller one."""
    one, other = (each.five if each.outline is None else each.outline for each in (a, b))
    size = min(float(np.ptp(points, axis=0).max()) for points in (one, other))
    return float(np.linalg.norm(one.mean(0) - other.mean(0))) < size / 2


def _place(detection: Detection) -> tuple[float, float, float]:
    """The documented order."""
    return (*detection.box.center, -detection.score)
