"""The floors of a Knative Service: min-scale of its Revisions, where changing it rolls no pods.

On the Service's template, min-scale would make a new Revision, so a cold start of everything. On
the Revision that takes the traffic it is taken over by its autoscaler (see `version.py`).

A new Revision starts with what its template says, and takes the traffic with as many replicas. But
until it is ready for the first time, Knative waits for as many as min-scale asks for, if that is
more than initial-scale. So a floor that is given to it meanwhile is there before the traffic is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from keepalive.cluster.autoscaling import (
    ACTIVATION_SCALE,
    MIN_SCALE,
    PREFIX,
    scale,
    started_with,
)
from keepalive.cluster.client import Cluster, Missing, Resource
from keepalive.cluster.pin import ROLLOUT, complaint
from keepalive.cluster.readiness import condition, failed
from keepalive.cluster.target import (
    Target,
    annotations_of,
    held,
    last_change,
    left,
)
from keepalive.failure import Exit, Failure
from keepalive.times import duration

if TYPE_CHECKING:
    from collections.abc import Mapping

_SERVING = "serving.knative.dev"
_TARGET = 100.0
_PERCENT = 70.0
_PROGRESS = timedelta(minutes=10)
"""Knative's own values for what an annotation does not say."""


@dataclass(frozen=True, slots=True)
class Start:
    """How far a Revision is that has not been ready yet.

    Attributes:
        up: how many of its replicas are ready.
        failed: whether Knative says that it does not become ready.
        empty: whether it is to become ready without any replica.
        patience: how long more replicas may be waited for: half of what Knative waits.
    """

    up: int
    failed: bool
    empty: bool
    patience: timedelta


@dataclass(frozen=True, slots=True)
class Share:
    """Another Revision than the main one.

    Attributes:
        target: the Revision.
        percent: of the traffic that it has, or will have soon if that is more; None for one behind
            the tag of a pool.
        floor: of the pool; None for one that has a share of the main one's.
        start: of one that has not been ready yet; None for others.
    """

    target: Target
    percent: float | None = None
    floor: int | None = None
    start: Start | None = None

    def wanted(self, main: int) -> int | None:
        """The floor to have when the main one has that; None without traffic and pool."""
        if self.floor is None and not self.percent:
            return None
        share = math.ceil(main * (self.percent or 0) / 100)
        wanted = share if self.floor is None else self.floor
        return wanted if self.target.max_floor is None else min(wanted, self.target.max_floor)


@dataclass(frozen=True, slots=True)
class Revisions:
    """The Revisions of a Service that requests can reach.

    Attributes:
        main: the one with the most traffic; of equals, the latest.
        others: all others.
        pin: what is to be said of traffic that is pinned; None where none is.
        rollout: whether `ember rollout` is under way, which holds floors itself.
    """

    main: Target
    others: tuple[Share, ...]
    pin: str | None = None
    rollout: bool = False


def revisions(
    cluster: Cluster, service: str, floors_by_tag: Mapping[str, int] | None = None
) -> Revisions:
    """Read the Revisions of a Service.

    Raises:
        Failure: there is no such Service, or none of its Revisions is ready yet.
    """
    found = read_service(cluster, service)
    status = found.get("status", {})
    if not (latest := status.get("latestReadyRevisionName")):
        raise Failure(
            f"The Service {service} has no Revision that is ready yet; try again later.", Exit.AGAIN
        )
    has = _Traffic.of(status.get("traffic"), latest)
    soon = _Traffic.of(found["spec"].get("traffic"), _created(status))
    percents = has.percents
    main = max(percents, key=lambda name: (percents[name], name == latest))
    floors = {
        traffic.tags[tag]: floor
        for tag, floor in (floors_by_tag or {}).items()
        for traffic in (has, soon)
        if tag in traffic.tags
    }
    others = []
    for name in [*percents, *(name for name in soon.percents if name not in percents)]:
        percent = max(percents.get(name, 0), soon.percents.get(name, 0))
        if name == main or not (name in percents or percent or name in floors):
            continue
        try:
            revision = cluster.get(Resource.REVISION, name)
        except Missing:
            if name in percents:
                raise _gone(name) from None
            continue  # traffic cannot move to what is not there
        own = floors.get(name)
        start = None if name in percents else _start(revision)
        share = percent if own is None else None
        others.append(Share(_target(found, revision), share, own, start))
    try:
        target = _target(found, cluster.get(Resource.REVISION, main))
    except Missing:
        raise _gone(main) from None
    rollout = ROLLOUT in annotations_of(found)
    return Revisions(target, tuple(others), complaint(found), rollout)


