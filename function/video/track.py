"""Who is where from frame to frame: faces are found now and then, and followed in between.

Finding faces costs ten times what following one does. A face is followed by one run of the landmark
model around its last points. Faces are looked for again at a scene cut, when one is lost, and every
third of a second, which finds who has come in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from function.faces import pose
from function.faces.face import Box, Detection, Face
from function.faces.identity import SAME_PERSON, distance
from function.video.smooth import Smooth

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from function.faces.models import Models
    from function.images.picture import Picture
    from function.trace import Trace

_EVERY_S = 1 / 3
"""How often faces are looked for, at least every frame and at most every tenth."""
_LEAST_EVERY, _MOST_EVERY = 1, 10
_CLOSELY = 6
"""Every so often not at a glance but with all ways to see a face, except tile by tile."""
_PRESENCE = 0.999
"""Of a face that is still there: the landmark model is far surer of what it is centred on."""
_GROWTH = 1.5
"""A face cannot become larger or smaller by this from frame to frame; what does is lost."""
_REMEMBERED_S = 1.0
"""A face that comes back to its place in this time is the same person."""
_LOOKS = 5
"""So often it is asked who somebody is; after that it is known."""
_THUMB = (32, 18)
_CUT = 28.0
"""Mean difference of two thumbnails, in levels, that tells a cut from motion."""
_MARGIN = 0.06
"""By this part of its size a face's box reaches over its mesh."""
# Mesh indices: corners of the two eyes, tip of the nose, corners of the mouth.
_EYES, _NOSE, _MOUTH = ([33, 133], [362, 263]), 4, (61, 291)


@dataclass(frozen=True, slots=True)
class Cast:
    """Whose faces are swapped.

    Attributes:
        people: float32 [128] each, the identities that are meant; None means everybody.
    """

    people: tuple[NDArray[np.float32], ...] | None = None

    def has(self, identity: NDArray[np.float32]) -> bool:
        """Whether somebody is among them."""
        return self.people is None or any(
            distance(identity, person) < SAME_PERSON for person in self.people
        )


@dataclass(slots=True)
class Track:
    """One face over many frames.

    Attributes:
        mesh: float32 [468, 3], where it was at last, in pixels.
        smooth: the same without the tremble.
        identity: float32 [128], the mean of what was asked so far; None where nobody asked.
        looks: how often that was.
        wanted: whether it is swapped.
        lost: when it was seen last, in seconds; None while it is seen.
    """

    mesh: NDArray[np.float32]
    smooth: Smooth
    identity: NDArray[np.float32] | None = None
    looks: int = 0
    wanted: bool = True
    lost: float | None = None


