"""What the pre-scaler has given to whom, and what it gives to others than the main Revision.

Grants are kept with the Lease, as a Revision cannot carry anything but its floor. A floor counts as
given from here while it still is what was given: one that somebody has changed since is theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from keepalive.cluster.knative import Share
    from keepalive.cluster.target import Target

_MOST = 20
"""Grants that are remembered; a Service has a few Revisions that requests can reach."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A floor that was given to a target.

    Attributes:
        floor: replicas.
        original: the floor that it had before the first grant.
        before: the floor of the grant before, which it still has if this one was not carried out;
            None for the first.
        since: when the first was given.
        at: when this one was.
        why: in words.
        reduced: whether it got less again because it did not become ready with more.
    """

    floor: int
    original: int
    before: int | None
    since: datetime
    at: datetime
    why: str
    reduced: bool = False


Grants: TypeAlias = "Mapping[str, Grant]"
"""By the name of the target."""


def current(grants: Grants, target: Target) -> Grant | None:
    """The grant that the target's floor comes from; None when it comes from somebody else."""
    grant = grants.get(target.name)
    return grant if grant and target.floor in {grant.floor, grant.before} else None


class FloorStep(NamedTuple):
    """A floor that a target is to have, and whether it is reduced (`Grant.reduced`)."""

    target: Target
    floor: int
    why: str
    reduced: bool = False


def with_grant(grants: Grants, step: FloorStep, now: datetime) -> dict[str, Grant]:
    """The grants with one more, or with another one for the same target; the latest are kept."""
    target, floor, why, reduced = step
    if old := current(grants, target):
        reduced = reduced or old.reduced
        made = Grant(floor, old.original, target.floor, old.since, now, why, reduced)
    else:
        made = Grant(floor, target.floor, None, now, now, why, reduced)
    others = {name: one for name, one in grants.items() if name != target.name}
    latest = sorted({**others, target.name: made}.items(), key=lambda item: item[1].at)
    return dict(latest[-_MOST:])


def step_beside(
    share: Share, main: int, grant: Grant | None, now: datetime, lead: timedelta
) -> FloorStep | None:
    """The floor for another Revision than the main one; None to leave it as it is.

    One that is not ready yet gets its floor before it gets traffic, and with that Knative waits for
    as many replicas. When they do not all come, as there is no room for them, it gets what it had
    before, or what has come; else it would never become ready.

    A worked example: the main Revision has a floor of 8, and a new one with an original floor of 1
    is to have half of the traffic, so it gets 4. There is room for 3. After the lead time, or half
    of Knative's progress deadline if that is shorter, it gets 3, becomes ready with those, and
    keeps them as reduced, so that it is not made to wait for 4 again.

    Args:
        share: the Revision.
        main: the floor of the main one.
        grant: that its floor comes from.
        now: the time.
        lead: how long replicas take to become ready.
    """
    start, wanted = share.start, share.wanted(main)
    if start is None:
        if wanted is not None:
            return FloorStep(share.target, wanted, _why(share, main))
        # Without traffic its floor is of no use, unless somebody else has given it that.
        return FloorStep(share.target, 0, "it has no traffic any more") if grant else None
    if start.empty or wanted is None:
        return None
    late = grant is not None and now - grant.since > min(lead, start.patience)
    if start.failed or late or (grant and grant.reduced):
        if grant is None:
            return None
        why = f"{start.up} of {grant.floor} have come"
        return FloorStep(share.target, max(grant.original, start.up), why, reduced=True)
    why = f"before it gets traffic: {_why(share, main)}"
    return FloorStep(share.target, max(wanted, share.target.floor), why)


def _why(share: Share, main: int) -> str:
    if share.floor is not None:
        return "the floor of its pool"
    return f"{share.percent:g}% of the traffic, for which {main} replicas are wanted"
