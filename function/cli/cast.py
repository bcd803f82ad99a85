"""Who is put onto which faces, as `ember swap` is told: sources before the target, or `--map`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from function.cli.files import PHOTO, PHOTO_OR_FOLDER, READABLE, photos_in, read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from function.faces.select import FacePair, Selection
    from function.requests import Upload

_BETWEEN = re.compile(r",(?=[^,=]+=)")
"""Commas before something and `=`: others are part of a path."""


@dataclass(frozen=True, slots=True)
class Cast:
    """Whose photos go where.

    Attributes:
        sources: photos of the people to put in.
        likes: photos of people to replace.
        faces: which faces, and who is put onto each where there are several people.
        paths: the files of all of these photos.
    """

    sources: tuple[Upload, ...]
    likes: tuple[Upload, ...]
    faces: Selection
    paths: tuple[Path, ...]


def of_one(sources: Sequence[Path], faces: str | None, like: Path | None) -> Cast:
    """One person for all faces that are meant.

    Raises:
        UsageError: the options make no sense, alone or together.
        Problem: a photo cannot be read.
    """
    from function.faces.select import Selection, Way
    from function.problems import Problem

    try:
        chosen = Selection.parse(faces or ("like" if like else "all"))
    except Problem as problem:
        raise click.BadParameter(problem.detail, param_hint="--faces") from None
    if chosen.way is Way.MAP:
        raise click.UsageError("A source for each face is given with --map.")
    if (chosen.way is Way.LIKE) != (like is not None):
        raise click.UsageError("--faces like and --like PHOTO belong together.")
    likes = [like] if like else []
    return Cast(
        tuple(_photo(path, "source") for path in sources),
        tuple(_photo(path, "reference") for path in likes),
        chosen,
        (*sources, *likes),
    )


def of_map(texts: Sequence[str]) -> Cast:
    """A source for each face, from `0=a.jpg,2=b.jpg`.

    The face is a place, or a photo of whom to replace; a source can be a folder of photos of one
    person.

    Raises:
        UsageError: it is no such map, or a file is not there.
        Problem: a photo cannot be read.
    """
    from function.faces.select import Selection
    from function.problems import Problem

    pairs = [_pair(part) for text in texts for part in _BETWEEN.split(text)]
    try:
        chosen = Selection.of_pairs(pairs)
    except Problem as problem:
        raise click.BadParameter(problem.detail, param_hint="--map") from None
    people = {name: _photos_of(Path(name)) for name in dict.fromkeys(p.source for p in pairs)}
    likes = {str(pair.face): _existing(PHOTO, str(pair.face)) for pair in chosen.likes}
    return Cast(
        tuple(_photo(path, "source", name) for name, paths in people.items() for path in paths),
        tuple(_photo(path, "reference", name) for name, path in likes.items()),
        chosen,
        (*(path for paths in people.values() for path in paths), *likes.values()),
    )


def _pair(text: str) -> FacePair:
    from function.faces.select import FacePair

    face, equals, source = (part.strip() for part in text.partition("="))
    if not (face and equals and source):
        raise click.BadParameter(
            f"{text!r} is not FACE=PHOTO, as in 0=a.jpg,2=b.jpg.", param_hint="--map"
        )
    return FacePair(int(face) if re.fullmatch("[0-9]{1,6}", face) else face, source)


def _photos_of(path: Path) -> list[Path]:
    """The photos of one person: a file, or those in a folder."""
    if not _existing(PHOTO_OR_FOLDER, str(path)).is_dir():
        return [path]
    if not (photos := photos_in(path)):
        raise click.BadParameter(f"{path} holds no photos; {READABLE}.", param_hint="--map")
    return photos


def _existing(kind: click.Path, text: str) -> Path:
    try:
        kind.convert(text, None, None)
    except click.BadParameter as error:
        raise click.BadParameter(error.message, param_hint="--map") from None
    return Path(text)


def _photo(path: Path, what: str, name: str = "") -> Upload:
    from function.requests import Upload

    return Upload(read(path), f"{what} {path.name}", name=name)
