"""What is counted of trust: refusals, marks that failed, lists, the audit."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Protocol

from function.documented_enum import meanings
from function.trust.audit.record import AuditKind
from function.trust.gate.verdict import GateCheck

if TYPE_CHECKING:
    from prometheus_client import Counter, Gauge

    from function.trust.gate.kept_list import KeptList
    from function.trust.gate.verdict import GateVerdict
    from function.trust.trust import Trust


class Children(Protocol):
    """A counter by the values of its labels."""

    def labels(self, *values: object) -> Counter:
        """The one with these values."""
        ...


class MetricMaker(Protocol):
    """Makes metrics that are documented; see `Metrics`."""

    def counter(self, name: str, doc: str, *labels: str) -> Children:
        """A counter."""
        ...

    def gauge(self, name: str, doc: str, *labels: str) -> Gauge:
        """A gauge."""
        ...


def count_trust(trust: Trust, make: MetricMaker) -> None:
    """Have everything counted that trust does, from now on."""
    gate = make.gauge("ember_gate_enabled", "1 while pictures are looked at.", "gate")
    gate.labels("content").set(trust.gate.on)
    verdicts = make.counter(
        "ember_gate_verdicts",
        f"What the gate has said, of each check: {meanings(GateCheck)}.",
        "check",
        "verdict",
    )
    trust.gate.listeners.append(partial(_count_verdict, verdicts))
    refusals = make.counter(
        "ember_refusals", "Requests that the gate has refused, by the code of the answer.", "code"
    )
    trust.on_refused = lambda code: refusals.labels(code).inc()
    _count_audit(trust, make)
    _count_lists(trust, make)
    failures = make.counter("ember_signing_failures", "Outputs that could not be signed (C2PA).")
    failures.labels()
    expiry = make.gauge(
        "ember_c2pa_certificate_expiry_seconds",
        "Until the certificate that signs outputs ends; not a number where nothing signs.",
    )
    expiry.set_function(lambda: _left_s(trust))
    if signer := trust.marker.signer:
        signer.on_failed = lambda: failures.labels().inc()


def _count_audit(trust: Trust, make: MetricMaker) -> None:
    written = make.counter(
        "ember_audit_lines", f"Lines of the audit. {meanings(AuditKind)}.", "kind"
    )
    failed = make.counter("ember_audit_failures", "Lines that could not be written.", "kind")
    trust.audit.on_written.append(lambda kind: written.labels(kind).inc())
    trust.audit.on_failed.append(lambda kind: failed.labels(kind).inc())


def _count_lists(trust: Trust, make: MetricMaker) -> None:
    people = make.gauge("ember_identity_list_people", "People on a list of identities.", "list")
    problems = make.gauge(
        "ember_identity_list_problem",
        "1 while a list cannot be read, so that the one before holds.",
        "list",
    )
    lists = {"deny": trust.gate.deny, "consent": trust.gate.enrolled}
    for name, kept in lists.items():
        if kept:
            people.labels(name).set_function(partial(_people, kept))
            problems.labels(name).set_function(partial(_has_problem, kept))


def _count_verdict(verdicts: Children, verdict: GateVerdict) -> None:
    verdicts.labels(verdict.check, "allowed" if verdict.allowed else "refused").inc()


def _people(kept: KeptList) -> float:
    return float(len(kept.people.people))


def _has_problem(kept: KeptList) -> float:
    return float(kept.problem is not None)


def _left_s(trust: Trust) -> float:
    signer = trust.marker.signer
    return (signer.not_after - datetime.now(UTC)).total_seconds() if signer else math.nan
