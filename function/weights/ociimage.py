"""A manifest and its files as an OCI image, which nodes pull once and pods mount.

The image is a folder in the layout that container tools read (`oci:FOLDER`). It has one layer for
each file, so that a release that changes one model brings that one, and one for the manifest. They
are not compressed: weights hardly shrink, and a node can use them as they come. The same manifest
always gives the same image.
"""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
import tempfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warmup.models.rewritten import rewritten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warmup.models.manifest import Model

MANIFEST = "models.toml"
"""The manifest's path in the image."""

_KIND = "application/vnd.oci.image"
_READABLE = 0o444


@dataclass(frozen=True, slots=True)
class Image:
    """An image that has been written.

    Attributes:
        digest: of its manifest, `sha256:…`: what a Service names.
        layers: how many it has.
        size: bytes of its layers.
    """

    digest: str
    layers: int
    size: int


def write(path: Path, models: Sequence[Model], folder: Path) -> Image:
    """Write an image.

    Args:
        path: the manifest.
        models: what is in it, with every file here and proven.
        folder: what to write, whole or not at all; it must not exist or be empty.

    Raises:
        ManifestError: the manifest names its files in a way that cannot be changed.
        OSError: the image cannot be written.
    """
    text, further = _moved(path)
    with tempfile.TemporaryDirectory(dir=folder.absolute().parent, prefix=f".{folder.name}.") as at:
        draft = Path(at, "image")
        made = _written(draft, text, models, further)
        draft.replace(folder)
    return made


def _written(
    folder: Path, text: str, models: Sequence[Model], further: Mapping[str, Path]
) -> Image:
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    files = {file.sha256: file.path for model in models for file in model.files if file.path}
    layers = [_layer(blobs, {f"sha256/{sha256}": files[sha256]}) for sha256 in sorted(files)]
    layers.append(_layer(blobs, {MANIFEST: text.encode(), **further}))
    config = _blob(
        blobs,
        "config.v1+json",
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"] for layer in layers]},
        },
    )
    whole = _blob(
        blobs,
        "manifest.v1+json",
        {
            "schemaVersion": 2,
            "mediaType": f"{_KIND}.manifest.v1+json",
            "config": config,
            "layers": layers,
            "annotations": {"org.opencontainers.image.title": "Ember's models"},
        },
    )
    index = {"schemaVersion": 2, "mediaType": f"{_KIND}.index.v1+json", "manifests": [whole]}
    (folder / "index.json").write_text(json.dumps(index))
    (folder / "oci-layout").write_text(json.dumps({"imageLayoutVersion": "1.0.0"}))
    return Image(whole["digest"], len(layers), sum(layer["size"] for layer in layers))


def _moved(path: Path) -> tuple[str, dict[str, Path]]:
    """The text of the manifest with the places that files have in the image, and further files.

    Raises:
        ManifestError: a place cannot be found in the text.
    """
    further = {}

    def golden(file: Path) -> str:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
        further[f"golden/{digest}{file.suffix}"] = file
        return f"golden/{digest}{file.suffix}"

    text = rewritten(path, uri=lambda _, sha256: f"sha256/{sha256}", golden=golden)
    return text, further


def _layer(blobs: Path, files: Mapping[str, Path | bytes]) -> dict[str, Any]:
    """Write a layer with some files; what describes it."""
    fd, draft = tempfile.mkstemp(dir=blobs, prefix=".layer-")
    with os.fdopen(fd, "wb") as out, tarfile.open(fileobj=out, mode="w") as tar:
        folders = sorted({str(Path(name).parent) for name in files} - {"."})
        for folder in folders:
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o555
            tar.addfile(entry)
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.mode = _READABLE
            if isinstance(content, bytes):
                entry.size = len(content)
                tar.addfile(entry, BytesIO(content))
            else:
                with content.open("rb") as file:
                    entry.size = os.fstat(file.fileno()).st_size
                    tar.addfile(entry, file)
    return _named(blobs, Path(draft), "layer.v1.tar")


def _blob(blobs: Path, kind: str, value: object) -> dict[str, Any]:
    """Write a JSON object; what describes it."""
    fd, draft = tempfile.mkstemp(dir=blobs, prefix=".json-")
    with os.fdopen(fd, "wb") as out:
        out.write(json.dumps(value, sort_keys=True).encode())
    return _named(blobs, Path(draft), kind)


def _named(blobs: Path, draft: Path, kind: str) -> dict[str, Any]:
    """Give a blob the name of its content; what describes it."""
    with draft.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    draft.chmod(0o644)
    size = draft.stat().st_size
    draft.replace(blobs / digest)
    return {"mediaType": f"{_KIND}.{kind}", "digest": f"sha256:{digest}", "size": size}
