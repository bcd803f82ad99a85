"""What a schedule alone asks for at a time: to try one without a cluster."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keepalive.prescaler.schedule import Schedule


def moment(text: str | None, schedule: Schedule) -> datetime:
    """The time that is meant: without an offset by the schedule's clocks, without text now.

    Raises:
        ValueError: it is no time.
    """
    if text is None:
        return datetime.now(UTC)
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=schedule.timezone)


def planned(schedule: Schedule, at: datetime, *, as_json: bool) -> str:
    """The floor that the schedule calls for at a time, in words or as a line of JSON.

    It is the largest of what is wanted until the lead time has passed, as it is raised before.
    """
    then, ahead = schedule.at(at), schedule.ahead(at)
    pools = {pool.tag: pool.floor for pool in schedule.pools}
    minutes = schedule.lead / timedelta(minutes=1)
    if as_json:
        shown = {"at": at.astimezone(schedule.timezone).isoformat(), "floor": ahead.floor}
        shown |= {"why": ahead.why, "scheduled": then.floor, "lead_minutes": minutes}
        return json.dumps(shown | {"pools": pools, "dry_run": True})
    lines = [f"{schedule.local(at)}: the schedule calls for a floor of {ahead.floor}"]
    lines.append(f"  why: {ahead.why}")
    if then.floor != ahead.floor:
        lines.append(f"  then {then.floor} are wanted, and {ahead.floor} within {minutes:g} min")
    lines += [f"  and {floor} for the pool {tag}" for tag, floor in pools.items()]
    return "\n".join(lines)
