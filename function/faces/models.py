"""The models of a manifest, loaded and put into their roles.

The table of families is read before anything heavy is imported; each imports its code when it is
made.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from function.runtime.engine import PROVIDERS
from warmup.failures import ManifestError, WarmupError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from function.faces.identity import Identity
    from function.faces.landmarks import FaceMesh
    from function.faces.search import Search
    from function.runtime.engine import Engine
    from warmup.manifest import Model

log = logging.getLogger("ember.models")


@dataclass(frozen=True, slots=True)
class Family:
    """The code for one kind of model.

    Attributes:
        stage: makes the stage from an engine.
        items: the shape of one item, float32, for each input.
        inputs: the names of the inputs in that order, where there are several.
        buckets: the batch sizes to warm, unless the manifest names others.
    """

    stage: Callable[[Engine], object]
    items: tuple[tuple[int, ...], ...]
    inputs: tuple[str, ...] = ()
    buckets: tuple[int, ...] = (1,)


def _centerface(engine: Engine) -> Search:
    from function.faces.detect import CenterFace
    from function.faces.search import Search

    return Search(CenterFace(engine))


def _face_mesh(engine: Engine) -> FaceMesh:
    from function.faces.landmarks import FaceMesh

    return FaceMesh(engine)


def _identity(engine: Engine) -> Identity:
    from function.faces.identity import Identity

    return Identity(engine)


FAMILIES: dict[tuple[str, str], Family] = {
    ("detect", "centerface"): Family(_centerface, items=((3, 640, 640),)),
    ("landmarks", "face_mesh_468"): Family(_face_mesh, items=((192, 192, 3),)),
    ("identity", "face_identity_128"): Family(_identity, items=((150, 150, 3),)),
}


class NotOnDeviceError(WarmupError):
    """A model runs on something else than was wanted first."""


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


def check(manifest: Sequence[Model]) -> None:
    """Check that a manifest has what the pipeline runs.

    Args:
        manifest: exactly one model for each role.

    Raises:
        ManifestError: a role is missing or named twice, or a family is unknown.
    """
    roles = sorted(model.role for model in manifest)
    needed = sorted(role for role, _ in FAMILIES)
    if roles != needed:
        raise ManifestError(f"the manifest has models for {roles}; needed is one each for {needed}")
    for model in manifest:
        if (model.role, model.family) not in FAMILIES:
            known = [family for role, family in FAMILIES if role == model.role]
            raise ManifestError(f"unknown family {model.family!r} for {model.role}; known: {known}")


def buckets(model: Model) -> tuple[int, ...]:
    """The batch sizes of a model, rising: its own, else those of its family."""
    return model.buckets or FAMILIES[model.role, model.family].buckets


def build(manifest: Sequence[Model], engines: Mapping[str, Engine]) -> Models:
    """The stages over engines, which need not be loaded yet.

    Args:
        manifest: checked.
        engines: by role.
    """
    stages = {
        model.role: FAMILIES[model.role, model.family].stage(engines[model.role])
        for model in manifest
    }
    return Models(**stages, engines=dict(engines))  # type: ignore[arg-type]


def open_engine(
    model: Model,
    *,
    threads: int = 1,
    backends: Sequence[str] = ("cpu",),
    allow_degraded: bool = False,
    store: Path | None = None,
) -> Engine:
    """Load one model.

    Args:
        model: its file, which is known to be right; see `warmup.prefetch`.
        threads: threads of one inference.
        backends: what it may run on, the most wanted first.
        allow_degraded: whether it may run on another than the first.
        store: where optimised graphs for the CPU are kept.

    Raises:
        NotOnDeviceError: it runs on another than the first.
    """
    from function.runtime.backends.onnx import OnnxEngine
    from function.runtime.backends.optimised import Optimised

    inputs = FAMILIES[model.role, model.family].inputs
    if store and backends[0] == "cpu":
        kept = Optimised.of(store, model.file.sha256)
        return kept.load(threads, inputs) or kept.make(model.path, threads, inputs)
    engine = OnnxEngine(model.path, threads, backends, inputs=inputs)
    if engine.provider != (wanted := PROVIDERS[backends[0]]):
        said = f"{model.role} runs on {engine.provider}, not on {wanted}"
        if not allow_degraded:
            raise NotOnDeviceError(f"{said}; EMBER_ALLOW_DEGRADED=true would accept that")
        log.warning(said)
    return engine


def load(manifest: Sequence[Model], threads: int = 1, store: Path | None = None) -> Models:
    """Load the models of a manifest for the CPU, in parallel; see `open_engine`."""
    check(manifest)
    with ThreadPoolExecutor(len(manifest), "load") as pool:
        engines = pool.map(partial(open_engine, threads=threads, store=store), manifest)
        return build(manifest, dict(zip((model.role for model in manifest), engines, strict=True)))
