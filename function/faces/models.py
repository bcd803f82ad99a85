"""The models of a manifest, loaded and put into their roles."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.faces.detect import CenterFace
from function.faces.identity import Identity
from function.faces.landmarks import FaceMesh
from function.faces.search import Search
from function.runtime.backends.onnx import OnnxEngine
from warmup.failures import ManifestError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from function.runtime.engine import Engine
    from warmup.manifest import Model

_FAMILIES: dict[tuple[str, str], Callable[[Engine], object]] = {
    ("detect", "centerface"): lambda engine: Search(CenterFace(engine)),
    ("landmarks", "face_mesh_468"): FaceMesh,
    ("identity", "face_identity_128"): Identity,
}


@dataclass(frozen=True, slots=True)
class Models:
    """What the pipeline runs.

    Attributes:
        detect, landmarks, identity: the stages.
        engines: every engine by role, to read what really executes it.
    """

    detect: Search
    landmarks: FaceMesh
    identity: Identity
    engines: dict[str, Engine]


def load(manifest: Sequence[Model], threads: int = 1) -> Models:
    """Verify and load the models of a manifest, in parallel.

    Args:
        manifest: exactly one model for each role.
        threads: threads of one inference.

    Raises:
        ManifestError: a role is missing or named twice, or a family is unknown.
        DamagedError: a file is not what the manifest says.
    """
    roles = sorted(model.role for model in manifest)
    needed = sorted(role for role, _ in _FAMILIES)
    if roles != needed:
        raise ManifestError(f"the manifest has models for {roles}; needed is one each for {needed}")
    for model in manifest:
        if (model.role, model.family) not in _FAMILIES:
            known = [family for role, family in _FAMILIES if role == model.role]
            raise ManifestError(f"unknown family {model.family!r} for {model.role}; known: {known}")
    with ThreadPoolExecutor(len(manifest), "load") as pool:
        engines = dict(pool.map(lambda model: (model.role, _open(model, threads)), manifest))
    stages = {
        model.role: _FAMILIES[model.role, model.family](engines[model.role]) for model in manifest
    }
    return Models(**stages, engines=engines)  # type: ignore[arg-type]


def _open(model: Model, threads: int) -> Engine:
    model.file.verify(model.path)
    return OnnxEngine(model.path, threads)
