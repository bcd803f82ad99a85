"""Where each face is from frame to frame: faces are found now and then, and followed in between.

Finding faces costs ten times what following one does. A face is followed by one run of the mesh
model around its last points. Faces are searched for again at a scene cut, when one is lost, and
every third of a second, which finds who has come in. Other landmark models do not show that a face
is gone; with those, faces are found in every frame.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from function.faces.face import Box, Detection, Face, Fitted
from function.faces.landmarks import FaceMesh, five_of
from function.video import motion
from function.video.smooth import Smooth

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from function.faces.identity import Metric
    from function.faces.pipeline import Pipeline
    from function.images.picture import Picture
    from function.telemetry.timings import Timings

_EVERY_S = 1 / 3
"""How often faces are searched for, at least every frame and at most every tenth."""
_LEAST_EVERY, _MOST_EVERY = 1, 10
_CLOSELY = 6
"""Every so often not at a glance but with all ways to see a face, except tile by tile."""
_PRESENCE = 0.999
"""Of a face that is still there: the landmark model is far surer of what it is centred on."""
_GROWTH = 1.5
"""A face cannot become larger or smaller by this from frame to frame; what does is lost."""
_REMEMBERED_S = 1.0
"""A face that comes back to its place in this time is the same person."""
_SAMPLES = 5
"""Frames of which somebody's identity is the mean; after that it is known."""
_THUMB = (32, 18)
_CUT = 28.0
"""Mean difference of two thumbnails, in levels, above which it is a cut, not motion."""
_MARGIN = 0.06
"""By this part of its size a face's box reaches over its points."""
_FIVE = 5
_SETTLING = 3
"""Runs of the mesh model by which a face just found comes to where following it would take it."""


@dataclass(frozen=True, slots=True)
class TargetPerson:
    """Somebody to swap: float32 [n], the identity, and who is put in; see `Face.person`."""

    identity: NDArray[np.float32]
    person: str = ""


@dataclass(frozen=True, slots=True)
class Targets:
    """The people to swap.

    Attributes:
        people: those who are meant; None means everybody.
    """

    people: tuple[TargetPerson, ...] | None = None

    def who(self, identity: NDArray[np.float32], metric: Metric) -> str | None:
        """Who is put in for somebody: for the nearest of them; None for whom nobody is."""
        if self.people is None:
            return ""
        each = [(metric.between(identity, known.identity), known.person) for known in self.people]
        near = [pair for pair in each if pair[0] < metric.same_person]
        return min(near, key=lambda pair: pair[0])[1] if near else None


@dataclass(slots=True)
class Track:
    """One face over many frames.

    Attributes:
        points: float32 [n, 2 or 3], where it was at last, in pixels: its mesh, else its five points
            and its outline.
        smooth: the same without the tremble.
        look: uint8 [128, 128], what the picture showed there; see `motion.look`.
        identity: float32 [n], the mean of what was asked so far; None where it was not computed.
        samples: of how many frames that is the mean.
        person: who is put in, see `Face.person`; None where it is not swapped.
        lost: when it was seen last, in seconds; None while it is seen.
    """

    points: NDArray[np.float32]
    smooth: Smooth
    look: NDArray[np.uint8]
    identity: NDArray[np.float32] | None = None
    samples: int = 0
    person: str | None = ""
    lost: float | None = None

    def move(self, points: NDArray[np.float32], pixels: NDArray[np.uint8], at: float) -> None:
        """Go where it is in the next frame."""
        self.points = points
        self.smooth.follow(points, at, motion.carried(self.look, pixels, self.smooth.points))
        self.look = motion.look(pixels, self.smooth.points)


