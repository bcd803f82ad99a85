"""Whether the traffic of a Knative Service is pinned: given to Revisions by their names.

A changed template then makes a Revision that gets no requests, and nothing says so: neither
`kubectl apply` nor `kn service update`. Whoever pins has to unpin, and whoever meets a pin tells.
"""

from __future__ import annotations

from typing import Any


def pinned(service: dict[str, Any]) -> tuple[str, ...]:
    """The Revisions that `spec.traffic` gives requests to by name; none where nothing is pinned."""
    parts = service["spec"].get("traffic") or []
    return tuple(
        str(part["revisionName"])
        for part in parts
        if part.get("percent") and part.get("revisionName")
    )


def complaint(service: dict[str, Any]) -> str | None:
    """What a pin means and how it is undone, in words; None where nothing is pinned."""
    if not (names := pinned(service)):
        return None
    name = service["metadata"]["name"]
    return (
        f"The traffic of {name} is pinned to {' and '.join(names)} by name, as after a rollout that"
        " was undone: a new template gets none of it. `ember rollout --unpin` says how that ends,"
        " and ends it where that is safe."
    )
