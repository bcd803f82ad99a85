"""Whether a replica on a GPU has a model that swaps there, or a mesh on the CPU."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from keepalive.doctor.images import gpu
from keepalive.doctor.view import get, many, revision

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from keepalive.doctor.view import Thing

MESH = "ember.dev/swaps"
"""The annotation of a Service of which `mesh` is meant: swaps by mesh, on the CPU."""

_BRING = (
    "`ember models publish` brings yours to a bucket, and `ember models configmap` prints the"
    " ConfigMap ember-models for the overlay's models.yaml (docs/gpu.md)"
)


def complaints(
    service: Thing, settings: Mapping[str, str], documents: Iterable[Thing]
) -> Iterator[str]:
    """What keeps faces from being swapped on the GPU that a Service of Ember asks for.

    Args:
        service: a Knative Service whose shape is right.
        settings: of its serving container; without any of Ember's it is somebody else's.
        documents: the objects beside it. A manifest that is in none of them is not looked at.
    """
    if not gpu(service) or not any(name.startswith("EMBER_") for name in settings):
        return
    path = settings.get("EMBER_MANIFEST")
    models = _models(service, path, documents) if path else []
    if models is None:
        return
    if any(_sample(model) for model in models):
        yield f"the models are those of the sample, which are nowhere: {_BRING}"
    elif get(service, "metadata", "annotations").get(MESH) != "mesh" and not any(
        model.get("role") == "swap" for model in models
    ):
        whose = "the manifest names" if path else "the embedded models have"
        yield (
            f"{whose} none for the role `swap`, so faces are swapped by mesh, on the CPU, and the"
            f" GPU is idle most of the time: {_BRING}; or, if that is meant, annotate the Service"
            f" with {MESH}: mesh"
        )


def _models(service: Thing, path: str, documents: Iterable[Thing]) -> list[dict[str, Any]] | None:
    """What a manifest says of its models; None where it is not among the objects, or cannot be."""
    folder, _, file = path.rpartition("/")
    spec = revision(service)
    mounts = [each for one in many(spec, "containers") for each in many(one, "volumeMounts")]
    volumes = {each.get("name") for each in mounts if each.get("mountPath") == folder}
    maps = {
        get(each, "configMap").get("name")
        for each in many(spec, "volumes")
        if each.get("name") in volumes
    }
    for one in documents:
        text = get(one, "data").get(file)
        named = get(one, "metadata").get("name")
        if one.get("kind") == "ConfigMap" and named in maps and isinstance(text, str):
            try:
                models = many(tomllib.loads(text), "model")
            except tomllib.TOMLDecodeError:
                return None  # for `ember models check` to complain of
            return [each for each in models if isinstance(each, dict)]
    return None


def _sample(model: Mapping[str, Any]) -> bool:
    """Whether a model has the digest that samples have."""
    return not str(model.get("sha256", "1")).strip("0")