def coming(cluster: Cluster, service: str) -> str | None:
    """The name of a Revision that has been made and is not ready yet; None without one.

    Raises:
        Failure: there is no such Service, or nothing answers.
    """
    status = read_service(cluster, service).get("status", {})
    created = _created(status)
    return None if created == status.get("latestReadyRevisionName") else created


class _Traffic(NamedTuple):
    """Who has which percentage of the traffic, and who is behind which tag."""

    percents: dict[str, float]
    tags: dict[str, str]

    @classmethod
    def of(cls, parts: list[dict[str, Any]] | None, latest: str) -> Self:
        percents: dict[str, float] = {}
        tags = {}
        for each in parts or [{"percent": 100}]:
            name = each.get("revisionName") or latest
            percents[name] = percents.get(name, 0.0) + (each.get("percent") or 0)
            if each.get("tag"):
                tags[each["tag"]] = name
        return cls(percents, tags)


def read_service(cluster: Cluster, name: str) -> dict[str, Any]:
    """A Knative Service.

    Raises:
        Failure: there is none.
    """
    try:
        return cluster.get(Resource.SERVICE, name)
    except Missing:
        raise Failure(
            f"There is no Knative Service {name} in the namespace {cluster.namespace}: use"
            " --service and --namespace.",
            Exit.CONFIG,
        ) from None


def _created(status: dict[str, Any]) -> str:
    return str(status.get("latestCreatedRevisionName") or status.get("latestReadyRevisionName"))


def _gone(revision: str) -> Failure:
    return Failure(f"The Revision {revision} has just gone; try again.", Exit.AGAIN)


def _start(revision: dict[str, Any]) -> Start | None:
    status, annotations = revision.get("status", {}), annotations_of(revision)
    if condition(revision)[0] == "True":
        return None
    try:
        deadline = timedelta(seconds=duration(annotations[f"{_SERVING}/progress-deadline"]))
    except (KeyError, ValueError):
        deadline = _PROGRESS
    return Start(
        up=status.get("actualReplicas") or 0,
        failed=failed(revision),
        empty=started_with(annotations) == 0,
        patience=(deadline or _PROGRESS) / 2,
    )


def _target(service: dict[str, Any], revision: dict[str, Any]) -> Target:
    annotations = annotations_of(revision)
    most = scale(annotations, "max-scale")
    return Target(
        resource=Resource.REVISION,
        name=revision["metadata"]["name"],
        version=revision["metadata"]["resourceVersion"],
        uid=revision["metadata"]["uid"],
        floor=scale(annotations, "min-scale"),
        max_floor=most or None,
        per_replica=_per_replica(revision["spec"], annotations),
        gpus=_gpus(revision["spec"]),
        activation=_activation(service, annotations),
        held=held(service),
        replicas=revision.get("status", {}).get("desiredReplicas"),
        scaler="hpa" if annotations.get(f"{PREFIX}class", "").startswith("hpa.") else "kpa",
        changed=_changed(service, revision),
        left=left(revision),
    )


def _activation(service: dict[str, Any], annotations: dict[str, str]) -> int | None:
    """The activation-scale of a Revision as it was meant: a high floor has raised it meanwhile."""
    own = service["spec"]["template"].get("metadata", {}).get("annotations") or {}
    given = annotations.get(ACTIVATION_SCALE)
    return int(own.get(ACTIVATION_SCALE, given)) if given else None


def _changed(service: dict[str, Any], revision: dict[str, Any]) -> tuple[str, datetime] | None:
    """Who has given a Revision its floor: after it was made, or with the Service's template."""
    since = last_change(revision, "metadata", "annotations", MIN_SCALE)
    maker = last_change(revision, "spec", "containers")
    if since and maker and since[0] != maker[0]:
        return since
    return last_change(service, "spec", "template")


def _per_replica(spec: dict[str, Any], annotations: dict[str, str]) -> float | None:
    """What the autoscaler means a replica to have at once, as Knative reckons it."""
    if annotations.get(f"{PREFIX}metric", "concurrency") != "concurrency":
        return None
    places = float(spec.get("containerConcurrency") or math.inf)
    target = float(annotations.get(f"{PREFIX}target", places))
    percent = float(annotations.get(f"{PREFIX}target-utilization-percentage", _PERCENT))
    together = min(target, places)
    return (together if math.isfinite(together) else _TARGET) * percent / 100


def _gpus(spec: dict[str, Any]) -> int:
    limits = [container.get("resources", {}).get("limits", {}) for container in spec["containers"]]
    gpus = sum(
        int(value) for each in limits for name, value in each.items() if name.startswith("nvidia.")
    )
    return gpus or 1
