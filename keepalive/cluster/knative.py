"""The floors of a Knative Service: min-scale of its Revisions, where changing it rolls no pods.

On the Service's template, min-scale would make a new Revision, so a cold start of everything. On
the Revision that takes the traffic it is taken over by its autoscaler, from Knative 1.21 on. Before
that, it would go into the pod template and replace all pods; so the version is looked up first.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keepalive.cluster.client import Cluster, Missing, Resource
from keepalive.cluster.target import MIN_SCALE, REASON, Target, annotations_of, held
from keepalive.failure import Exit, Failure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from keepalive.prescaler.schedule import Pool

SYSTEM = "knative-serving"
_LEAST_VERSION = (1, 21)
_VERSION = re.compile(r"v?(\d+)\.(\d+)")
_LABEL = "app.kubernetes.io/version"
_SCALING = "autoscaling.knative.dev"
_TARGET = 100.0
_PERCENT = 70.0
"""Knative's own values for what an annotation does not say."""


@dataclass(frozen=True, slots=True)
class Share:
    """A Revision beside the main one.

    Attributes:
        target: the Revision.
        percent: of the traffic; None for one behind the tag of a pool.
        floor: of the pool; None for one that has a share of the main one's.
    """

    target: Target
    percent: float | None = None
    floor: int | None = None

    def wanted(self, main: int) -> int | None:
        """The floor to have when the main one has that; None leaves it as it is."""
        if self.floor is not None:
            wanted = self.floor
        elif self.percent:
            wanted = math.ceil(main * self.percent / 100)
        else:  # no traffic: of no use, unless somebody else has given it its floor
            return 0 if self.target.ours else None
        return wanted if self.target.most is None else min(wanted, self.target.most)


@dataclass(frozen=True, slots=True)
class Revisions:
    """The Revisions of a Service that requests can reach.

    Attributes:
        main: the one with the most traffic; of equals, the latest.
        others: all others.
    """

    main: Target
    others: tuple[Share, ...]


def check_version(cluster: Cluster, given: str | None) -> None:
    """See that a changed Revision keeps its pods.

    Args:
        cluster: to ask.
        given: the version of Knative Serving, from somebody who knows; None to look it up.

    Raises:
        Failure: it would not, or nobody knows.
    """
    text = given or _label(cluster)
    if not (found := _VERSION.match(text)):
        raise Failure(
            f"{text!r} is no version of Knative Serving, so nobody knows whether a changed floor"
            " would replace all pods. Say which it is: --knative-version 1.21",
            Exit.CONFIG,
        )
    if tuple(map(int, found.groups())) < _LEAST_VERSION:
        raise Failure(
            f"Knative Serving is {text}: before 1.21, changing min-scale on a Revision replaces all"
            " its pods. Upgrade Knative, or use --hpa on a Deployment of your own. Nothing has been"
            " changed.",
            Exit.CONFIG,
        )


def revisions(cluster: Cluster, service: str, pools: Iterable[Pool] = ()) -> Revisions:
    """Read the Revisions of a Service.

    Args:
        cluster: to ask.
        service: its name.
        pools: floors of their own for what is behind tags.

    Raises:
        Failure: there is no such Service, or none of its Revisions is ready yet.
    """
    try:
        found = cluster.get(Resource.SERVICE, service)
    except Missing:
        raise Failure(
            f"There is no Knative Service {service} in the namespace {cluster.namespace}: use"
            " --service and --namespace.",
            Exit.CONFIG,
        ) from None
    status = found.get("status", {})
    if not (latest := status.get("latestReadyRevisionName")):
        raise Failure(
            f"The Service {service} has no Revision that is ready yet; try again later.", Exit.AGAIN
        )
    percents: dict[str, float] = {}
    tags: dict[str, str] = {}
    for each in status.get("traffic") or [{"revisionName": latest, "percent": 100}]:
        name = each.get("revisionName", latest)
        percents[name] = percents.get(name, 0.0) + (each.get("percent") or 0)
        if each.get("tag"):
            tags[each["tag"]] = name
    main = max(percents, key=lambda name: (percents[name], name == latest))
    floors = {tags[pool.tag]: pool.floor for pool in pools if pool.tag in tags}
    others = []
    for name, percent in percents.items():
        if name != main:
            target = _target(cluster, found, name)
            own = floors.get(name)
            others.append(Share(target, percent if own is None else None, own))
    return Revisions(_target(cluster, found, main), tuple(others))


def _target(cluster: Cluster, service: dict[str, Any], name: str) -> Target:
    try:
        revision = cluster.get(Resource.REVISION, name)
    except Missing:
        raise Failure(f"The Revision {name} has just gone; try again.", Exit.AGAIN) from None
    annotations = annotations_of(revision)
    most = int(annotations.get(f"{_SCALING}/max-scale", 0))
    return Target(
        resource=Resource.REVISION,
        name=name,
        version=revision["metadata"]["resourceVersion"],
        uid=revision["metadata"]["uid"],
        floor=int(annotations.get(MIN_SCALE, 0)),
        most=most or None,
        per_replica=_per_replica(revision["spec"], annotations),
        gpus=_gpus(revision["spec"]),
        held=held(service, revision),
        ours=REASON in annotations,
    )


def _per_replica(spec: dict[str, Any], annotations: dict[str, str]) -> float | None:
    """What the autoscaler means a replica to have at once, as Knative reckons it."""
    if annotations.get(f"{_SCALING}/metric", "concurrency") != "concurrency":
        return None
    places = float(spec.get("containerConcurrency") or math.inf)
    target = float(annotations.get(f"{_SCALING}/target", places))
    percent = float(annotations.get(f"{_SCALING}/target-utilization-percentage", _PERCENT))
    together = min(target, places)
    return (together if math.isfinite(together) else _TARGET) * percent / 100


def _gpus(spec: dict[str, Any]) -> int:
    limits = [container.get("resources", {}).get("limits", {}) for container in spec["containers"]]
    gpus = sum(
        int(value) for each in limits for name, value in each.items() if name.startswith("nvidia.")
    )
    return gpus or 1


def _label(cluster: Cluster) -> str:
    try:
        namespace = cluster.get(Resource.NAMESPACE, SYSTEM)
        return str((namespace["metadata"].get("labels") or {})[_LABEL])
    except (Missing, KeyError, Failure) as error:
        if isinstance(error, Failure) and error.exit_code is not Exit.FORBIDDEN:
            raise
        raise Failure(
            f"The version of Knative Serving cannot be read from the label {_LABEL} of the"
            f" namespace {SYSTEM}, so nobody knows whether a changed floor would replace all pods."
            " Say which it is: --knative-version 1.21",
            Exit.CONFIG,
        ) from None
