"""A manifest, and the small files that it names, as the ConfigMap that pods mount."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from warmup.failures import ManifestError
from warmup.models import manifest
from warmup.models.rewritten import rewritten

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST = "models.toml"
"""The manifest's name in the ConfigMap."""
NAME = "ember-models"
"""The ConfigMap that the component `models` mounts."""
MOST = 1024**2
"""Bytes that a ConfigMap may have (Kubernetes, "ConfigMaps")."""
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_NOT_IN_A_BLOCK = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]|[\u2028\u2029]")


def configmap(path: Path, name: str = NAME) -> str:
    """The YAML of a ConfigMap; the same for the same files.

    Args:
        path: the manifest; every model in it has to have a URI that pods can reach.
        name: of the ConfigMap.

    Raises:
        ManifestError: the manifest is wrong, is not for pods or is too large, or the name is none.
    """
    if not _NAME.fullmatch(name):
        raise ManifestError(f"{name!r} is no name of a ConfigMap: small letters, digits, - and .")
    near = [
        f"{file.name}: {file.source} is on this machine, where no pod sees it"
        for model in manifest.read(path)
        for file in model.files
        if urlsplit(file.uri).scheme == "file"
    ]
    if near:
        raise ManifestError(*near, "Publish them first: ember models publish gs://bucket/folder")
    further = dict[str, bytes]()

    def golden(file: Path) -> str:
        content = file.read_bytes()
        flat = f"golden-{hashlib.sha256(content).hexdigest()[:16]}{file.suffix}"
        further[flat] = content
        return flat

    text = rewritten(path, uri=lambda uri, _: uri, golden=golden)
    size = len(text.encode()) + sum(map(len, further.values()))
    if size > MOST:
        largest = max(further, key=lambda flat: len(further[flat]), default=MANIFEST)
        raise ManifestError(
            f"{path}: with the files of its golden checks it has {size} bytes, and a ConfigMap may"
            f" have {MOST}; make those smaller (the largest is {largest}), or put all of it into an"
            " image: ember models image"
        )
    return _yaml(name, text, further)


def _yaml(name: str, text: str, further: dict[str, bytes]) -> str:
    lines = [
        "apiVersion: v1",
        "kind: ConfigMap",
        "metadata:",
        f"  name: {json.dumps(name)}",
        "  labels:",
        "    app.kubernetes.io/name: ember",
        "    app.kubernetes.io/part-of: ember",
        "data:",
        f"  {MANIFEST}: {_text(text)}",
    ]
    if further:
        lines.append("binaryData:")
        lines += [
            f"  {flat}: {base64.b64encode(further[flat]).decode()}" for flat in sorted(further)
        ]
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    """A text as a value of YAML: as it is, where that can be."""
    text = text.replace("\r\n", "\n").rstrip("\n") + "\n"
    if _NOT_IN_A_BLOCK.search(text):
        return json.dumps(text)
    return "|2\n" + "\n".join(f"    {line}" if line else "" for line in text[:-1].split("\n"))
