"""Components of `knative/components` that do not go together, or only in one order.

A component that sets what another one has set takes its effect away in silence; which, depends on
their order in `components`. So every such pair is in one of the tables here, and the tests render
all the others in both orders.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from keepalive.doctor import reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

NEEDS = {
    "mig": ("gpu",),
    "dra": ("gpu",),
    "sharing": ("gpu",),
    "node-cache": ("models",),
    "prescaler-watch": ("prescaler",),
    "eventing-kafka": ("eventing",),
    "eventing-rabbitmq": ("eventing",),
    "gcs-events": ("eventing",),
    "engine-build-job": ("gpu",),
}
"""What has to be there for a component, and before it."""

LAST = {"engine-build-job": "it copies what the Service is by then"}
"""Components that nothing may come after, and why."""

BEFORE = {
    ("keepalive", "keys"): "keys gives the ping its key, for which the ping has to be there",
    **{
        (name, "models-oci"): f"{name} changes the init container, which models-oci takes away"
        for name in ("eventing", "keys", "size")
    },
}
"""Pairs of which the first has to come first, and why."""

_OF_THE_SERVICE = (
    *("audit", "canary", "cold-start", "dra", "engine-build-job", "eventing", "gpu"),
    *("gpu-utilisation", "keys", "min-scale", "models", "models-oci", "monitoring"),
    *("network-policy", "node-cache", "pdb", "prescaler", "priority", "redis", "rps"),
    *("scale-to-zero", "sharing", "single-gpu", "size", "zones"),
)
"""Those that change the Knative Service or look for its replicas."""

_REFUSED = {
    ("canary", "single-gpu"): "the canary needs a GPU of its own, which there is not",
    ("engine-build-job", "single-gpu"): "the job would wait for the one GPU, which the replica has;"
    " build plans on another machine",
    ("dra", "mig"): "the DeviceClass is of whole GPUs; a slice needs one of its own",
    ("dra", "sharing"): "the device plugin shares GPUs, in whose place the DRA driver is",
    ("mig", "sharing"): "a replica has either a slice or a share",
    ("models", "models-oci"): "both name the manifest that is served",
    ("models-oci", "node-cache"): "the node keeps the image of the models already",
    ("eventing", "keys"): "the Broker sends no key, so each event would be refused; deploy a second"
    " Service for events, in a namespace of its own",
    ("eventing-kafka", "eventing-rabbitmq"): "a Broker keeps its events in one of them",
    ("gcs-events", "keepalive"): "the ping has no token of Google's, so it would always fail",
    ("gcs-events", "keys"): "EMBER_AUTH is either keys or jwt; deploy a second Service for events",
    ("gpu-utilisation", "rps"): "a revision is scaled by one metric",
    ("gpu-utilisation", "scale-to-zero"): "the HPA knows no zero",
    ("gpu-utilisation", "single-gpu"): "the HPA keeps a pod of the old revision, so the new one"
    " would wait for its GPU for ever",
    ("headroom", "single-gpu"): "headroom keeps a second GPU, with which a roll-out needs no"
    " single-gpu",
    ("keepalive", "qps-hpa"): "the ping asks the Service `ember`, which is then `ember-http`",
    ("keepalive", "scale-to-zero"): "a ping every five minutes keeps the last replica for ever",
    ("min-scale", "scale-to-zero"): "the one keeps replicas warm, the other none; for a floor by"
    " the hour take prescaler with scale-to-zero",
    ("min-scale", "single-gpu"): "a second replica would wait for a second GPU; single-gpu has"
    " one at most",
    ("prescaler", "single-gpu"): "there is no floor to raise: single-gpu has one replica",
    ("scale-to-zero", "single-gpu"): "both say when the last replica goes",
    **{
        (name, "qps-hpa"): "qps-hpa takes the Knative Service away; change its Deployment instead"
        for name in _OF_THE_SERVICE
    },
}
REFUSED = {frozenset(pair): why for pair, why in _REFUSED.items()}
"""Pairs that do not go together, in whichever order, and why not."""


def complaints(names: Sequence[str]) -> Iterator[str]:
    """What is wrong with some components, in words.

    Args:
        names: of the components, in the order in which they are applied.
    """
    names = tuple(dict.fromkeys(names))
    for name in names:
        for needed in NEEDS.get(name, ()):
            if needed not in names[: names.index(name)]:
                yield f"{name} needs {needed} before it in `components`"
    for name in names[:-1]:
        if why := LAST.get(name):
            yield f"{name} has to be the last of `components`: {why}"
    for first, second in combinations(names, 2):
        if why := REFUSED.get(frozenset((first, second))):
            yield f"{first} and {second} do not go together: {why}"
        if why := BEFORE.get((second, first)):
            yield f"{second} has to come before {first}: {why}"


def components(folder: Path) -> tuple[str, ...]:
    """The names of the components that a kustomization applies, those of its resources included.

    Args:
        folder: with the kustomization.

    Returns:
        The names of their folders, in the order in which they are applied.

    Raises:
        UnreadableManifest: a kustomization is no YAML.
    """
    found: list[str] = []
    for each in _kustomization(folder):
        for resource in _texts(each.get("resources")):
            found += components(folder / resource)
        for component in _texts(each.get("components")):
            path = (folder / component).resolve()
            found += [*components(path), path.name]
    return tuple(found)


def _kustomization(folder: Path) -> Iterable[dict[str, Any]]:
    files = (folder / name for name in reading.KUSTOMIZATIONS)
    path = next((file for file in files if file.is_file()), None)
    return reading.documents(str(path)) if path else ()


def _texts(given: Any) -> list[str]:
    """The texts of a list; whatever else is there is for kustomize to complain of."""
    return [one for one in given if isinstance(one, str)] if isinstance(given, list) else []
