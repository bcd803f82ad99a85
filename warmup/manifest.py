"""The manifest: which models a replica needs, and how to know that a file is the right one."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class ManifestError(Exception):
    """The manifest or a file that it names is not usable; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Model:
    """One entry of the manifest.

    Attributes:
        role: the stage that it serves: "detect", "landmarks", "identity", ….
        family: which code knows its inputs and outputs.
        path: the .onnx file.
        size: bytes.
        sha256: hexadecimal digest.
        licence: SPDX expression.
        preload: whether it is loaded at start, not when it is first needed.
    """

    role: str
    family: str
    path: Path
    size: int
    sha256: str
    licence: str
    preload: bool = True

    def verify(self) -> None:
        """Check size and digest, so that no damaged file reaches a runtime.

        Raises:
            ManifestError: naming the file, what was expected and what was found.
        """
        try:
            size = self.path.stat().st_size
            if size != self.size:
                raise ManifestError(f"{self.path}: expected {self.size} bytes, found {size}")
            with self.path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise ManifestError(f"{self.path}: {error.strerror}") from error
        if digest != self.sha256:
            raise ManifestError(f"{self.path}: expected sha256 {self.sha256}, found {digest}")


def read(path: Path) -> tuple[Model, ...]:
    """Read `models.toml`; relative file names count from its folder.

    Raises:
        ManifestError: when it cannot be read, or an entry lacks a key or has one too many.
    """
    try:
        entries = tomllib.loads(path.read_text()).get("model", [])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ManifestError(f"{path}: {error}") from error
    if not entries or not isinstance(entries, list) or not isinstance(entries[0], dict):
        raise ManifestError(f"{path}: has no [[model]] entry")
    return tuple(_model(entry, path) for entry in entries)


def _model(entry: dict[str, object], manifest: Path) -> Model:
    wanted = {"role": str, "family": str, "file": str, "size": int, "sha256": str, "licence": str}
    for key, kind in wanted.items():
        if not isinstance(entry.get(key), kind):
            raise ManifestError(f"{manifest}: a [[model]] needs `{key}` ({kind.__name__}): {entry}")
    preload = entry.get("preload", True)
    if not isinstance(preload, bool):
        raise ManifestError(f"{manifest}: `preload` must be true or false: {entry}")
    if unknown := entry.keys() - wanted.keys() - {"preload"}:
        raise ManifestError(f"{manifest}: unknown keys in [[model]]: {', '.join(sorted(unknown))}")
    file = str(entry["file"])
    return Model(
        role=str(entry["role"]),
        family=str(entry["family"]),
        path=manifest.parent / file,
        size=int(str(entry["size"])),
        sha256=str(entry["sha256"]),
        licence=str(entry["licence"]),
        preload=preload,
    )
