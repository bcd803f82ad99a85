"""All metrics of a replica, in one registry of its own; labels take few values by construction."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from warmup.phase import Phase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


class Metrics:
    """What is counted and measured.

    Args:
        phase: tells the replica's phase at the moment of a scrape.
        in_work: tells how many requests hold a place at the moment of a scrape.
    """

    def __init__(self, phase: Callable[[], Phase], in_work: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "ember_requests",
            "Requests by route template, method and status; 499: the client went away.",
            ["route", "method", "status"],
            registry=self._registry,
        )
        self._request_seconds = Histogram(
            "ember_request_seconds",
            "Time from the request's head to the answer's head.",
            ["route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._stage_seconds = Histogram(
            "ember_stage_seconds",
            "Time that one request spent in one stage.",
            ["stage"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._problems = Counter(
            "ember_problems",
            "Answers that were problems, by code.",
            ["code"],
            registry=self._registry,
        )
        self._warnings = Counter(
            "ember_warnings",
            "Answers that carried a warning, by code.",
            ["code"],
            registry=self._registry,
        )
        phases = Gauge(
            "ember_phase",
            "1 for the phase that the replica is in.",
            ["phase"],
            registry=self._registry,
        )
        for each in Phase:
            phases.labels(each).set_function(partial(_is, phase, each))
        Gauge("ember_in_work", "Requests that hold a place.", registry=self._registry).set_function(
            lambda: float(in_work())
        )

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
    ) -> None:
        """Count one request.

        Args:
            route: the template of its address, or "unmatched".
            method: as it came; one that is not in use counts as "other".
            status: of the answer.
            seconds: from the request's head to the answer's head.
            stages: milliseconds per stage.
            problem: the code, when the answer is a problem.
            warnings: the codes of the answer's warnings.
        """
        self._requests.labels(route, method if method in _METHODS else "other", status).inc()
        self._request_seconds.labels(route).observe(seconds)
        for stage, ms in stages.items():
            self._stage_seconds.labels(stage).observe(ms / 1e3)
        if problem:
            self._problems.labels(problem).inc()
        for warning in warnings:
            self._warnings.labels(warning).inc()

    def text(self) -> bytes:
        """Everything in the text format of Prometheus."""
        return generate_latest(self._registry)


def _is(phase: Callable[[], Phase], each: Phase) -> float:
    return float(phase() is each)
