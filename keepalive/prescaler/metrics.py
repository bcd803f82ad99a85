"""The metrics of a round of the pre-scaler: the pool's two layers, the forecast, the floor."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from keepalive.prescaler.prescaler import Round

_MODEL = {
    "ready": ("ember_pool_ready_replicas", "Replicas that take traffic."),
    "warming": ("ember_pool_warming_replicas", "Replicas on their way to ready."),
    "in_flight": ("ember_pool_in_flight_requests", "Requests that wait or are worked on."),
    "queued": ("ember_pool_queued_requests", "Requests that wait in replicas."),
    "slope": ("ember_pool_in_flight_growth", "More requests in flight, each second."),
    "p95_s": ("ember_pool_p95_latency_seconds", "95 % of the swaps that were served took less."),
    "refused": ("ember_pool_refused_per_second", "Swaps refused for want of room or time."),
    "failed": ("ember_pool_failed_ratio", "Part of the swaps that failed."),
    "broken": ("ember_pool_broken_replicas", "Replicas that have failed or are stuck."),
    "first_ratio": ("ember_pool_first_request_ratio", "First swap over the usual; the worst."),
    "start_s": ("ember_pool_time_to_ready_seconds", "From process to ready; the worst."),
    "degraded": ("ember_pool_degraded_models", "Models on something else than was wanted."),
}
_NODE = {
    "gpus": ("ember_node_gpus", "GPUs that DCGM tells of."),
    "busy": ("ember_node_gpu_busy_ratio", "Share of time that GPUs computed; the mean."),
    "memory": ("ember_node_gpu_memory_ratio", "Share of GPU memory that is taken; the fullest."),
    "drivers": ("ember_node_driver_versions", "Versions of the driver."),
    "nvlink": ("ember_node_nvlink_bytes_per_second", "Between GPUs."),
    "faults": ("ember_node_gpu_faults", "GPUs that have reported an error (XID)."),
}
_FORECAST = {
    "expected": ("ember_forecast_requests", "Requests at once to expect."),
    "low": ("ember_forecast_low_requests", "The lower end of the forecast's band."),
    "high": ("ember_forecast_high_requests", "The upper end of the forecast's band."),
    "trend": ("ember_forecast_trend_ratio", "The last hour's demand over the usual."),
}


def registry(done: Round, now: float) -> CollectorRegistry:
    """What a round has seen and done; what is not known is left out."""
    from prometheus_client import CollectorRegistry, Gauge

    from keepalive.prescaler.diagnose import PoolState

    made = CollectorRegistry()

    def gauge(name: str, doc: str, value: float) -> None:
        Gauge(name, doc, registry=made).set(value)

    for layer, metrics in (
        (done.observation.model, _MODEL),
        (done.observation.node, _NODE),
        (done.observation.forecast, _FORECAST),
    ):
        for attribute, (name, doc) in metrics.items():
            if layer is not None and (value := getattr(layer, attribute)) is not None:
                gauge(name, doc, value)
    gauge("ember_floor_replicas", "The warm floor.", done.decision.floor)
    gauge("ember_floor_need_replicas", "What it would be without limits.", done.decision.need)
    gauge(
        "ember_floor_gpu_hours", "GPU-hours of floor today.", done.decision.memory.spent_gpu_hours
    )
    gauge("ember_prescale_time_seconds", "When the last round was done.", now)
    gauge(
        "ember_prescale_blind",
        "1 if nothing is seen of the replicas.",
        bool(done.observation.pool_failure),
    )
    states = Gauge("ember_pool_state", "1 for how the pool is.", ["state"], registry=made)
    for state in PoolState:
        states.labels(state).set(state is done.decision.finding.state)
    labels = ["by", "of", "what"]
    times = Gauge("ember_scale_time_seconds", "When it was changed.", labels, registry=made)
    replicas = Gauge("ember_scale_replicas", "To what it was changed.", labels, registry=made)
    for event in done.events:  # the latest of each kind is left
        times.labels(event.by, event.of, event.what).set(event.at.timestamp())
        replicas.labels(event.by, event.of, event.what).set(event.after)
    return made
