"""With how many replicas a new revision starts: with as many as serve now.

A revision that starts with one takes all traffic with that one as soon as it is ready, however many
there were before; and what a pre-scaler or a person has raised is not in the template.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from keepalive.cluster.autoscaling import (
    ACTIVATION_SCALE,
    floor_annotations,
    scale,
    started_with,
)
from keepalive.cluster.target import annotations_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

WHOLE = 100


def replicas(revision: dict[str, Any]) -> int:
    """How many replicas of a revision are ready."""
    return int(revision.get("status", {}).get("actualReplicas") or 0)


def floor(revision: dict[str, Any]) -> int:
    """The min-scale of a revision, as it may have been raised since it was made."""
    return scale(annotations_of(revision), "min-scale")


def needed(revisions: Iterable[dict[str, Any]], template: Mapping[str, str]) -> int:
    """With how many replicas a new revision can take over from those that serve.

    At least what its template says itself, at most its `max-scale`: with more it would never be
    ready.
    """
    serving = sum(max(floor(revision), replicas(revision)) for revision in revisions)
    return bounded(max(1, started_with(template), serving), template)


def bounded(count: int, annotations: Mapping[str, str]) -> int:
    """No more than `max-scale`; 0 is no limit."""
    return min(count, scale(annotations, "max-scale") or count)


def share(count: int, percent: float) -> int:
    """How many replicas a part of the traffic needs, when all of it needs so many."""
    return math.ceil(count * percent / WHOLE)


def floor_patch(revision: dict[str, Any], count: int) -> dict[str, Any]:
    """The patch that gives a revision a floor."""
    activation = int(annotations_of(revision).get(ACTIVATION_SCALE, 0))
    return {"metadata": {"annotations": floor_annotations(count, activation)}}
