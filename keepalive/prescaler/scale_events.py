"""Who changed the scale: one record of the autoscalers', the pre-scaler's and people's changes.

Each round sees the floor of each target, and how many replicas its autoscaler wants; what differs
from the round before is a change. Several changes of one autoscaler between two rounds are one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from keepalive.cluster.target import Target
    from keepalive.prescaler.grant import Grant

PRESCALER = "prescaler"
PEOPLE = "people"
_MOST = 100
"""Changes that are kept; at some 150 bytes each they are well within an annotation."""


class Scale(NamedTuple):
    """How a target was scaled when it was last seen."""

    floor: int
    replicas: int | None


@dataclass(frozen=True, slots=True)
class ScaleEvent:
    """A change.

    Attributes:
        at: when it was made; when it was seen, where nobody knows better.
        by: `prescaler`, `kpa`, `hpa` or `people`.
        of: the Revision or autoscaler.
        what: `floor`, or `replicas` that are wanted.
        before: replicas; None for what is new.
        after: replicas.
        why: in words; of people, the program that they did it with.
    """

    at: datetime
    by: str
    of: str
    what: str
    before: int | None
    after: int
    why: str


def changes_since(
    targets: Iterable[Target],
    before: Mapping[str, Scale],
    grants: Mapping[str, Grant],
    now: datetime,
) -> list[ScaleEvent]:
    """What others have changed since the last round, or this pre-scaler without having recorded it.

    Args:
        targets: as they are now.
        before: how they were, by name; who is not in it is new.
        grants: the floors that were given from here.
        now: the time.
    """
    made = []
    for each in targets:
        old, grant = before.get(each.name), grants.get(each.name)
        if old is None or old.floor != each.floor:
            first = None if old is None else old.floor
            if grant and grant.floor == each.floor:
                made.append(
                    ScaleEvent(
                        grant.at, PRESCALER, each.name, "floor", first, each.floor, grant.why
                    )
                )
            else:
                who, at = each.changed or ("somebody", now)
                made.append(ScaleEvent(at, PEOPLE, each.name, "floor", first, each.floor, who))
        wanted = each.replicas
        if wanted is not None and wanted != (old.replicas if old else None):
            first = old.replicas if old else None
            why = "the floor" if wanted == each.floor else "demand"
            made.append(ScaleEvent(now, each.scaler, each.name, "replicas", first, wanted, why))
    return made


def latest(events: Iterable[ScaleEvent]) -> tuple[ScaleEvent, ...]:
    """The latest ones, in order of time."""
    return tuple(sorted(events, key=lambda one: one.at)[-_MOST:])
