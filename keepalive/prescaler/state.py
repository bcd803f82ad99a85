"""What one round leaves for the next, as text, which is kept in an annotation of the Lease."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from keepalive.prescaler.decide import FloorMemory, PastNeed
from keepalive.prescaler.grant import Grant
from keepalive.prescaler.scale_events import Scale, ScaleEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from keepalive.prescaler.grant import Grants

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class PrescalerState:
    """What is kept.

    Attributes:
        memory: of decisions.
        grants: the floors that were given, by the name of what has them.
        noted: of which targets the notes were written, which are written once.
        scales: how each target was scaled.
        events: the latest changes of the scale, whoever made them.
    """

    memory: FloorMemory = field(default_factory=FloorMemory)
    grants: Grants = field(default_factory=dict)
    noted: tuple[str, ...] = ()
    scales: Mapping[str, Scale] = field(default_factory=dict)
    events: tuple[ScaleEvent, ...] = ()


def dump(state: PrescalerState) -> str:
    """As JSON; times are in whole seconds since 1970."""
    memory = state.memory
    return json.dumps(
        {
            "peaks": [[_seconds(need.at), need.floor] for need in memory.past_needs],
            "at": _maybe(_seconds, memory.at),
            "stepped": _maybe(_seconds, memory.lowered_at),
            "day": _maybe(date.isoformat, memory.day),
            "spent": round(memory.spent_gpu_hours, 4),
            "grants": {
                name: {
                    "floor": one.floor,
                    "own": one.original,
                    "before": one.before,
                    "since": _seconds(one.since),
                    "at": _seconds(one.at),
                    "why": one.why,
                    "enough": one.reduced,
                }
                for name, one in state.grants.items()
            },
            "told": state.noted,
            "scales": state.scales,
            "events": [
                [_seconds(one.at), one.by, one.of, one.what, one.before, one.after, one.why]
                for one in state.events
            ],
        }
    )


def load(text: str | None) -> PrescalerState:
    """From JSON; what cannot be read is forgotten, which makes decisions slower, never wrong."""
    try:
        parsed = json.loads(text or "{}")
        memory = FloorMemory(
            past_needs=tuple(
                PastNeed(_time(at), int(floor)) for at, floor in parsed.get("peaks", ())
            ),
            at=_maybe(_time, parsed.get("at")),
            lowered_at=_maybe(_time, parsed.get("stepped")),
            day=_maybe(date.fromisoformat, parsed.get("day")),
            spent_gpu_hours=float(parsed.get("spent", 0.0)),
        )
        return PrescalerState(
            memory,
            grants={str(name): _grant(one) for name, one in parsed.get("grants", {}).items()},
            noted=tuple(map(str, parsed.get("told", ()))),
            scales={
                str(name): Scale(int(floor), _maybe(int, replicas))
                for name, (floor, replicas) in parsed.get("scales", {}).items()
            },
            events=tuple(_event(one) for one in parsed.get("events", ())),
        )
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError, OSError):
        return PrescalerState()


def _grant(parsed: dict[str, Any]) -> Grant:
    return Grant(
        floor=int(parsed["floor"]),
        original=int(parsed["own"]),
        before=_maybe(int, parsed["before"]),
        since=_time(parsed["since"]),
        at=_time(parsed["at"]),
        why=str(parsed["why"]),
        reduced=bool(parsed["enough"]),
    )


def _event(parsed: list[Any]) -> ScaleEvent:
    at, by, of, what, before, after, why = parsed
    first = _maybe(int, before)
    return ScaleEvent(_time(at), str(by), str(of), str(what), first, int(after), str(why))


def _maybe(read: Callable[[Any], _Read], value: Any) -> _Read | None:
    """None for None, else what is read."""
    return None if value is None else read(value)


def _seconds(at: datetime) -> int:
    return round(at.timestamp())


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
