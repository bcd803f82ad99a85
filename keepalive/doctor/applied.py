"""Whether `kubectl apply` can apply a ConfigMap: it notes all of it in one of its annotations.

What annotations may have is in Kubernetes' apimachinery, pkg/api/validation/objectmeta.go.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from keepalive.doctor.view import get

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from keepalive.doctor.view import Thing

_NOTED = "kubectl.kubernetes.io/last-applied-configuration"
_MOST = 256 * 1024
"""Bytes of all annotations of an object, names and values."""


def examined(documents: Iterable[Thing]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each ConfigMap that is too large, and what to do about it, in words."""
    for one in documents:
        if one.get("kind") == "ConfigMap" and (size := _annotated(one)) > _MOST:
            wrong = (
                f"kubectl apply notes all of it in an annotation, which makes {size} bytes of"
                f" {_MOST} that Kubernetes takes; if it has the models, take smaller files for"
                " their golden checks or leave these out of the manifest, or put all of it into an"
                " image (`ember models image`, docs/models.md)"
            )
            yield f"ConfigMap {get(one, 'metadata').get('name')}", (wrong,)


def _annotated(document: Thing) -> int:
    """The bytes of its annotations, once it is applied."""
    content = json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n"
    own = get(document, "metadata", "annotations")
    escaped = sum(map(content.count, "<>&")) * 5  # as Go writes them
    size = len(_NOTED) + len(content.encode()) + escaped
    return size + sum(len(f"{name}{text}".encode()) for name, text in own.items())
