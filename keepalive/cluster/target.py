"""What has a floor, and how it is changed: nothing but the floor, with an Event that says why.

All annotations of a Revision but those of autoscaling are copied into its pods, and pods whose
template changes are replaced. So nothing else is ever written there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from keepalive.cluster.autoscaling import floor_annotations
from keepalive.cluster.client import Cluster, Resource
from keepalive.failure import Failure

HOLD = "ember.dev/hold"
EARLIER = ("ember.dev/floor-reason", "ember.dev/floor-changed")
"""What earlier versions of Ember have left on Revisions; removing it may replace pods as well."""
_COMPONENT = "ember-prescale"
_MOST_MESSAGE = 1000


@dataclass(frozen=True, slots=True)
class Target:
    """What has a floor: a Revision, or a HorizontalPodAutoscaler.

    Attributes:
        resource: which of them.
        name: its own.
        version: its `resourceVersion` when it was read.
        uid: its own.
        floor: as it is.
        min_floor: the lowest floor that it may have.
        max_floor: the highest; None for any.
        per_replica: how many requests its autoscaler means a replica to have at once; None when it
            does not reckon in requests.
        gpus: of one replica; 1 for one that has none.
        activation: how many replicas are to come when there are none; None when that is not said.
        held: why a person has stopped changes.
        replicas: how many its autoscaler wants now; None when it does not say.
        scaler: which autoscaler that is: `kpa` or `hpa`.
        changed: who has changed the floor last, and when; None when nobody knows.
        left: annotations that earlier versions of Ember, or people for them, have left on it, and
            that stop nothing any more.
    """

    resource: Resource
    name: str
    version: str
    uid: str
    floor: int
    min_floor: int = 0
    max_floor: int | None = None
    per_replica: float | None = None
    gpus: int = 1
    activation: int | None = None
    held: str | None = None
    replicas: int | None = None
    scaler: str = "kpa"
    changed: tuple[str, datetime] | None = None
    left: tuple[str, ...] = ()


def change(cluster: Cluster, target: Target, floor: int, why: str, now: datetime) -> Failure | None:
    """Give a target another floor, unless it has been changed since it was read.

    Returns:
        Why there is no Event, if there is none; the floor has been changed all the same.

    Raises:
        Conflict: it has been changed meanwhile.
        Missing: it is gone.
        Failure: it is not allowed, or not possible.
    """
    patch: dict[str, Any] = {"spec": {"minReplicas": floor}}
    if target.resource is Resource.REVISION:
        annotations = floor_annotations(floor, target.activation or 0)
        patch = {"metadata": {"annotations": annotations}}
    cluster.patch(target.resource, target.name, patch, version=target.version)
    try:
        _tell(cluster, target, f"Warm floor from {target.floor} to {floor}: {why}", now)
    except Failure as failure:
        return failure
    return None


def held(thing: dict[str, Any]) -> str | None:
    """Why a person has stopped changes to an object: a Service or an autoscaler."""
    value = annotations_of(thing).get(HOLD, "false")
    if value == "false":
        return None
    reason = f": {value}" if value not in {"", "true"} else ""
    return f"{HOLD} is set on {thing['kind']} {thing['metadata']['name']}{reason}"


def last_change(thing: dict[str, Any], *path: str) -> tuple[str, datetime] | None:
    """The program that has changed a field last and when, as the API server keeps it."""
    for entry in thing["metadata"].get("managedFields") or ():
        place: Any = entry.get("fieldsV1")
        for name in path:
            place = (place or {}).get(f"f:{name}")
        if place is not None and entry.get("time"):
            at = datetime.fromisoformat(entry["time"])
            return str(entry.get("manager", "somebody")), at
    return None


def left(revision: dict[str, Any]) -> tuple[str, ...]:
    """The annotations that earlier versions of Ember have left on a Revision (`Target.left`)."""
    annotations = annotations_of(revision)
    old = tuple(name for name in EARLIER if name in annotations)
    return old if annotations.get(HOLD, "false") == "false" else (HOLD, *old)


def annotations_of(thing: dict[str, Any]) -> dict[str, str]:
    """The annotations of an object."""
    return thing["metadata"].get("annotations") or {}


def _tell(cluster: Cluster, target: Target, message: str, now: datetime) -> None:
    group, version, kind, _ = target.resource.value
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    cluster.create(
        Resource.EVENT,
        {
            "metadata": {"generateName": f"{target.name}."},
            "type": "Normal",
            "reason": "WarmFloorChanged",
            "message": message[:_MOST_MESSAGE],
            "involvedObject": {
                "apiVersion": f"{group}/{version}",
                "kind": kind,
                "name": target.name,
                "namespace": cluster.namespace,
                "uid": target.uid,
            },
            "source": {"component": _COMPONENT},
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        },
    )
