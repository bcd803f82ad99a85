"""All metrics of a replica, in one registry of its own; labels take few values by construction.

docs/metrics.md is written from what stands here.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from function.admission.degradation import Degradation
from function.admission.quota import QuotaEvent
from function.background.events.outcome import OutcomeKind
from function.background.jobs.job import JobState
from function.documented_enum import meanings
from function.request_context import Lane
from function.runtime import memory
from function.runtime.backends import kernel_cache
from function.telemetry.ending import Ending, ending
from function.telemetry.gpu_metrics import GpuMetrics
from function.telemetry.trust_metrics import count_trust
from warmup.phase import Phase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from function.admission.admission import Admission
    from function.admission.load import LoadEstimator
    from function.background.events.outcome import Outcome
    from function.service.service import Service
    from warmup.replica import Replica

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
_ITEMS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_SWAP = "/v1/swap"
_PROBES = frozenset(
    {"/healthz", "/readyz", "/warmup", "/metrics", "/v2/health/live", "/v2/health/ready"}
)
"""What platforms and operators ask, some of it every second: apart, so that shares of requests are
shares of what users ask."""
_PING = "ping"
_AFTER_FIRST = 50


M = TypeVar("M", Counter, Histogram)


@dataclass(frozen=True, slots=True)
class Described:
    """One metric as documentation has it: `labels` are names, `kind` is Prometheus's."""

    name: str
    kind: str
    labels: tuple[str, ...]
    doc: str