class Tracker:
    """Follows faces through the frames of one clip, which must come in order.

    Args:
        pipeline: has the models.
        targets: the people to swap.
        rate: frames per second, about.
        quick: whether to search less closely at the beginning of a scene.
    """

    def __init__(
        self, pipeline: Pipeline, targets: Targets, rate: float, *, quick: bool = False
    ) -> None:
        self._pipeline, self._models = pipeline, pipeline.models
        self._targets, self._quick = targets, quick
        landmarks = self._models.landmarks
        self._fit = self._models.fit
        self._mesh = landmarks if isinstance(landmarks, FaceMesh) else None
        every = round(rate * _EVERY_S) if self._mesh else _LEAST_EVERY
        self._every = int(np.clip(every, _LEAST_EVERY, _MOST_EVERY))
        self._since = self._glances = 0
        self._thumb: NDArray[np.uint8] | None = None
        self._tracks: list[Track] = []

    def follow(self, picture: Picture, at: float, timings: Timings) -> list[Face]:
        """The wanted faces of the next frame, from left to right.

        Args:
            picture: the frame.
            at: its time in seconds, later than that of the one before.
            timings: gets spans of `detect`, `landmarks` and `identity`.
        """
        thumb = cv2.resize(picture.pixels, _THUMB, interpolation=cv2.INTER_AREA)
        cut = self._thumb is None or float(np.mean(cv2.absdiff(thumb, self._thumb))) > _CUT
        self._thumb = np.asarray(thumb, np.uint8)
        if cut:
            self._tracks.clear()
        self._tracks = [
            each for each in self._tracks if each.lost is None or each.lost > at - _REMEMBERED_S
        ]
        lost = self._mesh is not None and self._move(self._mesh, picture.pixels, at, timings)
        self._since += 1
        if cut or lost or self._since >= self._every:
            self._find(picture, at, timings, cut=cut)
            self._since = 0
        seen = [(each, each.person) for each in self._seen if each.person is not None]
        seen.sort(key=lambda pair: float(pair[0].smooth.points[:, 0].mean()))
        return [
            replace(
                self._pipeline.face(k, _fitted(track.smooth.points), picture.size), person=person
            )
            for k, (track, person) in enumerate(seen)
        ]

    def state(self) -> dict[str, Any]:
        """All that the next frame depends on, as plain values; see `resume`."""
        return {
            "since": self._since,
            "glances": self._glances,
            "thumb": None if self._thumb is None else self._thumb.tolist(),
            "tracks": [
                {
                    "points": track.points.tolist(),
                    "smooth": track.smooth.points.tolist(),
                    "speed": track.smooth.speed.tolist(),
                    "at": track.smooth.at,
                    "look": track.look.tolist(),
                    "identity": None if track.identity is None else track.identity.tolist(),
                    "samples": track.samples,
                    "person": track.person,
                    "lost": track.lost,
                }
                for track in self._tracks
            ],
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on where another tracker was when its `state` was taken."""
        self._since, self._glances = state["since"], state["glances"]
        thumb = state["thumb"]
        self._thumb = None if thumb is None else np.array(thumb, np.uint8)
        self._tracks = [
            Track(
                points=_floats(saved["points"]),
                smooth=Smooth(_floats(saved["smooth"]), saved["at"], _floats(saved["speed"])),
                look=np.array(saved["look"], np.uint8),
                identity=None if saved["identity"] is None else _floats(saved["identity"]),
                samples=saved["samples"],
                person=saved["person"],
                lost=saved["lost"],
            )
            for saved in state["tracks"]
        ]

    @property
    def _seen(self) -> list[Track]:
        return [track for track in self._tracks if track.lost is None]

    def _move(self, mesh: FaceMesh, pixels: NDArray[np.uint8], at: float, timings: Timings) -> bool:
        """Take every face that is seen to its new place; whether one is lost."""
        lost = False
        for track in self._seen:
            with timings.span("landmarks"):
                points, presence = mesh.follow(pixels, track.points)
            others = (each for each in self._seen if each is not track)
            if (
                presence < _PRESENCE
                or not 1 / _GROWTH < _size(points) / _size(track.points) < _GROWTH
                or any(_coincide(points, other.points) for other in others)
                or not _inside(points, pixels.shape)
            ):
                track.lost, lost = at, True
            else:
                track.move(points, pixels, at)
        return lost

    def _find(self, picture: Picture, at: float, timings: Timings, *, cut: bool) -> None:
        """Search for faces that are not followed yet, and identify the others."""
        followed = self._seen if self._mesh else []

        def fit(pixels: NDArray[np.uint8], detection: Detection) -> Fitted:
            known = (each.points for each in followed if _holds(detection.box, each.points))
            points = next(known, None)
            return self._fit(pixels, detection) if points is None else _fitted(points)

        search, closely = self._models.detect, cut or self._glances >= _CLOSELY
        if closely:
            found = search.faces(picture.pixels, fit, timings, quick=self._quick or not cut)
        else:
            found = search.glance(picture.pixels, fit, timings)
        self._glances = 0 if closely else self._glances + 1
        new = [_points(fitted) for fitted in found]
        new = [each for each in new if not any(_coincide(each, old.points) for old in followed)]
        if not self._mesh:
            new = self._meet(new, picture.pixels, at)
        for points in new:
            self._welcome(points, picture.pixels, at)
        if self._targets.people is not None:
            self._identify(picture, timings)

    def _meet(
        self, found: list[NDArray[np.float32]], pixels: NDArray[np.uint8], at: float
    ) -> list[NDArray[np.float32]]:
        """Take every face that is seen to where it was found again; the rest of what was found."""
        for track in self._seen:
            here = next((k for k, each in enumerate(found) if _coincide(each, track.points)), None)
            if here is None:
                track.lost = at
            else:
                track.move(found.pop(here), pixels, at)
        return found

    def _welcome(self, points: NDArray[np.float32], pixels: NDArray[np.uint8], at: float) -> None:
        """Follow a face from now on; it may be one that was lost."""
        if self._mesh:
            for _ in range(_SETTLING):
                points, _presence = self._mesh.follow(pixels, points)
        smooth, look = Smooth(points.copy(), at), motion.look(pixels, points)
        for track in self._tracks:
            if track.lost is not None and _coincide(points, track.points):
                track.points, track.smooth, track.look, track.lost = points, smooth, look, None
                return
        person = "" if self._targets.people is None else None
        self._tracks.append(Track(points, smooth, look, person=person))

    def _identify(self, picture: Picture, timings: Timings) -> None:
        """Identify the faces of which that is not sure yet."""
        unsure = [track for track in self._seen if track.samples < _SAMPLES]
        if not unsure:
            return
        model, size = self._models.identity, picture.size
        faces = [self._pipeline.face(0, _fitted(track.points), size) for track in unsure]
        with timings.span("identity"):
            found = model.embed(picture.pixels, faces)
        for track, identity in zip(unsure, found, strict=True):
            mean = identity if track.identity is None else track.identity
            track.samples += 1
            track.identity = np.asarray(mean + (identity - mean) / track.samples, np.float32)
            track.person = self._targets.who(track.identity, model.metric)


def _points(fitted: Fitted) -> NDArray[np.float32]:
    """What is followed of a face; see `Track.points`."""
    if fitted.mesh is not None:
        return fitted.mesh
    outline = fitted.five[:0] if fitted.outline is None else fitted.outline
    return np.concatenate([fitted.five, outline]).astype(np.float32)


def _fitted(points: NDArray[np.float32]) -> Fitted:
    """The face of which only these points are known; the reverse of `_points`."""
    points = points.copy()
    flat = points[:, :2]
    low, high = flat.min(0), flat.max(0)
    margin = _MARGIN * float((high - low).max())
    box = Box(*(low - margin).tolist(), *(high + margin).tolist())
    if points.shape[1] == 3:
        five, mesh, outline = five_of(points), points, flat
    else:
        five, mesh, outline = flat[:_FIVE], None, flat[_FIVE:]
    return Fitted(
        Detection(box, five, 1.0, "track"), five, 1.0, mesh, outline if len(outline) else None
    )


def _holds(box: Box, points: NDArray[np.float32]) -> bool:
    """Whether the middle of a face lies in a box of about its size."""
    x, y = points[:, :2].mean(0)
    return bool(box.left < x < box.right and box.top < y < box.bottom) and (
        0.5 < max(box.width, box.height) / _size(points) < 2.0
    )


def _coincide(a: NDArray[np.float32], b: NDArray[np.float32]) -> bool:
    """Whether two are of one face: their middles are nearer than half of the smaller one."""
    return float(np.linalg.norm(a[:, :2].mean(0) - b[:, :2].mean(0))) < min(_size(a), _size(b)) / 2


def _inside(points: NDArray[np.float32], shape: Sequence[int]) -> bool:
    """Whether the middle of a face is in the picture."""
    x, y = points[:, :2].mean(0)
    return bool(0 <= x < shape[1] and 0 <= y < shape[0])


def _size(points: NDArray[np.float32]) -> float:
    """The long side of a face in pixels."""
    return max(float(np.ptp(points[:, :2], 0).max()), 1.0)


def _floats(values: list[Any]) -> NDArray[np.float32]:
    return np.array(values, np.float32)
