"""With how many replicas a new revision starts: with as many as serve now.

A revision that starts with one takes all traffic with that one as soon as it is ready, however many
there were before; and what a pre-scaler or a person has raised is not in the template.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from keepalive.cluster.target import annotations_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SCALING = "autoscaling.knative.dev/"
INITIAL_SCALE = f"{_SCALING}initial-scale"
MIN_SCALE = f"{_SCALING}min-scale"
ACTIVATION_SCALE = f"{_SCALING}activation-scale"
_ALIASES = {"initial-scale": "initialScale", "min-scale": "minScale", "max-scale": "maxScale"}
WHOLE = 100


def replicas(revision: dict[str, Any]) -> int:
    """How many replicas of a revision are ready."""
    return int(revision.get("status", {}).get("actualReplicas") or 0)


def floor(revision: dict[str, Any]) -> int:
    """The min-scale of a revision, as it may have been raised since it was made."""
    return least(annotations_of(revision))


def least(annotations: Mapping[str, str]) -> int:
    """The min-scale among annotations."""
    return _value(annotations, "min-scale", 0)


def needed(revisions: Iterable[dict[str, Any]], template: Mapping[str, str]) -> int:
    """With how many replicas a new revision can take over from those that serve.

    At least what its template says itself, at most its `max-scale`: with more it would never be
    ready.

    Args:
        revisions: those that have traffic.
        template: annotations of the new one.
    """
    serving = sum(max(floor(revision), replicas(revision)) for revision in revisions)
    own = max(_value(template, "initial-scale", 1), least(template))
    return bounded(max(1, own, serving), template)


def starts_empty(template: Mapping[str, str]) -> bool:
    """Whether a new revision counts as ready without a replica, as where there is one GPU.

    Knative waits for the larger of `initial-scale` and `min-scale`.
    """
    return max(_value(template, "initial-scale", 1), least(template)) == 0


def bounded(count: int, annotations: Mapping[str, str]) -> int:
    """No more than `max-scale`, whose 0 is no limit."""
    return min(count, _value(annotations, "max-scale", 0) or count)


def share(count: int, percent: float) -> int:
    """How many replicas a part of the traffic needs, when all of it needs so many."""
    return math.ceil(count * percent / WHOLE)


def floor_patch(revision: dict[str, Any], count: int) -> dict[str, Any]:
    """The patch that gives a revision a floor; `activation-scale` may not be below it."""
    annotations = {MIN_SCALE: str(count)}
    if 0 < _value(annotations_of(revision), "activation-scale", 0) < count:
        annotations[ACTIVATION_SCALE] = str(count)
    return {"metadata": {"annotations": annotations}}


def _value(annotations: Mapping[str, str], name: str, default: int) -> int:
    """A whole number among annotations, by its name or by the older one that Knative takes too."""
    old = annotations.get(_SCALING + _ALIASES.get(name, name), default)
    return int(annotations.get(_SCALING + name, old))