class Metrics:
    """What is counted and measured.

    Args:
        replica: its phase is read at the moment of a scrape, its changes are counted.
        service: how busy it is and what runs it is read at the moment of a scrape.
        admission: what waits is read at the moment of a scrape.
        stuck: says whether a thread is stuck.
    """

    def __init__(
        self, replica: Replica, service: Service, admission: Admission, stuck: Callable[[], bool]
    ) -> None:
        self._registry = CollectorRegistry()
        self.described: list[Described] = []
        self._swaps: list[float] = []

        self._of_requests(service)
        self._of_admission(admission)
        self._of_start(replica)
        self._of_models(service)
        self._events = self.counter(
            "ember_events",
            f"Events that were delivered, by what became of them. {meanings(OutcomeKind)}.",
            "outcome",
        )
        ended = meanings(state for state in JobState if not state.open)
        self._jobs = self.counter("ember_jobs", f"Jobs that ended here. {ended}.", "state")
        self._jobs_open = self.gauge(
            "ember_jobs_open",
            "Jobs that are `queued` or `running`, and callbacks that are `due`, of all replicas"
            " that share a Redis.",
            "state",
        )
        self._heartbeat_seconds = self._histogram(
            "ember_heartbeat_seconds", "Swaps that an idle replica made to stay warm."
        )
        self._heartbeat_failures = self.counter(
            "ember_heartbeat_failures", "Such swaps that failed; each ends the readiness."
        )
        count_trust(service.trust, self)
        self._of_gpus(replica, service)
        self._value("ember_stuck", "1 if a thread has been at one step for too long.", stuck)
        self._value("ember_resident_bytes", "Memory that the process holds (RSS).", memory.resident)

    def count(
        self,
        *,
        route: str,
        method: str,
        status: int,
        seconds: float,
        stages: Mapping[str, float],
        problem: str | None,
        warnings: Iterable[str],
        degraded: Iterable[str],
    ) -> None:
        """Count one request.

        Args:
            route: the template of its address, "ping" or "unmatched".
            method: as it came; one that is not in use counts as "other".
            status: of the answer.
            seconds: from the request's head to the answer's head.
            stages: milliseconds per stage; parts of one, as `swap.warp`, are counted with it.
            problem: the code, when the answer is a problem.
            warnings: the codes of the answer's warnings.
            degraded: the degradations under which the request was served.
        """
        if route in _PROBES:
            self._probes.labels(route, status).inc()
            return
        self._requests.labels(route, method if method in _METHODS else "other", status).inc()
        self._request_seconds.labels(route, ending(status, problem)).observe(seconds)
        if route == _SWAP and status == 200 and len(self._swaps) <= _AFTER_FIRST:
            self._swaps.append(seconds)
        for stage, ms in stages.items():
            if "." in stage:
                continue
            self._stage_seconds.labels(stage).observe(ms / 1e3)
        if problem and route != _PING:
            self._problems.labels(problem).inc()
        for warning in warnings:
            self._warnings.labels(warning).inc()
        for each in degraded:
            self._degraded_requests.labels(each).inc()

    def beat(self, seconds: float | None) -> None:
        """Count one heartbeat; None stands for one that failed."""
        if seconds is None:
            self._heartbeat_failures.labels().inc()
        else:
            self._heartbeat_seconds.labels().observe(seconds)

    def waited(self, where: str, lane: Lane, seconds: float) -> None:
        """Note how long something of a lane waited for a place, a thread or a batch."""
        self._waited_seconds.labels(where, lane).observe(seconds)

    def batched(self, stage: str, items: int) -> None:
        """Count the items of a batch."""
        self._batch_items.labels(stage).observe(items)

    def dropped(self, stage: str) -> None:
        """Count a member of a batch that was dropped before it ran."""
        self._dropped.labels(stage).inc()

    def bisected(self, stage: str) -> None:
        """Count a batch that failed and was tried again in halves."""
        self._bisections.labels(stage).inc()

    def text(self) -> bytes:
        """Everything in the text format of Prometheus."""
        self._gpus.read()
        return generate_latest(self._registry)

    def _on_tokens(self, event: QuotaEvent, tokens: int) -> None:
        self._quota_events.labels(event).inc()
        self._quota_tokens.labels(event).inc(tokens)

    def on_event(self, outcome: Outcome) -> None:
        """Count one event."""
        self._events.labels(outcome.kind).inc()

    def on_job(self, state: JobState) -> None:
        """Count one job."""
        self._jobs.labels(state).inc()

    def on_jobs(self, counts: Mapping[str, int]) -> None:
        """Note how many jobs there are."""
        for state, count in counts.items():
            self._jobs_open.labels(state).set(count)

    def _first_ratio(self) -> float:
        if len(self._swaps) < 2:
            return math.nan
        first, *rest = self._swaps
        return first / statistics.median(rest)

    def _of_requests(self, service: Service) -> None:
        self._requests = self.counter(
            "ember_requests",
            "Requests, without probes. The route is the template of the address, `ping` for what"
            " `ember ping` asks, or `unmatched`; status 499 means that the client went away.",
            "route",
            "method",
            "status",
        )
        asked = ", ".join(f"`{route}`" for route in sorted(_PROBES))
        self._probes = self.counter(
            "ember_probes",
            f"Requests of platforms and operators, which are counted nowhere else: {asked}.",
            "route",
            "status",
        )
        self._request_seconds = self._histogram(
            "ember_request_seconds",
            "From a request's head to its answer's head, by how it ended; probes are not in it."
            f" {meanings(Ending)}.",
            "route",
            "ending",
        )
        self._stage_seconds = self._histogram(
            "ember_stage_seconds",
            "Time of one request in one stage; `receive` is the network, `queue` the wait for a"
            " place, `load` the wait for a model that was left cold.",
            "stage",
        )
        self._problems = self.counter(
            "ember_problems", "Answers that were problems, but to probes and pings.", "code"
        )
        self._warnings = self.counter("ember_warnings", "Answers with that warning.", "code")
        self._value("ember_in_work", "Requests that hold a place.", lambda: service.in_work)
        self._value(
            "ember_first_request_ratio",
            f"Time of the first swap by request over the median of the next ones, {_AFTER_FIRST} at"
            " most; not a number before there are any.",
            self._first_ratio,
        )

    def _of_admission(self, admission: Admission) -> None:
        in_flight = self.gauge(
            "ember_in_flight", "Requests that wait for a place or hold one.", "lane"
        )
        waits = self.gauge(
            "ember_wait_seconds", "How long a new request would wait for a place.", "lane"
        )
        for lane in Lane:
            in_flight.labels(lane).set_function(partial(_in_flight, admission.load, lane))
            waits.labels(lane).set_function(partial(_wait_s, admission.load, lane))
        rungs = self.gauge(
            "ember_rung", f"1 while the rung is taken. {meanings(Degradation)}.", "rung"
        )
        for each in Degradation:
            rungs.labels(each).set_function(partial(_on, admission, each))
        self._degraded_requests = self.counter(
            "ember_rung_requests", "Requests that were served on the rung.", "rung"
        )
        self._quota_events = self.counter(
            "ember_quota_events", f"What happened to tokens. {meanings(QuotaEvent)}.", "event"
        )
        self._quota_tokens = self.counter(
            "ember_quota_tokens", "How many tokens that was about.", "event"
        )
        admission.quota.listeners.append(self._on_tokens)
        self._value(
            "ember_quota_store_down",
            "1 while the store of the quotas counts as down.",
            lambda: admission.quota.down,
        )

    def _of_start(self, replica: Replica) -> None:
        phases = self.gauge("ember_phase", "1 for the phase that the replica is in.", "phase")
        for each in Phase:
            phases.labels(each).set_function(partial(_is, replica, each))
        changes = self.counter("ember_phase_changes", "How often the phase was entered.", "phase")
        replica.listeners.append(lambda phase: changes.labels(phase).inc())
        for step in replica.steps:  # a replica begins before there is HTTP
            changes.labels(step.phase).inc()
        spans = self.gauge(
            "ember_cold_start_seconds",
            "Each span of the start, and `ready` for all of it from the start of the process; there"
            " when it is over.",
            "span",
        )
        replica.listeners.append(partial(_cold_start, replica, spans))

    def _of_models(self, service: Service) -> None:
        loads = self.gauge(
            "ember_model_load_seconds",
            "Verifying and loading the model; not a number before it is loaded.",
            "role",
        )
        degraded = self.gauge(
            "ember_degraded", "1 if the model runs on something else than was wanted.", "role"
        )
        passed = self.counter(
            "ember_backend_failures",
            "How often the backend was passed over for the model, because it did not run it.",
            "role",
            "backend",
        )
        service.engines.on_skipped = lambda each: passed.labels(each.role, each.backend).inc()
        for each in service.engines.skipped:  # loading begins before there is HTTP
            service.engines.on_skipped(each)
        bases = self.gauge(
            "ember_batch_base_seconds",
            "What a batch costs whatever its size, as learned; not a number before the first one.",
            "role",
        )
        slopes = self.gauge(
            "ember_batch_item_seconds", "What each of its items costs on top of that.", "role"
        )
        caps = self.gauge(
            "ember_batch_cap", "The most items of a batch that memory has room for.", "role"
        )
        for role in service.engines.by_role:
            loads.labels(role).set_function(partial(_load_s, service, role))
            degraded.labels(role).set_function(partial(_degraded, service, role))
            bases.labels(role).set_function(partial(_cost, service, role, "base"))
            slopes.labels(role).set_function(partial(_cost, service, role, "slope"))
            caps.labels(role).set_function(partial(_cap, service, role))
        self._batch_items = self._histogram(
            "ember_batch_items", "Items of a batch, padding not counted.", "role", buckets=_ITEMS
        )
        self._waited_seconds = self._histogram(
            "ember_waited_seconds",
            "Waits inside, by lane: of a request for a place, of one of its steps for a thread, and"
            " of one of its items for a batch.",
            "for",
            "lane",
        )
        self._dropped = self.counter(
            "ember_batch_dropped",
            "Members of batches that were dropped before they ran, because the client went away or"
            " the deadline passed.",
            "role",
        )
        self._bisections = self.counter(
            "ember_batch_bisections", "Batches that failed and were tried again in halves.", "role"
        )
        service.observer = self

    def _of_gpus(self, replica: Replica, service: Service) -> None:
        """What NVML says; nothing where no backend uses a GPU, or there is none."""
        self._gpus = gpus = GpuMetrics(
            on=service.engines.wants_gpu,
            info=self.gauge(
                "ember_gpu_info",
                "1 for each GPU, or slice of one (MIG), that this process can use.",
                "gpu",
                "name",
                "sm",
                "driver",
                "mig",
            ),
            memory=self.gauge(
                "ember_gpu_memory_bytes",
                "Memory of the GPU: `used` by all processes, `total`, and what this process holds,"
                " `mine`.",
                "gpu",
                "kind",
            ),
            utilisation=self.gauge(
                "ember_gpu_utilisation",
                "The part of the last moment in which the GPU computed; not a number for a slice.",
                "gpu",
            ),
            celsius=self.gauge("ember_gpu_celsius", "Temperature of the GPU.", "gpu"),
            fragmentation=self.gauge(
                "ember_gpu_fragmentation",
                "The part of what this process holds of the GPU that it did not hold when it became"
                " ready: batch sizes are the same ever since, so it is what allocators have lost.",
                "gpu",
            ),
        )
        replica.listeners.append(lambda phase: gpus.note() if phase is Phase.READY else None)
        self._value(
            "ember_gpu_kernels_refused",
            "Files of compiled kernels that TensorRT-RTX has refused, so that it compiled anew.",
            kernel_cache.refused,
        )

    def counter(self, name: str, doc: str, *labels: str) -> _Children[Counter]:
        """A counter, which docs/metrics.md has as well."""
        self.described.append(Described(f"{name}_total", "counter", labels, doc))
        return _Children(Counter(name, doc, labels, registry=self._registry))

    def gauge(self, name: str, doc: str, *labels: str) -> Gauge:
        """A gauge, likewise."""
        self.described.append(Described(name, "gauge", labels, doc))
        return Gauge(name, doc, labels, registry=self._registry)

    def _value(self, name: str, doc: str, read: Callable[[], float]) -> None:
        """A gauge without labels that is read at the moment of a scrape."""
        self.gauge(name, doc).set_function(lambda: float(read()))

    def _histogram(
        self, name: str, doc: str, *labels: str, buckets: Sequence[float] = _SECONDS
    ) -> _Children[Histogram]:
        self.described.append(Described(name, "histogram", labels, doc))
        made = Histogram(name, doc, labels, buckets=buckets, registry=self._registry)
        return _Children(made)


