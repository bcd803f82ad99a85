"""The models of a manifest, loaded and put into their roles.

The table of families is read before anything heavy is imported; each imports its code when it is
made.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from function.faces.look import DEFAULT, Mask
from function.problems import Problem
from function.runtime.engine import PROVIDERS, Ports
from warmup.failures import ManifestError, WarmupError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from function.faces.detect import Detector
    from function.faces.enhance import Enhancer
    from function.faces.identity import Identity
    from function.faces.landmarks import Landmarks
    from function.faces.look import Look
    from function.faces.search import Search
    from function.faces.swappers.masks import Occlusion, Regions
    from function.faces.swappers.neural import Generator
    from function.faces.swappers.protocol import Swapper
    from function.runtime.engine import Engine
    from warmup.manifest import Model

log = logging.getLogger("ember.models")


@dataclass(frozen=True, slots=True)
class Family:
    """The code for one kind of model.

    Attributes:
        stage: makes the stage from an engine and the model's entry.
        items: the shape of one item, float32, for each input that gets one.
        inputs: the names of the inputs in that order, where there are several.
        buckets: the batch sizes to warm, unless the manifest names others.
        constants: see `Ports`.
        rank: see `Ports`.
        options: what the `options` of an entry may be: the words of one, or the range of a number.
    """

    stage: Callable[[Engine, Model], object]
    items: tuple[tuple[int, ...], ...]
    inputs: tuple[str, ...] = ()
    buckets: tuple[int, ...] = (1,)
    constants: Mapping[str, float] = field(default_factory=dict)
    rank: int = 0
    options: Mapping[str, tuple[str, ...] | tuple[float, float]] = field(default_factory=dict)

    def ports(self, model: Model) -> Ports:
        """How engines of a model are run; its options may give other constants."""
        constants = {
            name: float(model.options.get(name, value)) for name, value in self.constants.items()
        }
        return Ports(self.inputs, constants, self.rank)


def _centerface(engine: Engine, _: Model) -> Search:
    from function.faces.detect import CenterFace

    return _search(CenterFace(engine))


def _anchored(engine: Engine, _: Model) -> Search:
    from function.faces.anchors import Anchored

    return _search(Anchored(engine))


def _yunet(engine: Engine, _: Model) -> Search:
    from function.faces.anchors import YuNet

    return _search(YuNet(engine))


def _search(detector: Detector) -> Search:
    from function.faces.search import Search

    return Search(detector)


def _face_mesh(engine: Engine, _: Model) -> Landmarks:
    from function.faces.landmarks import FaceMesh

    return FaceMesh(engine)


def _flat_106(engine: Engine, _: Model) -> Landmarks:
    from function.faces.dense import Flat106

    return Flat106(engine)


def _fan_68(engine: Engine, _: Model) -> Landmarks:
    from function.faces.dense import Fan68

    return Fan68(engine)


def _dlib(engine: Engine, _: Model) -> Identity:
    from function.faces.identity import DlibIdentity

    return DlibIdentity(engine)


def _arcface(engine: Engine, _: Model) -> Identity:
    from function.faces.identity import ArcFace

    return ArcFace(engine)


def _generator(engine: Engine, model: Model) -> Generator:
    from function.faces.swappers.neural import SPECS, Generator

    latent = str(model.options.get("latent", "insightface"))
    return Generator(engine, SPECS[model.family], lambda: model.path, latent)


def _enhancer(engine: Engine, model: Model) -> Enhancer:
    from function.faces.enhance import SPECS, Enhancer

    return Enhancer(engine, SPECS[model.family])


def _occlusion(engine: Engine, _: Model) -> Occlusion:
    from function.faces.swappers.masks import Occlusion

    return Occlusion(engine)


def _regions(engine: Engine, _: Model) -> Regions:
    from function.faces.swappers.masks import Regions

    return Regions(engine)


def _converter(engine: Engine, _: Model) -> Engine:
    return engine


_FEW, _SOME = (1, 2, 4), (1, 4)
_EMBEDDING = (512,)


def _swap(side: int, *source: int, order: tuple[str, ...] = ("target", "source")) -> Family:
    """A swapper of square images; `source` is the shape of its source, an embedding if none."""
    items = ((3, side, side), source or _EMBEDDING)
    latents = {"latent": ("insightface", "facefusion")} if side == 128 else {}
    return Family(_generator, items, order, _SOME, options=latents)


def _enhance(side: int, weight: float | None = None) -> Family:
    """An enhancer of square images, perhaps with a weight."""
    weights = {} if weight is None else {"weight": weight}
    ranges = dict.fromkeys(weights, (0.0, 1.0))
    return Family(_enhancer, ((3, side, side),), constants=weights, options=ranges)


FAMILIES: dict[tuple[str, str], Family] = {
    ("detect", "centerface"): Family(_centerface, items=((3, 640, 640),)),
    ("detect", "scrfd"): Family(_anchored, items=((3, 640, 640),), rank=3),
    ("detect", "retinaface"): Family(_anchored, items=((3, 640, 640),), rank=3),
    ("detect", "yunet"): Family(_yunet, items=((3, 640, 640),), rank=3),
    ("landmarks", "face_mesh_468"): Family(_face_mesh, items=((192, 192, 3),)),
    ("landmarks", "insightface_2d106"): Family(_flat_106, items=((3, 192, 192),)),
    ("landmarks", "fan_68"): Family(_fan_68, items=((3, 256, 256),)),
    ("identity", "face_identity_128"): Family(_dlib, items=((150, 150, 3),)),
    ("identity", "arcface"): Family(_arcface, items=((3, 112, 112),), buckets=_FEW),
    ("swap", "inswapper_128"): _swap(128),
    ("swap", "simswap_256"): _swap(256),
    ("swap", "simswap_512"): _swap(512),
    ("swap", "ghost_256"): _swap(256),
    ("swap", "hyperswap_256"): _swap(256),
    ("swap", "uniface_256"): _swap(256, 3, 256, 256),
    ("swap", "blendswap_256"): _swap(256, 3, 112, 112),
    ("swap", "hififace_256"): _swap(256),
    ("convert", "crossface"): Family(_converter, items=(_EMBEDDING,)),
    ("enhance", "gfpgan_512"): _enhance(512),
    ("enhance", "codeformer_512"): _enhance(512, 0.5),
    ("enhance", "restoreformer_512"): _enhance(512),
    ("enhance", "gpen_256"): _enhance(256),
    ("enhance", "gpen_512"): _enhance(512),
    ("enhance", "gpen_1024"): _enhance(1024),
    ("enhance", "gpen_2048"): _enhance(2048),
    ("occlusion", "xseg"): Family(_occlusion, items=((256, 256, 3),)),
    ("region", "bisenet"): Family(_regions, items=((3, 512, 512),)),
}
"""By role and family. Masks have a role each, as a replica may have both."""

NEEDED = ("detect", "identity")
_CONVERTED = ("simswap_256", "simswap_512", "ghost_256", "hififace_256")
_FROM_PHOTOS = ("uniface_256", "blendswap_256")
_MESH = ("landmarks", "face_mesh_468")


class NotOnDeviceError(WarmupError):
    """A model runs on something else than was wanted first."""


@dataclass(frozen=True, slots=True)
class Models:
    """What the pipeline runs.

    Attributes:
        detect, landmarks, identity, swap, convert, enhance, occlusion, region: the stages; None for
            a role without a model.
        engines: every engine by role, to read what really executes it.
    """

    detect: Search
    identity: Identity
    engines: dict[str, Engine]
    landmarks: Landmarks | None = None
    swap: Generator | None = None
    convert: Engine | None = None
    enhance: Enhancer | None = None
    occlusion: Occlusion | None = None
    region: Regions | None = None

    def swapper(self) -> Swapper:
        """What swaps faces: the model for it, else the mesh."""
        if self.swap is None:
            from function.faces.swappers.mesh import MeshSwapper

            return MeshSwapper()
        from function.faces.swappers.neural import NeuralSwapper

        return NeuralSwapper(self.swap, self.convert, self.occlusion, self.region)


def fitting(look: Look, models: Models) -> Look:
    """The look, if these models can give it.

    Raises:
        Problem: `bad_value`, when it asks for what needs a model that is not there.
    """
    masks = set(look.masks or ())
    lacking = {
        "boost": look.boost is not None and not models.swap,
        "weight": look.weight != DEFAULT.weight
        and not (models.swap and models.swap.takes_identity),
        "enhance": look.enhance not in (0, DEFAULT.enhance) and not models.enhance,
        "masks": bool(masks) and not models.swap,
    }
    for name, lacks in lacking.items():
        if lacks:
            model = "enhancer" if name == "enhance" else "swapper that can do that"
            raise Problem("bad_value", f"`{name}`: this replica has no {model}.", field=name)
    have = {
        Mask.OCCLUSION: models.occlusion,
        Mask.AREA: models.landmarks,
        Mask.REGION: models.region,
    }
    for mask in sorted(masks - {Mask.BOX}):
        if not have[mask]:
            raise Problem(
                "bad_value", f"`masks`: this replica has no model for {mask}.", field="masks"
            )
    return look


def check(manifest: Sequence[Model]) -> None:
    """Check that a manifest has what the pipeline runs, and that its models fit together.

    Args:
        manifest: at most one model for each role.

    Raises:
        ManifestError: with everything that is wrong.
    """
    problems = []
    family = {model.role: model.family for model in manifest}
    for model in manifest:
        problems += _wrong_entry(model)
    missing = [role for role in NEEDED if role not in family]
    problems += [f"there is no model for {role}; every swap needs one" for role in missing]
    mesh = (_MESH[0], family.get(_MESH[0])) == _MESH
    swap = family.get("swap")
    if family.get("identity") == "face_identity_128" and not mesh:
        problems.append(_needs("the identity model face_identity_128", *_MESH))
    if swap is None and not mesh:
        problems.append(_needs("the embedded swap, as there is no model for swap,", *_MESH))
    if swap and swap not in _FROM_PHOTOS and family.get("identity", "arcface") != "arcface":
        problems.append(_needs(f"the swapper {swap}", "identity", "arcface"))
    if swap in _CONVERTED and "convert" not in family:
        problems.append(_needs(f"the swapper {swap}", "convert", "crossface"))
    if problems:
        raise ManifestError(*problems)


def _wrong_entry(model: Model) -> list[str]:
    """What is wrong with one entry by itself."""
    if model.role not in (roles := sorted({role for role, _ in FAMILIES})):
        return [f"unknown role {model.role!r}; known: {roles}"]
    if not (found := FAMILIES.get((model.role, model.family))):
        known = [family for role, family in FAMILIES if role == model.role]
        return [f"unknown family {model.family!r} for {model.role}; known: {known}"]
    return [
        f"{model.role}: {wrong}"
        for name, value in model.options.items()
        if (wrong := _wrong_option(name, value, found.options.get(name)))
    ]


def _wrong_option(name: str, value: Any, allowed: tuple[Any, ...] | None) -> str | None:
    """What is wrong with an option; None if nothing is."""
    if allowed is None:
        return f"the family has no option {name!r}"
    if isinstance(allowed[0], str):
        return None if value in allowed else f"option {name!r} is one of {', '.join(allowed)}"
    low, high = allowed
    sound = type(value) in {int, float} and low <= value <= high
    return None if sound else f"option {name!r} is a number from {low:g} to {high:g}"


def _needs(what: str, role: str, family: str) -> str:
    return f"{what} needs a model for {role} of the family {family}"


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
        model.role: FAMILIES[model.role, model.family].stage(engines[model.role], model)
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

    ports = FAMILIES[model.role, model.family].ports(model)
    if store and backends[0] == "cpu":
        kept = Optimised.of(store, model.file.sha256)
        return kept.load(threads, ports) or kept.make(model.path, threads, ports)
    engine = OnnxEngine(model.path, threads, backends, ports=ports)
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
