"""What becomes of a decision: minimum and maximum, scaling to zero, and the revision's standing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keepalive.planning.kpa.settings import AutoscalerSettings

UNKNOWN = -1
"""Nothing has been decided yet."""
_PATIENCE_S = 30.0
"""How much longer than the progress deadline a revision may take before it is given up."""


class Activation(StrEnum):
    """Where a revision is."""

    ACTIVATING = "activating"
    ACTIVE = "active"
    INACTIVE = "inactive"


@dataclass(frozen=True, slots=True)
class RevisionStatus:
    """What is known of a revision between two reconciliations.

    Attributes:
        activation: where it is.
        since: since when.
        initialised: whether it ever had its first replicas ready.
        proxied_since: since when the activator is in the path, if it is.
    """

    activation: Activation = Activation.ACTIVATING
    since: int = 0
    initialised: bool = False
    proxied_since: int | None = None


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What follows.

    Attributes:
        status: of the revision.
        want: replicas; `UNKNOWN` before anything is known.
        replicas: what the Deployment is set to.
    """

    status: RevisionStatus
    want: int
    replicas: int


def reconcile(
    settings: AutoscalerSettings,
    status: RevisionStatus,
    now: int,
    *,
    desired: int,
    excess_burst_capacity: int,
    ready: int,
    replicas: int,
    floor: int | None = None,
) -> Reconciled:
    """Apply what was decided last.

    Args:
        settings: of the revision.
        status: before.
        now: seconds.
        desired: replicas that were decided, or `UNKNOWN`.
        excess_burst_capacity: the excess burst capacity.
        ready: replicas that are ready.
        replicas: what the Deployment is set to.
        floor: the minimum that applies now; None for that of the settings.
    """
    floor = settings.min_scale if floor is None else floor
    want, applied = _wanted(settings, status, now, desired, floor)
    unknown = want == UNKNOWN and status.activation is Activation.INACTIVE
    proxying = want == 0 or excess_burst_capacity < 0 or unknown
    since = status.proxied_since if status.proxied_since is not None else now
    status = replace(status, proxied_since=since if proxying else None)
    needed = max(floor, 1 if status.initialised else settings.initial_scale)
    if ready >= needed:
        status = replace(status, initialised=True)
    standing = _standing(status.activation, want, ready, needed)
    if standing is not status.activation:
        status = replace(status, activation=standing, since=now)
    return Reconciled(status, want, want if applied else replicas)


def _wanted(
    settings: AutoscalerSettings, status: RevisionStatus, now: int, desired: int, floor: int
) -> tuple[int, bool]:
    """How many, and whether that is to be applied."""
    if desired == UNKNOWN and status.activation is not Activation.ACTIVATING:
        return UNKNOWN, False
    if settings.initial_scale > 1 and not status.initialised:
        floor = max(floor, settings.initial_scale)
    want = max(desired, floor)
    if settings.max_scale:
        want = min(want, settings.max_scale)
    return (want, True) if want else _zero(settings, status, now)


def _zero(settings: AutoscalerSettings, status: RevisionStatus, now: int) -> tuple[int, bool]:
    """Whether none may be wanted, and whether the last replica may go.

    A revision that became active stays so for one stable window. Then it is inactive, and the last
    replica goes when the activator has been in the path for the grace period, so that no request
    meets a closed door, and when the retention is over.
    """
    if not settings.scale_to_zero:
        return 1, True
    lasted = now - status.since
    if status.activation is Activation.ACTIVATING:
        given_up = lasted >= settings.progress_deadline_s + _PATIENCE_S
        return (0, True) if given_up else (UNKNOWN, False)
    if status.activation is Activation.ACTIVE:
        return (0, False) if lasted >= settings.stable_window_s else (1, True)
    proxied = now - status.proxied_since if status.proxied_since is not None else 0
    return 0, lasted >= settings.pod_retention_s and max(
        lasted, proxied
    ) >= settings.scale_to_zero_grace_s


def _standing(before: Activation, want: int, ready: int, needed: int) -> Activation:
    if want == 0 or needed == 0:
        return Activation.INACTIVE
    if want == UNKNOWN and before is Activation.INACTIVE:
        return Activation.INACTIVE
    return Activation.ACTIVE if ready >= needed else Activation.ACTIVATING
