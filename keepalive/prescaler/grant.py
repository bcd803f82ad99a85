"""What the pre-scaler has given to whom, and what it gives to a Revision beside the main one.

Grants are kept with the Lease, as a Revision cannot carry anything but its floor. A floor counts as
given from here while it still is what was given: one that somebody has changed since is theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

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
        own: the floor that it had before the first grant.
        before: the floor of the grant before, which it still has if this one was not carried out;
            None for the first.
        since: when the first was given.
        at: when this one was.
        why: in words.
        enough: whether it got less again because it did not become ready with more.
    """

    floor: int
    own: int
    before: int | None
    since: datetime
    at: datetime
    why: str
    enough: bool = False


Grants: TypeAlias = "Mapping[str, Grant]"
"""By the name of the target."""


def current(grants: Grants, target: Target) -> Grant | None:
    """The grant that the target's floor comes from; None when it comes from somebody else."""
    grant = grants.get(target.name)
    return grant if grant and target.floor in {grant.floor, grant.before} else None


def with_grant(
    grants: Grants, target: Target, floor: int, why: str, now: datetime, *, enough: bool = False
) -> dict[str, Grant]:
    """The grants with one more, or with another one for the same target; the latest are kept."""
    if old := current(grants, target):
        enough = enough or old.enough
        made = Grant(floor, old.own, target.floor, old.since, now, why, enough)
    else:
        made = Grant(floor, target.floor, None, now, now, why, enough)
    others = {name: one for name, one in grants.items() if name != target.name}
    latest = sorted({**others, target.name: made}.items(), key=lambda item: item[1].at)
    return dict(latest[-_MOST:])


def floor_beside(
    share: Share, main: int, grant: Grant | None, now: datetime, lead: timedelta
) -> tuple[int, str, bool] | None:
    """The floor of a Revision beside the main one, why, and whether it has to be enough.

    One that is not ready yet gets its floor before it gets traffic, and with that Knative waits for
    as many replicas. When they do not all come, as there is no room for them, it gets what it had
    before, or what has come; else it would never become ready.

    Args:
        share: the Revision.
        main: the floor of the main one.
        grant: that its floor comes from.
        now: the time.
        lead: how long replicas take to become ready.

    Returns:
        None to leave it as it is.
    """
    start, wanted = share.start, share.wanted(main)
    if start is None:
        if wanted is None:  # no traffic: of no use, unless somebody else has given it its floor
            return (0, "it has no traffic any more", False) if grant else None
        return wanted, _why(share, main), False
    if start.empty or wanted is None:
        return None
    late = grant is not None and now - grant.since > min(lead, start.patience)
    if start.failed or late or (grant and grant.enough):
        if grant is None:
            return None
        return max(grant.own, start.up), f"{start.up} of {grant.floor} have come", True
    return max(wanted, share.target.floor), f"before it gets traffic: {_why(share, main)}", False


def _why(share: Share, main: int) -> str:
    if share.floor is not None:
        return "the floor of its pool"
    return f"{share.percent:g}% of the traffic, for which {main} replicas are wanted"
