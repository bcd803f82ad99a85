"""What one round leaves for the next, as text, which is kept in an annotation of the Lease."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from keepalive.prescaler.decide import FloorMemory, PastNeed
from keepalive.prescaler.grant import Grant
from keepalive.prescaler.scale_events import Scale, ScaleEvent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from keepalive.prescaler.grant import Grants


@dataclass(frozen=True, slots=True)
class PrescalerState:
    """What is kept.

    Attributes:
        memory: of decisions.
        grants: the floors that were given, by the name of what has them.
        told: what has been said once and is not to be said again.
        scales: how each target was scaled.
        events: the latest changes of the scale, whoever made them.
    """

    memory: FloorMemory = field(default_factory=FloorMemory)
    grants: Grants = field(default_factory=dict)
    told: tuple[str, ...] = ()
    scales: Mapping[str, Scale] = field(default_factory=dict)
    events: tuple[ScaleEvent, ...] = ()


def dump(kept: PrescalerState) -> str:
    """As JSON; times are in whole seconds since 1970."""
    memory = kept.memory
    return json.dumps(
        {
            "peaks": [[_seconds(peak.at), peak.floor] for peak in memory.peaks],
            "at": None if memory.at is None else _seconds(memory.at),
            "stepped": None if memory.stepped is None else _seconds(memory.stepped),
            "day": None if memory.day is None else memory.day.isoformat(),
            "spent": round(memory.spent, 4),
            "grants": {
                name: {
                    "floor": one.floor,
                    "own": one.own,
                    "before": one.before,
                    "since": _seconds(one.since),
                    "at": _seconds(one.at),
                    "why": one.why,
                    "enough": one.enough,
                }
                for name, one in kept.grants.items()
            },
            "told": kept.told,
            "scales": kept.scales,
            "events": [
                [_seconds(one.at), one.by, one.of, one.what, one.before, one.after, one.why]
                for one in kept.events
            ],
        }
    )


def load(text: str | None) -> PrescalerState:
    """From JSON; what cannot be read is forgotten, which makes decisions slower, never wrong."""
    try:
        told = json.loads(text or "{}")
        memory = FloorMemory(
            peaks=tuple(PastNeed(_time(at), int(floor)) for at, floor in told.get("peaks", ())),
            at=None if told.get("at") is None else _time(told["at"]),
            stepped=None if told.get("stepped") is None else _time(told["stepped"]),
            day=None if told.get("day") is None else date.fromisoformat(told["day"]),
            spent=float(told.get("spent", 0.0)),
        )
        grants = {str(name): _grant(one) for name, one in told.get("grants", {}).items()}
        scales = {str(name): _scale(*one) for name, one in told.get("scales", {}).items()}
        events = tuple(_event(one) for one in told.get("events", ()))
        return PrescalerState(memory, grants, tuple(map(str, told.get("told", ()))), scales, events)
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError, OSError):
        return PrescalerState()


def _grant(told: dict[str, Any]) -> Grant:
    return Grant(
        floor=int(told["floor"]),
        own=int(told["own"]),
        before=None if told["before"] is None else int(told["before"]),
        since=_time(told["since"]),
        at=_time(told["at"]),
        why=str(told["why"]),
        enough=bool(told["enough"]),
    )


def _scale(floor: Any, replicas: Any) -> Scale:
    return Scale(int(floor), None if replicas is None else int(replicas))


def _event(told: list[Any]) -> ScaleEvent:
    at, by, of, what, before, after, why = told
    first = None if before is None else int(before)
    return ScaleEvent(_time(at), str(by), str(of), str(what), first, int(after), str(why))


def _seconds(at: datetime) -> int:
    return round(at.timestamp())


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
