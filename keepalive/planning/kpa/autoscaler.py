"""One revision's autoscaler over time: it takes reports of load and says how many replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepalive.planning.kpa import decider, scaler
from keepalive.planning.kpa.decider import KpaObservation
from keepalive.planning.kpa.settings import Averaging
from keepalive.planning.kpa.windows import TimedBuckets, WeightedBuckets

if TYPE_CHECKING:
    from keepalive.planning.kpa.scaler import Reconciled
    from keepalive.planning.kpa.settings import AutoscalerSettings


class Autoscaler:
    """It starts with a new revision, of which the first replicas are being made.

    Args:
        settings: of the revision.
        ready: replicas that are ready already, when it takes over a running revision.

    Attributes:
        desired: what was decided last.
        excess_burst_capacity: as of the last decision (`ScaleResult`).
        status: of the revision.
        stable: average over the stable window at the last tick; None without data.
        panic: average over the panic window at the last tick; None without data.
    """

    def __init__(self, settings: AutoscalerSettings, ready: int = 0) -> None:
        self._settings = settings
        kind = WeightedBuckets if settings.averaging is Averaging.EXPONENTIAL else TimedBuckets
        self._stable = kind(settings.stable_window_s)
        self._panic = kind(settings.panic_window_s)
        self._state = decider.initial_state(0, ready)
        self.desired = scaler.UNKNOWN
        self.excess_burst_capacity = decider.initial_excess_burst_capacity(settings)
        self.status = scaler.RevisionStatus()
        self.stable: float | None = None
        self.panic: float | None = None

    @classmethod
    def running(cls, settings: AutoscalerSettings, ready: int) -> Autoscaler:
        """For a revision that has been running, with that many replicas or scaled to zero."""
        autoscaler = cls(settings, ready)
        activation = scaler.Activation.ACTIVE if ready else scaler.Activation.INACTIVE
        autoscaler.status = scaler.RevisionStatus(activation, initialised=True, proxied_since=0)
        autoscaler.desired = ready
        return autoscaler

    @property
    def panicking(self) -> bool:
        """Whether it panics."""
        return self._state.panic_time is not None

    @property
    def activator_in_path(self) -> bool:
        """Whether the activator is in the path."""
        return self.status.proxied_since is not None

    def report(self, now: int, load: float) -> None:
        """Take the load of this second, of all replicas together."""
        self._stable.record(now, load)
        self._panic.record(now, load)

    def tick(self, now: int, ready: int) -> None:
        """Decide; without data everything stays as it was."""
        self.stable = self.panic = None
        if self._stable.empty(now):
            return
        self.stable, self.panic = self._stable.average(now), self._panic.average(now)
        observed = KpaObservation(now, self.stable, self.panic, ready)
        decision = decider.decide(self._settings, observed, self._state)
        self.desired, self._state = decision.desired, decision.state
        self.excess_burst_capacity = decision.excess_burst_capacity

    def reconcile(
        self, now: int, ready: int, replicas: int, floor: int | None = None
    ) -> Reconciled:
        """Apply what was decided last; the arguments are those of `scaler.reconcile`."""
        scaled = scaler.reconcile(
            self._settings,
            self.status,
            now,
            desired=self.desired,
            excess_burst_capacity=self.excess_burst_capacity,
            ready=ready,
            replicas=replicas,
            floor=floor,
        )
        self.status = scaled.status
        return scaled
