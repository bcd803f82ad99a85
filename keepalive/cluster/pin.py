"""Whether the traffic of a Knative Service is pinned: given to Revisions by their names.

A changed template then makes a Revision that gets no requests, and nothing says so: neither
`kubectl apply` nor `kn service update`. Whoever pins has to unpin, and whoever meets a pin tells.
"""

from __future__ import annotations

from typing import Any

from keepalive.cluster.target import annotations_of

ROLLOUT = "ember.dev/rollout"
"""The annotation of a Service that a rollout keeps on it while it is under way."""
UNPIN = "ember.dev/unpin"
"""The annotation that a deployment keeps on a Service until it has unpinned it: it may go on."""


def named(service: dict[str, Any]) -> tuple[str, ...]:
    """The Revisions that `spec.traffic` gives requests to by name."""
    return tuple(
        str(part["revisionName"])
        for part in service["spec"].get("traffic") or []
        if part.get("percent") and part.get("revisionName")
    )


def pinned(service: dict[str, Any]) -> tuple[str, ...]:
    """The Revisions that have all requests by name; none where the latest one has a part."""
    parts = service["spec"].get("traffic") or []
    follows = any(part.get("percent") and not part.get("revisionName") for part in parts)
    return () if follows else named(service)


def complaint(service: dict[str, Any]) -> str | None:
    """What a pin means and how it is undone, in words; None where nothing is pinned.

    A rollout that is under way pins for its own time, which is nothing to complain of.
    """
    names = pinned(service)
    if not names or ROLLOUT in annotations_of(service):
        return None
    name = service["metadata"]["name"]
    return (
        f"The traffic of {name} is pinned to {' and '.join(names)} by name, as after a rollout that"
        " was undone: a new template gets none of it. `ember rollout --unpin` says how that ends,"
        " and ends it where that is safe."
    )
