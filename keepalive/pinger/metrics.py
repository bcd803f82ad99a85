"""The metrics of a ping."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from keepalive.pinger.check import PingResult


def registry(found: PingResult, now: float) -> CollectorRegistry:
    """What a ping has found out."""
    from prometheus_client import CollectorRegistry, Gauge

    from keepalive.pinger.check import PingOutcome

    made = CollectorRegistry()
    outcomes = Gauge("ember_ping", "1 for what the last ping found.", ["outcome"], registry=made)
    for outcome in PingOutcome:
        outcomes.labels(outcome).set(outcome is found.outcome)
    Gauge("ember_ping_time_seconds", "When the last ping ended.", registry=made).set(now)
    if found.outcome is PingOutcome.WELL:
        well = Gauge("ember_ping_well_time_seconds", "When a ping was last well.", registry=made)
        well.set(now)
    if found.answer:
        ready = Gauge("ember_ping_ready_seconds", "Time of /readyz's answer.", registry=made)
        ready.set(found.answer.latency_s)
    if found.swapped:
        swap = Gauge("ember_ping_swap_seconds", "Time of the tiny swap.", registry=made)
        swap.set(found.swapped.latency_s)
    return made
