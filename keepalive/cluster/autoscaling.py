"""Annotations of Knative's autoscaler: their names, older spellings included, and their values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "autoscaling.knative.dev/"
MIN_SCALE = f"{PREFIX}min-scale"
INITIAL_SCALE = f"{PREFIX}initial-scale"
ACTIVATION_SCALE = f"{PREFIX}activation-scale"
KPA, HPA = "kpa.autoscaling.knative.dev", "hpa.autoscaling.knative.dev"
"""Values of the annotation `class`."""


def alias(name: str) -> str:
    """The older spelling of a name: `max-scale` was `maxScale`."""
    return re.sub("-([a-z])", lambda found: found[1].upper(), name)


def setting(annotations: Mapping[str, str], name: str) -> str | None:
    """The value of an annotation by its name without the prefix, in either spelling, or None."""
    found = annotations.get(PREFIX + name)
    return found if found is not None else annotations.get(PREFIX + alias(name))


def scale(annotations: Mapping[str, str], name: str, default: int = 0) -> int:
    """The number of replicas that an annotation such as `min-scale` has."""
    return int(setting(annotations, name) or default)


def started_with(annotations: Mapping[str, str]) -> int:
    """How many replicas Knative waits for before a new Revision counts as ready."""
    return max(scale(annotations, "initial-scale", 1), scale(annotations, "min-scale"))


def floor_annotations(floor: int, activation: int) -> dict[str, str]:
    """The annotations that give a Revision a floor.

    Knative refuses an `activation-scale` (0 where there is none) below `min-scale`.
    """
    annotations = {MIN_SCALE: str(floor)}
    if activation:
        annotations[ACTIVATION_SCALE] = str(max(activation, floor))
    return annotations
