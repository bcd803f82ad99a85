"""What Ember's images can run models on, and whether that is what a Service asks for.

The one table of it; `image/Containerfile` has the same in a label of each image, docs/gpu.md says
when to take which, and tests hold them to each other.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from keepalive.doctor.view import REVISION, Role, Thing, containers, get, revision

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RUNS = {
    "cpu": ("cpu",),
    "gpu": ("tensorrt", "cpu"),
    "gpu-ort": ("cuda", "cpu"),
    "gpu-both": ("tensorrt", "cuda", "cpu"),
}
"""The backends that each image can run, the most wanted first, by its target in the Containerfile.

Without `EMBER_BACKENDS` it uses those of a GPU, where it has any.
"""
LABEL = "dev.ember.backends"
"""The label of an image that has the same, with commas between."""

_TARGET = re.compile(rf"(?<![a-z])({'|'.join(sorted(RUNS, key=len, reverse=True))})(?![a-z])")
_PLANS = ("EMBER_PLANS", "EMBER_SHARED_STORE")


def target(image: str) -> str | None:
    """Which of the images it is, by its tag, else by its name; None where neither says it.

    Args:
        image: a reference, e.g. "registry.example/ember:1.4-gpu-ort@sha256:…".
    """
    name, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    found = _TARGET.search(tag) or _TARGET.search(name)
    return found[1] if found else None


def own(target: str) -> tuple[str, ...]:
    """The backends that an image uses when it is not told."""
    return tuple(each for each in RUNS[target] if each != "cpu") or ("cpu",)


def complaints(service: Thing, settings: Mapping[str, str]) -> Iterator[str]:
    """What keeps a Service of Ember from running its models as it is meant.

    Args:
        service: a Knative Service whose shape is right.
        settings: of its serving container; without any of Ember's it is somebody else's.
    """
    if not (image := _image(service, settings)):
        return
    kind = target(image)
    named = backends(kind, settings)
    if kind and (lacking := [each for each in named if each not in RUNS[kind]]):
        yield (
            f"EMBER_BACKENDS: {' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not in"
            f" the image {kind}, which can run {', '.join(RUNS[kind])}; leave EMBER_BACKENDS out,"
            f" or take {_those_with(named)}"
        )
    elif named and gpu(service) and not set(named) - {"cpu"}:
        what = f"the image {kind}" if "EMBER_BACKENDS" not in settings else "EMBER_BACKENDS"
        yield (
            f"{gpu(service)} is asked for, and {what} leaves it idle: models run on the CPU; take"
            f" {_those_with(('cuda',))} (docs/gpu.md)"
        )
    elif set(named) - {"cpu"} == {"tensorrt"} and not _plans(kind, settings):
        yield (
            "EMBER_PLANS: nothing runs on TensorRT without plans, and nothing says where they are;"
            " name the bucket that `ember engines build` puts them into, or take"
            f" {_those_with(('cuda',))}"
        )


def unseen(service: Thing, settings: Mapping[str, str]) -> Iterator[str]:
    """An image for a GPU of which nothing says what it can run."""
    image = _image(service, settings)
    if image and gpu(service) and not target(image):
        yield (
            f"{REVISION}.containers: whether {image} can run models on a GPU is not seen; write"
            f" what it was built as before the digest, e.g. ember:gpu-ort@sha256:… (its label"
            f" {LABEL} says it)"
        )


def backends(kind: str | None, settings: Mapping[str, str]) -> tuple[str, ...]:
    """What models may run on: as the settings say, else as the image does; empty when unknown."""
    if said := settings.get("EMBER_BACKENDS"):
        return tuple(each.strip().lower() for each in said.split(",") if each.strip())
    return own(kind) if kind else ()


def gpu(service: Thing) -> str | None:
    """The resource of NVIDIA that a replica asks for, e.g. "nvidia.com/mig-1g.10gb"."""
    limits = get(_serving(service), "resources", "limits")
    return next((name for name in limits if name.startswith("nvidia.com/")), None)


def _plans(kind: str | None, settings: Mapping[str, str]) -> bool:
    """Whether plans may come from somewhere; of ours no image that serves can build one."""
    built = kind is None and settings.get("EMBER_BUILD_PLANS", "").lower() == "true"
    return built or any(settings.get(name) for name in _PLANS)


def _those_with(named: tuple[str, ...]) -> str:
    """The images that can run some backends, in words."""
    fit = [f"`{kind}`" for kind, runs in RUNS.items() if set(named) <= set(runs)]
    return f"the image {' or '.join(fit)}" if fit else "backends that there are"


def _image(service: Thing, settings: Mapping[str, str]) -> str | None:
    """The image of a Service of Ember."""
    ours = any(name.startswith("EMBER_") for name in settings)
    return str(_serving(service).get("image") or "") if ours else None


def _serving(service: Thing) -> Thing:
    every = containers(revision(service))
    return next((one.given for one in every if one.role is Role.SERVING), {})
