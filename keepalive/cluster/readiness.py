"""Whether a Service or a Revision is ready, and whether one that is not has failed."""

from __future__ import annotations

from typing import Any

_WAITS = {"Unschedulable", "SchedulingGated"}
"""Why a Revision without a pod is not ready while there is no room for one.

It becomes ready when there is: a node is on its way, or another pod gives up its GPU. What never
comes ends with Knative's own `progress-deadline`, which has another reason.
"""


def condition(thing: dict[str, Any]) -> tuple[str, str]:
    """Whether it is ready ("True", "False", "Unknown"), and why not."""
    found = _ready(thing)
    why = ": ".join(filter(None, map(found.get, ("reason", "message"))))
    return str(found.get("status", "Unknown")), why


def failed(revision: dict[str, Any]) -> bool:
    """Whether a Revision that starts has failed, and does not only wait for a node."""
    found = _ready(revision)
    return found.get("status") == "False" and found.get("reason") not in _WAITS


def _ready(thing: dict[str, Any]) -> dict[str, Any]:
    conditions = thing.get("status", {}).get("conditions") or []
    return next((dict(one) for one in conditions if one["type"] == "Ready"), {})
