"""The matrix by which inswapper's graph expects an identity to be projected.

It lies among the weights of the .onnx file, where no node uses it, and is found there by its shape:
tools write weights in any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from function.faces.signatures import PROJECTION
from function.runtime import onnxfile
from warmup.failures import ManifestError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def read(path: Path) -> NDArray[np.float32]:
    """The projection, float32 [512, 512]: row vectors are multiplied from the left.

    Args:
        path: the graph of an inswapper.

    Raises:
        ManifestError: the file has no such matrix, or several.
        DamagedError: it is no graph that can be read.
    """
    graph = onnxfile.read(path)
    found = [each for each in graph.tensors if each.dims == PROJECTION]
    if len(found) > 1:
        found = [each for each in found if each.name not in graph.used]
    if len(found) != 1:
        raise ManifestError(
            f"{path}: has {len(found)} weights of 512 × 512 that no node uses, where inswapper's"
            " projection of identities should be one: take the file as it was published, as some"
            " tools remove such weights"
        )
    return onnxfile.values(graph, found[0]).astype(np.float32)