class Tracker:
    """Follows faces through the frames of one clip, which must come in order.

    Args:
        models: detect, landmarks and identity.
        cast: whose faces are wanted.
        rate: frames per second, about.
        quick: whether to look less closely at the beginning of a scene.
    """

    def __init__(self, models: Models, cast: Cast, rate: float, *, quick: bool = False) -> None:
        self._models, self._cast, self._quick = models, cast, quick
        self._every = int(np.clip(round(rate * _EVERY_S), _LEAST_EVERY, _MOST_EVERY))
        self._since = self._glances = 0
        self._thumb: NDArray[np.uint8] | None = None
        self._tracks: list[Track] = []

    def follow(self, picture: Picture, at: float, trace: Trace) -> list[Face]:
        """The wanted faces of the next frame, from left to right.

        Args:
            picture: the frame.
            at: its time in seconds, later than that of the one before.
            trace: gets spans of `detect`, `landmarks` and `identity`.
        """
        thumb = cv2.resize(picture.pixels, _THUMB, interpolation=cv2.INTER_AREA)
        cut = self._thumb is None or float(np.mean(cv2.absdiff(thumb, self._thumb))) > _CUT
        self._thumb = np.asarray(thumb, np.uint8)
        if cut:
            self._tracks.clear()
        lost = self._move(picture.pixels, at, trace)
        self._since += 1
        if cut or lost or self._since >= self._every:
            self._find(picture.pixels, at, trace, cut=cut)
            self._since = 0
        faces = [track for track in self._tracks if track.wanted and track.lost is None]
        faces.sort(key=lambda track: float(track.smooth.points[:, 0].mean()))
        return [_face(k, track.smooth.points, picture.size) for k, track in enumerate(faces)]

    def state(self) -> dict[str, Any]:
        """All that the next frame depends on, as plain values; see `resume`."""
        return {
            "since": self._since,
            "glances": self._glances,
            "thumb": None if self._thumb is None else self._thumb.tolist(),
            "tracks": [
                {
                    "mesh": track.mesh.tolist(),
                    "points": track.smooth.points.tolist(),
                    "speed": track.smooth.speed.tolist(),
                    "at": track.smooth.at,
                    "identity": None if track.identity is None else track.identity.tolist(),
                    "looks": track.looks,
                    "wanted": track.wanted,
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
                mesh=_floats(told["mesh"]),
                smooth=Smooth(_floats(told["points"]), told["at"], _floats(told["speed"])),
                identity=None if told["identity"] is None else _floats(told["identity"]),
                looks=told["looks"],
                wanted=told["wanted"],
                lost=told["lost"],
            )
            for told in state["tracks"]
        ]

    def _move(self, pixels: NDArray[np.uint8], at: float, trace: Trace) -> bool:
        """Take every face that is seen to its new place; whether one is lost."""
        lost = False
        for track in self._tracks:
            if track.lost is not None:
                continue
            with trace.span("landmarks"):
                mesh, presence = self._models.landmarks.follow(pixels, track.mesh)
            others = (each for each in self._tracks if each is not track and each.lost is None)
            if (
                presence < _PRESENCE
                or not 1 / _GROWTH < _size(mesh) / _size(track.mesh) < _GROWTH
                or any(_coincide(mesh, other.mesh) for other in others)
                or not _inside(mesh, pixels.shape)
            ):
                track.lost, lost = at, True
            else:
                track.mesh = mesh
                track.smooth.follow(mesh, at)
        kept = (
            each for each in self._tracks if each.lost is None or at - each.lost < _REMEMBERED_S
        )
        self._tracks = list(kept)
        return lost

    def _find(self, pixels: NDArray[np.uint8], at: float, trace: Trace, *, cut: bool) -> None:
        """Look for faces that are not followed, and ask who the others are."""
        seen = [track.mesh for track in self._tracks if track.lost is None]

        def fit(
            pixels: NDArray[np.uint8], detection: Detection
        ) -> tuple[NDArray[np.float32], float]:
            known = next((mesh for mesh in seen if _holds(detection.box, mesh)), None)
            return (
                (known, 1.0) if known is not None else self._models.landmarks.fit(pixels, detection)
            )

        search, closely = self._models.detect, cut or self._glances >= _CLOSELY
        if closely:
            found = search.faces(pixels, fit, trace, quick=self._quick or not cut)
        else:
            found = search.glance(pixels, fit, trace)
        self._glances = 0 if closely else self._glances + 1
        for fitted in found:
            if not any(_coincide(fitted.mesh, mesh) for mesh in seen):
                self._welcome(fitted.mesh, at)
        if self._cast.people is not None:
            self._ask(pixels, trace)

    def _welcome(self, mesh: NDArray[np.float32], at: float) -> None:
        """Follow a face from now on; it may be one that was lost."""
        smooth = Smooth(mesh.copy(), at)
        for track in self._tracks:
            if track.lost is not None and _coincide(mesh, track.mesh):
                track.mesh, track.smooth, track.lost = mesh, smooth, None
                return
        self._tracks.append(Track(mesh, smooth, wanted=self._cast.people is None))

    def _ask(self, pixels: NDArray[np.uint8], trace: Trace) -> None:
        """Ask who the faces are of which that is not sure yet."""
        unsure = [each for each in self._tracks if each.lost is None and each.looks < _LOOKS]
        with trace.span("identity"):
            told = self._models.identity.embed_all(pixels, [track.mesh for track in unsure])
        for track, identity in zip(unsure, told, strict=True):
            mean = identity if track.identity is None else track.identity
            track.looks += 1
            track.identity = np.asarray(mean + (identity - mean) / track.looks, np.float32)
            track.wanted = self._cast.has(track.identity)


def _face(index: int, mesh: NDArray[np.float32], size: tuple[int, int]) -> Face:
    """A face as the swappers want it, all of it from the smoothed points."""
    low, high = mesh[:, :2].min(0), mesh[:, :2].max(0)
    margin = _MARGIN * float((high - low).max())
    low, high = np.floor(low - margin), np.ceil(high + margin)
    box = Box(*np.clip((*low, *high), 0, (*size, *size)).astype(int).tolist())
    eyes = [mesh[corners, :2].mean(0) for corners in _EYES]
    five = np.stack([*eyes, mesh[_NOSE, :2], *(mesh[corner, :2] for corner in _MOUTH)])
    detection = Detection(Box(*low.tolist(), *high.tolist()), five.astype(np.float32), 1.0, "track")
    return Face(index, box, detection, mesh.copy(), 1.0, pose.estimate(mesh))


def _holds(box: Box, mesh: NDArray[np.float32]) -> bool:
    """Whether the middle of a mesh lies in a box of about its size."""
    x, y = mesh[:, :2].mean(0)
    return bool(box.left < x < box.right and box.top < y < box.bottom) and (
        0.5 < max(box.width, box.height) / _size(mesh) < 2.0
    )


def _coincide(a: NDArray[np.float32], b: NDArray[np.float32]) -> bool:
    """Whether two meshes are of one face: their middles are nearer than half of the smaller one."""
    return float(np.linalg.norm(a[:, :2].mean(0) - b[:, :2].mean(0))) < min(_size(a), _size(b)) / 2


def _inside(mesh: NDArray[np.float32], shape: Sequence[int]) -> bool:
    """Whether the middle of a face is in the picture."""
    x, y = mesh[:, :2].mean(0)
    return bool(0 <= x < shape[1] and 0 <= y < shape[0])


def _size(mesh: NDArray[np.float32]) -> float:
    """The long side of a face in pixels."""
    return max(float(np.ptp(mesh[:, :2], 0).max()), 1.0)


def _floats(values: list[Any]) -> NDArray[np.float32]:
    return np.array(values, np.float32)
