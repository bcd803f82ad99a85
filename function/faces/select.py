"""Which of the found faces a caller means.

To read a request, HTTP imports this before anything heavy is there; so what is heavy comes late.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from function.faces.face import embedding_of
from function.problems import NoFaceError, Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from function.faces.face import Face
    from function.faces.identity import Metric

NAME = "[A-Za-z0-9_-]{1,32}"
"""How a request may call a source, and a photo of a person to replace."""
_INDICES = re.compile(r"index:\s*([0-9]{1,6}(?:\s*,\s*[0-9]{1,6})*)")
_PAIR = re.compile(rf"\s*({NAME})\s*=\s*({NAME})\s*")
_INDEX = re.compile("[0-9]{1,6}")


class Way(StrEnum):
    """How faces are chosen."""

    ALL = "all"
    LARGEST = "largest"
    INDEX = "index"
    LIKE = "like"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class FacePair:
    """Who is put onto which face.

    Attributes:
        face: a place in the documented order, 0-based; or the name of a photo, for whoever looks
            like the person on it.
        source: the name of the person to put in.
    """

    face: int | str
    source: str

    @classmethod
    def parse(cls, text: str) -> FacePair:
        """Read `0=a` or `b=a`.

        Raises:
            Problem: `bad_value` for anything else.
        """
        if not (match := _PAIR.fullmatch(text)):
            raise _bad()
        face, source = match.groups()
        return cls(int(face) if _INDEX.fullmatch(face) else face, source)


@dataclass(frozen=True, slots=True)
class Selection:
    """A parsed `faces` value.

    Attributes:
        way: how faces are chosen.
        indices: for `Way.INDEX`: places in the documented order, 0-based, ascending, each once.
        pairs: for `Way.MAP`: who is put onto which face, each face once.
    """

    way: Way = Way.ALL
    indices: tuple[int, ...] = ()
    pairs: tuple[FacePair, ...] = ()

    @classmethod
    def of_pairs(cls, pairs: Sequence[FacePair]) -> Selection:
        """A source for each face.

        Raises:
            Problem: `bad_value`; a face has two.
        """
        seen: set[int | str] = set()
        for pair in pairs:
            if pair.face in seen:
                raise Problem("bad_value", f"Face {pair.face} is mapped twice.", field="faces")
            seen.add(pair.face)
        return cls(Way.MAP, pairs=tuple(pairs))

    @property
    def named(self) -> int | None:
        """How many faces that can be at most; None for all that there are."""
        counts = {Way.ALL: None, Way.INDEX: len(self.indices), Way.MAP: len(self.pairs)}
        return counts.get(self.way, 1)

    @property
    def likes(self) -> tuple[FacePair, ...]:
        """The pairs that name a photo of the person to replace; of `Way.LIKE` its name is ""."""
        if self.way is Way.LIKE:
            return (FacePair("", ""),)
        return tuple(pair for pair in self.pairs if isinstance(pair.face, str))

    @property
    def places(self) -> tuple[FacePair, ...]:
        """The pairs that name a face by its place."""
        every = (*(FacePair(place, "") for place in self.indices), *self.pairs)
        return tuple(pair for pair in every if isinstance(pair.face, int))

    def check(self, sources: Collection[str], likes: Collection[str]) -> None:
        """See that just the people are meant of whom there are photos.

        Args:
            sources: the names of the people to put in.
            likes: the names of the photos of people to replace.

        Raises:
            Problem: `bad_value`.
        """
        meant = dict.fromkeys(pair.source for pair in self.pairs)
        named = dict.fromkeys(str(pair.face) for pair in self.likes if pair.face)
        for field, there, wanted in ("sources", sources, meant), ("likes", likes, named):
            if unknown := [name for name in wanted if name not in there]:
                raise Problem(
                    "bad_value",
                    f"`faces` names `{unknown[0]}`, and `{field}` has no photo of that name.",
                    field="faces",
                    allowed=sorted(there),
                )
            if unused := [name for name in there if name not in wanted]:
                raise Problem(
                    "bad_value",
                    f"`{field}` has `{unused[0]}`, which `faces` does not use.",
                    field=field,
                )

    @classmethod
    def parse(cls, text: str) -> Selection:
        """Read `all`, `largest`, `index:0,2`, `like` or `0=a,2=b,c=a`.

        Raises:
            Problem: `bad_value` for anything else.
        """
        text = text.strip()
        if match := _INDICES.fullmatch(text):
            return cls(Way.INDEX, tuple(sorted({int(part) for part in match[1].split(",")})))
        if text in {Way.ALL, Way.LARGEST, Way.LIKE}:
            return cls(Way(text))
        if "=" in text:
            return cls.of_pairs([FacePair.parse(part) for part in text.split(",")])
        raise _bad()


def choose(
    faces: Sequence[Face],
    selection: Selection,
    references: Mapping[str, NDArray[np.float32]],
    metric: Metric,
) -> list[Face]:
    """The selected faces, in the order in which they were given, each with its `person`.

    Args:
        faces: the faces of one image, in the documented order.
        selection: what the caller asked for.
        references: the embeddings of people to replace, by name; of the one meant by `like`,
            whose name is "".
        metric: compares embeddings.

    Returns:
        At least one face. `largest` compares the areas of the detected boxes (the first of equals
        wins); a reference takes every face nearer to it than one person's, unless another one is
        nearer, or the face is named by its place.

    Raises:
        Problem: `no_face`, `no_such_face` (with all faces), `no_match` (with the distances) or
            `missing_field` (`like` without a reference).
    """
    if not faces:
        raise NoFaceError("No face was found in the image.")
    if selection.way is Way.LARGEST:
        return [largest(faces)]
    if selection.way is Way.ALL:
        return list(faces)
    return _paired(faces, selection, references, metric)


def missing(
    faces: Sequence[Face],
    selection: Selection,
    references: Mapping[str, NDArray[np.float32]],
    metric: Metric,
) -> list[str]:
    """The names of the references that none of the faces looks like; see `choose`."""
    found = [embedding_of(face) for face in faces]
    return [
        name
        for name in (str(pair.face) for pair in selection.likes)
        if all(metric.between(each, references[name]) >= metric.same_person for each in found)
    ]


def largest(faces: Sequence[Face]) -> Face:
    """The face whose detected box has the largest area; the first of equals."""
    return max(faces, key=lambda face: face.detection.box.area)


def _paired(
    faces: Sequence[Face],
    selection: Selection,
    references: Mapping[str, NDArray[np.float32]],
    metric: Metric,
) -> list[Face]:
    """The faces that are named one by one, each with its person."""
    placed = {pair.face: pair.source for pair in selection.places}
    _check_places(faces, placed)
    likes = [(str(pair.face), pair.source) for pair in selection.likes]
    if any(name not in references for name, _ in likes):
        raise Problem("missing_field", "`faces=like` needs a photo of the person.", field="like")
    chosen, distances = [], []
    for face in faces:
        if face.index in placed:
            chosen.append(_with(face, placed[face.index]))
        elif likes:
            own = embedding_of(face)
            each = [(metric.between(own, references[name]), source) for name, source in likes]
            distance, source = min(each, key=lambda pair: pair[0])
            distances.append((face, distance))
            if distance < metric.same_person:
                chosen.append(_with(face, source))
    if not chosen:
        nearest = min(distance for _, distance in distances)
        raise Problem(
            "no_match",
            f"The nearest of {len(faces)} faces is {nearest:.2f} away from the reference; "
            f"the same person is below {metric.same_person}.",
            faces=[_listed(face) | {"distance": round(d, 4)} for face, d in distances],
            threshold=metric.same_person,
        )
    return chosen


def _with(face: Face, person: str) -> Face:
    return replace(face, person=person) if person else face


def _check_places(faces: Sequence[Face], places: Collection[int | str]) -> None:
    known = {face.index for face in faces}
    if absent := [place for place in places if place not in known]:
        raise Problem(
            "no_such_face",
            f"There is no face {', '.join(map(str, absent))}; "
            f"the image has {len(faces)}, numbered from 0, left to right.",
            field="faces",
            faces=[_listed(face) for face in faces],
        )


def _listed(face: Face) -> dict[str, object]:
    """A face as a problem lists it; the box is [left, top, right, bottom] in image pixels."""
    box = face.box
    return {"index": face.index, "box": [box.left, box.top, box.right, box.bottom]}


def _bad() -> Problem:
    return Problem(
        "bad_value",
        "`faces` must be all, largest, index:0,2,…, like, or a source for each face: 0=a,2=b,…",
        field="faces",
    )
