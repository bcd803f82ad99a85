"""Reading and writing photos: files, folders, and - for standard input and output."""

from __future__ import annotations

import difflib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from function.cli.failure import Failure
from function.exits import Exit
from function.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

STANDARD = Path("-")
"""Stands for standard input or standard output."""


class PhotoPath(click.Path):
    """A photo that exists, or - ; what is not there is refused with what was probably meant."""

    name = "photo"

    def __init__(self, *, folder: bool = False) -> None:
        super().__init__(exists=True, dir_okay=folder, allow_dash=True, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, once it is known that something is there."""
        path = Path(value)
        if path != STANDARD and not path.exists():
            self.fail(_absent(path), param, ctx)
        if path.is_dir() and not self.dir_okay:
            inside = next(iter(photos_in(path)), path / "photo.jpg")
            self.fail(f"{path} is a folder; name one photo, such as {inside}.", param, ctx)
        return super().convert(value, param, ctx)


PHOTO = PhotoPath()
PHOTO_OR_FOLDER = PhotoPath(folder=True)
OUTPUT = click.Path(allow_dash=True, path_type=Path)

SUFFIXES = {".jpg": "jpeg", ".jpeg": "jpeg", ".png": "png", ".webp": "webp", ".avif": "avif"}
"""What Ember writes: the format for each file name ending; the first of a format is its usual."""

_READ_TOO = {".heic", ".heif", ".gif", ".tif", ".tiff", ".bmp"}


READABLE = f"these are files that end in {', '.join(sorted(SUFFIXES.keys() | _READ_TOO))}"
"""Which files of a folder are its photos."""


def read(path: Path) -> bytes:
    """The bytes of a photo's file or of standard input.

    Raises:
        Problem: `bad_image`, when it cannot be read.
    """
    if path == STANDARD:
        return sys.stdin.buffer.read()
    try:
        return path.read_bytes()
    except OSError as error:
        hint = f"See with `ls -l {path}` who may read it."
        raise Problem("bad_image", f"{path} cannot be read: {error.strerror}.", hint=hint) from None


def write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, or write to standard output.

    Raises:
        Failure: it cannot be written.
    """
    if path == STANDARD:
        sys.stdout.buffer.write(data)
        return
    path = path.resolve()  # so that a link stays a link
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)  # a device such as /dev/null must not be replaced by a file
            return
        partial = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            partial.write_bytes(data)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(path, error) from None


def make_folder(path: Path) -> None:
    """Make a folder and those above it, unless they exist.

    Raises:
        Failure: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error) from None


def photos_in(folder: Path) -> list[Path]:
    """The photos of a folder, by name; hidden files and folders inside are left out."""
    suffixes = SUFFIXES.keys() | _READ_TOO
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in suffixes and path.is_file() and not path.name.startswith(".")
    )


def format_of(path: Path) -> str | None:
    """The format that a file name asks for; None when it has no ending.

    Raises:
        UsageError: the ending is of no format that Ember writes.
    """
    suffix = path.suffix.lower()
    if suffix and suffix not in SUFFIXES:
        raise click.UsageError(f"Ember writes {', '.join(SUFFIXES)}, not {suffix}.")
    return SUFFIXES.get(suffix)


def named_after(target: Path, format_: str) -> str:
    """The name of a result: the target's own, with the ending that its format needs."""
    if SUFFIXES.get(target.suffix.lower(), target.suffix.lower()[1:]) == format_:
        return target.name
    usual = next(suffix for suffix, written in SUFFIXES.items() if written == format_)
    return target.with_suffix(usual).name


def protect(out: Path, inputs: Iterable[Path]) -> None:
    """Refuse to write over what is read.

    Raises:
        UsageError: `out` is one of the inputs, also by another name or link.
    """
    if out.exists() and any(path.exists() and out.samefile(path) for path in inputs):
        raise click.UsageError(f"{out} is read from; write the result elsewhere.")


def unwritable(path: Path, error: OSError) -> Failure:
    """What to raise where a file cannot be written."""
    missing = next((each for each in reversed(path.parents) if not each.exists()), None)
    again = f" Make the folder first: mkdir -p {path.parent}" if missing else ""
    return Failure(f"{path} cannot be written: {error.strerror}.{again}", Exit.CANNOT_WRITE)


def _absent(path: Path) -> str:
    """What to say of a path at which there is nothing."""
    folder = path.absolute().parent
    if not folder.is_dir():
        return f"{path} does not exist, nor does the folder {folder}."
    near = difflib.get_close_matches(path.name, [each.name for each in folder.iterdir()], 1, 0.7)
    if near:
        return f"{path} does not exist; did you mean {path.with_name(near[0])}?"
    return f"{path} does not exist; there is nothing of this name in {folder}."
