"""What every role must do on the golden pair, both ways: neither nothing, nor the same for all.

The picture that a swap must give shows what a model did to one pair of photos. It does not show a
model that does the same to everybody: one for which all people are one, one whose points lie where
faces usually have them, a mask that covers all. So each role that is there is held to a least and a
most, on two people who are strangers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from function.faces import align, geometry
from function.faces.enhance import Enhancer
from function.faces.face import embedding_of
from function.faces.identity import turned
from function.faces.options import SwapOptions
from function.images.decode import decode
from function.runtime.sanity import WrongResultError
from function.telemetry.timings import Timings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.models import Models
    from function.faces.pipeline import Pipeline
    from function.images.picture import Picture
    from function.requests import SwapResult

LEAST_DIFFERENCE, MOST_DIFFERENCE = 0.004, 0.3
"""Between the points of two faces that are laid upon each other, as a part of their size."""
LEAST_TURN = 0.02
"""Of two people's vectors, once converted; by `turned`."""
LEAST_CHANGE, MOST_CHANGE = 0.25, 64.0
"""Of a face that is enhanced, the mean of all pixels, in levels of 255."""
MOST_SCORE = 0.5
"""Of what a gate must let pass."""
_WALL = 64, 128  # side and level of a picture without anybody
_CROP = 256


def prove(pipeline: Pipeline, target: bytes, result: SwapResult) -> None:
    """Hold each role that there is against what it must do at least, and may do at most.

    Args:
        pipeline: with the models.
        target: the photo whose faces were swapped.
        result: what came of it; its source is somebody else.

    Raises:
        WrongResultError: saying which role does what.
    """
    models = pipeline.models
    picture = decode(target, name="golden target")
    for swapped in result.faces:
        apart(swapped.before, models.identity.metric.same_person)
        if models.landmarks:
            differ(points_of(result.source), points_of(swapped.face))
    nobody(models)
    face = result.faces[0].face
    _masks(models, picture, face)
    _enhanced(models, picture, face)
    _converted(models, face)
    _gated(models, picture)


def apart(distance: float, same_person: float) -> None:
    """Check that strangers are two people to the identity model.

    Args:
        distance: of the identities of two people.
        same_person: below it they would be one.
    """
    if not distance >= same_person:
        _wrong(
            f"identity: the two people of the pair are {distance:.3f} away from each other;"
            f" below {same_person:g} they are one person"
        )


def points_of(face: Face) -> NDArray[np.float32] | None:
    """What the landmark model has found of a face, float32 [n, 2]; None if that is nothing."""
    return face.outline if face.mesh is None else face.mesh[:, :2]


def differ(one: NDArray[np.float32] | None, other: NDArray[np.float32] | None) -> None:
    """Check that the points of two people's faces are alike, as faces are, and not the same."""
    if one is None or other is None:
        _wrong("landmarks: a face has none")
        return
    found = difference(one, other)
    if not LEAST_DIFFERENCE <= found <= MOST_DIFFERENCE:
        _wrong(
            f"landmarks: the faces of the pair differ by {found:.4f} of their size; two people's do"
            f" by {LEAST_DIFFERENCE:g} to {MOST_DIFFERENCE:g}"
        )


