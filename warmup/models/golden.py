"""The golden check of a manifest: a known pair of photos and the result that it must give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warmup.failures import ManifestError
from warmup.models.manifest import parsed

if TYPE_CHECKING:
    from pathlib import Path

_FILES = ("source", "target", "image")
_NUMBERS = ("max_distance", "min_psnr")


@dataclass(frozen=True, slots=True)
class Golden:
    """What a swap of a known pair must give.

    Attributes:
        source, target: the photos.
        image: the right result, usually much smaller than the real one.
        max_distance: the identity distance of the result to the source may be this at most.
        min_psnr: how alike the result, shrunk to its size, must be to `image`: peak signal-to-noise
            ratio in dB.
    """

    source: Path
    target: Path
    image: Path
    max_distance: float
    min_psnr: float


def read(manifest: Path) -> Golden | None:
    """The table `[golden]` of a `models.toml`; relative file names count from its folder.

    Returns:
        None when the manifest has no such table.

    Raises:
        ManifestError: it cannot be read, or the table lacks a key or has one too many.
    """
    table = parsed(manifest).get("golden")
    if table is None:
        return None
    if not isinstance(table, dict) or set(table) != {*_FILES, *_NUMBERS}:
        raise ManifestError(f"{manifest}: [golden] needs exactly {', '.join(_FILES + _NUMBERS)}")
    for key in _FILES:
        if not isinstance(table[key], str) or not (manifest.parent / table[key]).is_file():
            raise ManifestError(f"{manifest}: [golden] `{key}` is no file: {table[key]!r}")
    for key in _NUMBERS:
        if not isinstance(table[key], int | float) or not table[key] > 0:
            raise ManifestError(f"{manifest}: [golden] `{key}` must be a number above 0")
    source, target, image = (manifest.parent / table[key] for key in _FILES)
    return Golden(source, target, image, *(float(table[key]) for key in _NUMBERS))