class _Children(Generic[M]):
    """The children of a metric by their labels' values, found faster than by the library.

    Args:
        metric: with labels, or without any.
    """

    def __init__(self, metric: M) -> None:
        self._metric: M = metric
        self._made: dict[tuple[object, ...], M] = {}

    def labels(self, *values: object) -> M:
        """The child with these values."""
        if (child := self._made.get(values)) is None:
            child = self._metric.labels(*values) if values else self._metric
            self._made[values] = child
        return child


def _in_flight(load: LoadEstimator, lane: Lane) -> float:
    return float(load.in_flight(lane))


def _wait_s(load: LoadEstimator, lane: Lane) -> float:
    return load.wait_s(lane)


def _on(admission: Admission, degradation: Degradation) -> float:
    return float(degradation in admission.degradations())


def _is(replica: Replica, phase: Phase) -> float:
    return float(replica.phase is phase)


def _cold_start(replica: Replica, spans: Gauge, phase: Phase) -> None:
    """Set the spans of the start when it is over; later phases change nothing."""
    if phase is Phase.READY and not replica.timeline.finished:
        spans.labels("ready").set(replica.timeline.now())
        for span in replica.timeline.spans:
            spans.labels(span.name).set(span.end - span.start)


def _load_s(service: Service, role: str) -> float:
    load_s = service.engines.by_role[role].load_s  # an upgrade changes the engine
    return math.nan if load_s is None else load_s


def _cost(service: Service, role: str, part: str) -> float:
    batcher = service.engines.batcher(role)
    return getattr(batcher.cost, part) if batcher and batcher.cost.known else math.nan


def _cap(service: Service, role: str) -> float:
    batcher = service.engines.batcher(role)
    return float(batcher.cap) if batcher else math.nan


def _degraded(service: Service, role: str) -> float:
    return float(role in service.engines.degraded)