def difference(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """How far points [n, 2] are from others, moved, turned and sized to fit them: 0 the same.

    The root of the mean square, over that of the points' own distance from their middle; so it is 1
    when they have nothing in common, and not a number when all points of one are the same.
    """
    a, b = (points[:, 0] + 1j * points[:, 1].astype(np.complex128) for points in (one, other))
    a, b = a - a.mean(), b - b.mean()
    with np.errstate(all="ignore"):
        share = abs(np.vdot(a, b)) / (np.linalg.norm(a) * np.linalg.norm(b))
        return float(np.sqrt(max(0.0, 1 - share**2))) if np.isfinite(share) else float("nan")


def nobody(models: Models) -> None:
    """Check that nobody is found where nobody is."""
    side, level = _WALL
    wall = np.full((side, side, 3), level, np.uint8)
    if faces := models.detect.glance(wall, models.fit, Timings()):
        _wrong(f"detect: {len(faces)} faces are found on a blank picture")


def masked(role: str, mask: NDArray[np.float32]) -> None:
    """Check that a mask has the face and leaves out what is around it.

    Args:
        role: of the model.
        mask: float32 [S, S], 1 for the face, of a crop with some background around the face.
    """
    side = len(mask)
    inner = mask[side * 3 // 8 : side * 5 // 8, side * 3 // 8 : side * 5 // 8].mean()
    edge = side // 16
    corners = [mask[:edge, :edge], mask[:edge, -edge:], mask[-edge:, :edge], mask[-edge:, -edge:]]
    outer = np.mean([corner.mean() for corner in corners])
    if not (inner >= 0.5 and outer <= 0.5):
        _wrong(
            f"{role}: the mask has {inner:.0%} of the middle of a face and {outer:.0%} of the"
            " corners around it; it is to have the face alone"
        )


def enhanced(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> None:
    """Check that a face was made somewhat different, and not something else."""
    change = float(cv2.absdiff(before, after).mean())
    if not LEAST_CHANGE <= change <= MOST_CHANGE:
        _wrong(
            f"enhance: a face changes by {change:.2f} levels of 255 in the mean; right is"
            f" {LEAST_CHANGE:g} to {MOST_CHANGE:g}"
        )


def converted(one: NDArray[np.float32], other: NDArray[np.float32]) -> None:
    """Check that two people's converted identities are two."""
    found = turned(one.ravel(), other.ravel())
    if not found >= LEAST_TURN:
        _wrong(f"convert: two identities become one ({found:.4f} apart; {LEAST_TURN:g} is right)")


def _masks(models: Models, picture: Picture, face: Face) -> None:
    """Run the models of masks on a face with some of what is around it."""
    matrix = align.matrix(face.five, align.FFHQ, _CROP)
    size = (_CROP, _CROP)
    for role, model in (("occlusion", models.occlusion), ("region", models.region)):
        if model:
            crop = geometry.crop(picture.pixels, matrix, size, cv2.BORDER_REPLICATE)
            masked(role, model.masks([crop])[0])


def gated(wall: float, portrait: float) -> None:
    """Check that a gate lets a blank picture and a portrait pass, and does not take them for one.

    Args:
        wall: the score of a picture without anything.
        portrait: that of the golden target.
    """
    if not (wall < MOST_SCORE and portrait < MOST_SCORE and wall != portrait):
        _wrong(
            f"gate: a blank picture has a score of {wall:.4f} and a portrait one of"
            f" {portrait:.4f}; right are two numbers below {MOST_SCORE:g}"
        )


class _Unchanged:
    """An engine that gives back what it gets."""

    provider, items = "", None

    def run(self, *inputs: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        return list(inputs)


def _enhanced(models: Models, picture: Picture, face: Face) -> None:
    """Enhance a face, and put it back as it is: the difference is what the model does."""
    if models.enhance:
        results = []
        for enhancer in (Enhancer(_Unchanged(), models.enhance.spec), models.enhance):
            canvas = picture.pixels.copy()
            enhancer.enhance(canvas, [face], SwapOptions(enhance=100), None, gray=picture.gray)
            box = face.box
            results.append(canvas[box.top : box.bottom, box.left : box.right])
        enhanced(*results)


def _converted(models: Models, face: Face) -> None:
    if models.convert:
        someone = embedding_of(face)
        both = [models.convert.run(each[None])[0] for each in (someone, np.roll(someone, 1))]
        converted(*both)


def _gated(models: Models, picture: Picture) -> None:
    if gate := models.gate:
        side, level = _WALL
        wall = np.full((side, side, 3), level, np.uint8)
        gated(gate.look(wall), gate.look(picture.pixels))


def _wrong(what: str) -> None:
    raise WrongResultError(f"golden check: {what}")
