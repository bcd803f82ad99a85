"""What is asked of Prometheus to see a pool: the model layer of Ember, the node layer of DCGM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepalive.prescaler.pool import ModelLayer, NodeLayer

if TYPE_CHECKING:
    from keepalive.prometheus import Prometheus

_PHASES = "starting|fetching|loading|warming"
_MODEL = {
    "ready": 'sum(ember_phase{{phase="ready"{more}}})',
    "warming": 'sum(ember_phase{{phase=~"' + _PHASES + '"{more}}})',
    "in_flight": "sum(avg_over_time(ember_in_flight{{{only}}}[1m]))",
    "in_work": "sum(avg_over_time(ember_in_work{{{only}}}[1m]))",
    "slope": "sum(deriv(ember_in_flight{{{only}}}[5m]))",
    "p95_s": "histogram_quantile(0.95, sum by (le) "
    '(rate(ember_request_seconds_bucket{{route="/v1/swap",ending="served"{more}}}[2m])))',
    "served_s": 'sum(rate(ember_request_seconds_sum{{route="/v1/swap",ending="served"{more}}}[5m]))'
    ' / sum(rate(ember_request_seconds_count{{route="/v1/swap",ending="served"{more}}}[5m]))',
    "refused": "sum(rate(ember_request_seconds_count"
    '{{route="/v1/swap",ending="refused"{more}}}[2m]))',
    "failed": "sum(rate(ember_request_seconds_count"
    '{{route="/v1/swap",ending="failed"{more}}}[2m]))'
    ' / sum(rate(ember_request_seconds_count{{route="/v1/swap"{more}}}[2m]))',
    "broken": 'sum(ember_phase{{phase="failed"{more}}} or ember_stuck{{{only}}})',
    "first_ratio": "max(ember_first_request_ratio{{{only}}})",
    "start_s": 'max(ember_cold_start_seconds{{span="ready"{more}}})',
    "degraded": "sum(ember_degraded{{{only}}})",
}
_NODE = {
    "gpus": "count(DCGM_FI_DEV_GPU_UTIL{{{only}}})",
    "busy": "avg(avg_over_time(DCGM_FI_DEV_GPU_UTIL{{{only}}}[2m])) / 100",
    "memory": "max(DCGM_FI_DEV_FB_USED{{{only}}}"
    " / (DCGM_FI_DEV_FB_USED{{{only}}} + DCGM_FI_DEV_FB_FREE{{{only}}}))",
    "drivers": "count(count by (DCGM_FI_DRIVER_VERSION)"
    ' (DCGM_FI_DEV_GPU_UTIL{{DCGM_FI_DRIVER_VERSION!=""{more}}}))',
    "nvlink": "sum(DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{{{only}}}) * 1048576",
    "faults": "count(DCGM_FI_DEV_XID_ERRORS{{{only}}} > 0)",
}


def model(prometheus: Prometheus, matchers: str) -> ModelLayer | None:
    """The model layer; None when no replica is seen.

    Args:
        prometheus: whom to ask.
        matchers: of the replicas' metrics, e.g. `namespace="ember"`; "" for all.

    Raises:
        Failure: it does not answer.
    """
    seen = _values(prometheus, _MODEL, matchers)
    if (ready := seen["ready"]) is None:
        return None
    in_flight = seen["in_flight"] or 0.0
    return ModelLayer(
        ready=round(ready),
        warming=round(seen["warming"] or 0),
        in_flight=in_flight,
        queued=max(0.0, in_flight - (seen["in_work"] or 0.0)),
        slope=seen["slope"] or 0.0,
        p95_s=seen["p95_s"],
        served_s=seen["served_s"],
        refused=seen["refused"] or 0.0,
        failed=seen["failed"] or 0.0,
        broken=round(seen["broken"] or 0),
        first_ratio=seen["first_ratio"],
        start_s=seen["start_s"],
        degraded=round(seen["degraded"] or 0),
    )


def node(prometheus: Prometheus, matchers: str) -> NodeLayer | None:
    """The node layer; None when DCGM tells of no GPU.

    Args:
        prometheus: whom to ask.
        matchers: of DCGM's metrics, e.g. `namespace="ember"`; "" for all.

    Raises:
        Failure: it does not answer.
    """
    seen = _values(prometheus, _NODE, matchers)
    if not seen["gpus"]:
        return None
    return NodeLayer(
        gpus=round(seen["gpus"]),
        busy=seen["busy"],
        memory=seen["memory"],
        drivers=None if seen["drivers"] is None else round(seen["drivers"]),
        nvlink=seen["nvlink"],
        faults=round(seen["faults"] or 0),
    )


def _values(
    prometheus: Prometheus, queries: dict[str, str], matchers: str
) -> dict[str, float | None]:
    more = f", {matchers}" if matchers else ""
    return {
        name: prometheus.value(query.format(more=more, only=matchers))
        for name, query in queries.items()
    }
