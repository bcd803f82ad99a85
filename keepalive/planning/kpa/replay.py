"""A load through the autoscaler: what it decides at each tick, as rows of a table.

Replicas are ready a fixed time after they are wanted, and gone at once when they are not; those
that are not ready go first. Reports come every second and land just before the tick; when load
meets no replica, the activator reports it at once. Between ticks the revision is looked at every
second, since a replica that becomes ready, or a period that ends, brings a look of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepalive.planning.kpa.autoscaler import Autoscaler
from keepalive.planning.kpa.decider import TICK_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from keepalive.planning.kpa.settings import AutoscalerSettings

COLUMNS = (
    "t", "load", "ready", "replicas", "stable", "panic", "panicking", "desired", "ebc", "want",
    "activator", "pa",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """One tick.

    Attributes:
        t: seconds.
        load: at that time.
        ready: replicas that were ready.
        replicas: what the Deployment is set to.
        stable: average over the stable window; None without data.
        panic: average over the panic window; None without data.
        panicking: whether it panics.
        desired: what was decided last; -1 for nothing yet.
        excess_burst_capacity: as of the last decision (`ScaleResult`).
        want: replicas wanted; -1 for not known yet.
        activator_in_path: whether the activator is in the path.
        activation: of the revision.
    """

    t: int
    load: float
    ready: int
    replicas: int
    stable: float | None
    panic: float | None
    panicking: bool
    desired: int
    excess_burst_capacity: int
    want: int
    activator_in_path: bool
    activation: str

    def plain(self) -> tuple[str, ...]:
        """The cells, in the order of `COLUMNS`."""
        return (
            str(self.t),
            str(int(self.load)) if self.load.is_integer() else repr(self.load),
            str(self.ready),
            str(self.replicas),
            "NaN" if self.stable is None else f"{self.stable:.4f}",
            "NaN" if self.panic is None else f"{self.panic:.4f}",
            str(int(self.panicking)),
            str(self.desired),
            str(self.excess_burst_capacity),
            str(self.want),
            "in" if self.activator_in_path else "out",
            self.activation,
        )


def replay(
    steps: Sequence[tuple[float, float]],
    settings: AutoscalerSettings,
    cold_start_s: float,
    until: int,
) -> Iterator[ReplayRow]:
    """Run a new revision under a load.

    Args:
        steps: (seconds, load from then on), by time; before the first there is none.
        settings: of the revision.
        cold_start_s: seconds from when a replica is wanted until it is ready.
        until: the last second.
    """
    autoscaler = Autoscaler(settings)
    pods = [cold_start_s] * settings.initial_scale  # when each is ready, by time
    load, step = 0.0, 0
    for now in range(until + 1):
        while step < len(steps) and steps[step][0] <= now:
            load = steps[step][1]
            step += 1
        ready = sum(1 for at in pods if at <= now)
        if ready or load:
            autoscaler.report(now, load)
        ticks = now % TICK_S == 0
        if ticks or (load and not ready and autoscaler.desired == 0):
            autoscaler.tick(now, ready)
        scaled = autoscaler.reconcile(now, ready, len(pods))
        more = scaled.replicas - len(pods)
        pods = pods[: scaled.replicas] + [now + cold_start_s] * more
        if ticks:
            yield ReplayRow(
                now,
                load,
                ready,
                scaled.replicas,
                autoscaler.stable,
                autoscaler.panic,
                autoscaler.panicking,
                autoscaler.desired,
                autoscaler.excess_burst_capacity,
                scaled.want,
                autoscaler.activator_in_path,
                str(autoscaler.status.activation),
            )
