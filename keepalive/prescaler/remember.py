"""The memory of a decision as text, which is kept in an annotation."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

from keepalive.prescaler.decide import Memory, Peak


def dump(memory: Memory) -> str:
    """As JSON; times are in whole seconds since 1970."""
    return json.dumps(
        {
            "peaks": [[_seconds(peak.at), peak.floor] for peak in memory.peaks],
            "at": None if memory.at is None else _seconds(memory.at),
            "stepped": None if memory.stepped is None else _seconds(memory.stepped),
            "day": None if memory.day is None else memory.day.isoformat(),
            "spent": round(memory.spent, 4),
        }
    )


def load(text: str | None) -> Memory:
    """From JSON; what cannot be read is forgotten, which makes decisions slower, never wrong."""
    try:
        told = json.loads(text or "{}")
        return Memory(
            peaks=tuple(Peak(_time(at), int(floor)) for at, floor in told.get("peaks", ())),
            at=None if told.get("at") is None else _time(told["at"]),
            stepped=None if told.get("stepped") is None else _time(told["stepped"]),
            day=None if told.get("day") is None else date.fromisoformat(told["day"]),
            spent=float(told.get("spent", 0.0)),
        )
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError, OSError):
        return Memory()


def _seconds(at: datetime) -> int:
    return round(at.timestamp())


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
