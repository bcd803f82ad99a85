"""The floor of a plain Deployment: minReplicas of its HorizontalPodAutoscaler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepalive.cluster.client import Missing, Resource
from keepalive.cluster.target import Target, held, last_change
from keepalive.failure import Exit, Failure

if TYPE_CHECKING:
    from keepalive.cluster.client import Cluster


def scaler(cluster: Cluster, name: str) -> Target:
    """Read a HorizontalPodAutoscaler.

    Raises:
        Failure: there is none.
    """
    try:
        found = cluster.get(Resource.SCALER, name)
    except Missing:
        raise Failure(
            f"There is no HorizontalPodAutoscaler {name} in the namespace {cluster.namespace}.",
            Exit.CONFIG,
        ) from None
    return Target(
        resource=Resource.SCALER,
        name=name,
        version=found["metadata"]["resourceVersion"],
        uid=found["metadata"]["uid"],
        floor=found["spec"].get("minReplicas", 1),
        min_floor=1,
        max_floor=found["spec"]["maxReplicas"],
        held=held(found),
        replicas=found.get("status", {}).get("desiredReplicas"),
        scaler="hpa",
        changed=last_change(found, "spec", "minReplicas"),
    )
