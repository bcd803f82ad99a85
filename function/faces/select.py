"""Which of the found faces a caller means.

To read a request, HTTP imports this before anything heavy is there; so what is heavy comes late.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from function.faces.face import embedding_of
from function.problems import NoFaceError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.identity import Metric

_INDICES = re.compile(r"index:\s*([0-9]{1,6}(?:\s*,\s*[0-9]{1,6})*)")


class Way(StrEnum):
    """How faces are chosen."""

    ALL = "all"
    LARGEST = "largest"
    INDEX = "index"
    LIKE = "like"


@dataclass(frozen=True, slots=True)
class Selection:
    """A parsed `faces` value.

    Attributes:
        way: how faces are chosen.
        indices: for `Way.INDEX`: places in the documented order, 0-based, ascending, each once.
    """

    way: Way = Way.ALL
    indices: tuple[int, ...] = ()

    @property
    def named(self) -> int | None:
        """How many faces that can be at most; None for all that there are."""
        return {Way.ALL: None, Way.INDEX: len(self.indices)}.get(self.way, 1)

    @classmethod
    def parse(cls, text: str) -> Selection:
        """Read `all`, `largest`, `index:0,2` or `like`.

        Raises:
            Problem: `bad_value` for anything else.
        """
        text = text.strip()
        if match := _INDICES.fullmatch(text):
            return cls(Way.INDEX, tuple(sorted({int(part) for part in match[1].split(",")})))
        if text in {Way.ALL, Way.LARGEST, Way.LIKE}:
            return cls(Way(text))
        raise Problem(
            "bad_value", "`faces` must be all, largest, index:0,2,… or like.", field="faces"
        )


def choose(
    faces: Sequence[Face],
    selection: Selection,
    reference: NDArray[np.float32] | None,
    metric: Metric,
) -> list[Face]:
    """The selected faces, in the order in which they were given.

    Args:
        faces: the faces of one image, in the documented order.
        selection: what the caller asked for.
        reference: the embedding of the person meant by `like`.
        metric: compares embeddings.

    Returns:
        At least one face. `largest` compares the areas of the detected boxes (the first of equals
        wins); `like` takes every face nearer to the reference than one person's.

    Raises:
        Problem: `no_face`, `no_such_face` (with all faces), `no_match` (with the distances) or
            `missing_field` (`like` without a reference).
    """
    if not faces:
        raise NoFaceError("No face was found in the image.")
    if selection.way is Way.LARGEST:
        return [largest(faces)]
    if selection.way is Way.INDEX:
        return _by_index(faces, selection.indices)
    if selection.way is Way.LIKE:
        return _like(faces, reference, metric)
    return list(faces)


def largest(faces: Sequence[Face]) -> Face:
    """The face whose detected box has the largest area; the first of equals."""
    return max(faces, key=lambda face: face.detection.box.area)


def _by_index(faces: Sequence[Face], indices: tuple[int, ...]) -> list[Face]:
    known = {face.index for face in faces}
    if missing := [index for index in indices if index not in known]:
        raise Problem(
            "no_such_face",
            f"There is no face {', '.join(map(str, missing))}; "
            f"the image has {len(faces)}, numbered from 0, left to right.",
            field="faces",
            faces=[_listed(face) for face in faces],
        )
    return [face for face in faces if face.index in indices]


def _like(
    faces: Sequence[Face], reference: NDArray[np.float32] | None, metric: Metric
) -> list[Face]:
    if reference is None:
        raise Problem("missing_field", "`faces=like` needs a photo of the person.", field="like")
    distances = [metric.between(embedding_of(face), reference) for face in faces]
    chosen = [face for face, d in zip(faces, distances, strict=True) if d < metric.same_person]
    if not chosen:
        raise Problem(
            "no_match",
            f"The nearest of {len(faces)} faces is {min(distances):.2f} away from the reference; "
            f"the same person is below {metric.same_person}.",
            faces=[
                _listed(face) | {"distance": round(d, 4)}
                for face, d in zip(faces, distances, strict=True)
            ],
            threshold=metric.same_person,
        )
    return chosen


def _listed(face: Face) -> dict[str, object]:
    """A face as a problem lists it; the box is [left, top, right, bottom] in image pixels."""
    box = face.box
    return {"index": face.index, "box": [box.left, box.top, box.right, box.bottom]}
