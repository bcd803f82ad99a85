"""Whether a new revision is as good as the old one: a pure decision on what Prometheus has seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keepalive.prometheus import Prometheus

ROUTE = "/v1/swap"
MORE_ERRORS, SLOWER = 0.005, 1.25


@dataclass(frozen=True, slots=True)
class RevisionMetrics:
    """What was seen of one revision.

    Attributes:
        requests: how many swaps it was asked for.
        errors: which part of them was answered 5xx, 0 to 1.
        p95_s: the time that 95 % of those that were served stayed below; None when nobody knows.
    """

    requests: float
    errors: float = 0.0
    p95_s: float | None = None


@dataclass(frozen=True, slots=True)
class JudgeLimits:
    """By how much the new revision may be worse.

    Attributes:
        errors: how much larger the part of errors may be, 0 to 1.
        slower: how many times as long the 95 % may take.
        requests: how many there have to be before anything is said.
    """

    errors: float = MORE_ERRORS
    slower: float = SLOWER
    requests: int = 30


@dataclass(frozen=True, slots=True)
class RolloutVerdict:
    """What was decided.

    Attributes:
        good: None when there were too few requests to tell.
        why: in words.
    """

    good: bool | None
    why: str


def judge(old: RevisionMetrics, new: RevisionMetrics, limits: JudgeLimits) -> RolloutVerdict:
    """Hold the new revision against the old one, over the same time.

    The old one counts as without errors, and as just as fast, where it had too few requests.

    A worked example with the default limits: of 1,000 swaps of the old one 1 % failed and 95 % took
    up to 0.4 s. A new one with 25 swaps is not judged, however it did; with 100 swaps it may fail
    in 1.5 % of them, and 95 % may take up to 0.5 s. Had the old one been asked for 20 swaps only,
    0.5 % would be allowed, and any time.
    """
    if new.requests < limits.requests:
        return RolloutVerdict(None, f"{new.requests:.0f} swaps are too few to tell")
    known = old.requests >= limits.requests
    most = (old.errors if known else 0.0) + limits.errors
    if new.errors > most:
        return RolloutVerdict(False, f"{new.errors:.1%} of its swaps fail; {most:.1%} are allowed")
    if known and old.p95_s and new.p95_s and new.p95_s > limits.slower * old.p95_s:
        return RolloutVerdict(
            False,
            f"95 % of its swaps take up to {new.p95_s:.3f} s, the old one's {old.p95_s:.3f} s",
        )
    took = f", 95 % within {new.p95_s:.3f} s" if new.p95_s else ""
    return RolloutVerdict(True, f"{new.requests:.0f} swaps, {new.errors:.1%} of them failed{took}")


def revision_metrics(
    prometheus: Prometheus, revision: str, seconds: float, matchers: str = ""
) -> RevisionMetrics:
    """What Prometheus has seen of a revision lately.

    Args:
        prometheus: to ask; its series have the label `revision`.
        revision: its name.
        seconds: how far back.
        matchers: further ones, e.g. 'namespace="ember"'.

    Raises:
        Failure: Prometheus does not answer.
    """
    labels = ",".join(filter(None, (f'route="{ROUTE}",revision="{revision}"', matchers)))
    window = f"[{max(seconds, 60):.0f}s]"
    total = prometheus.value(f"sum(increase(ember_requests_total{{{labels}}}{window}))")
    if not total:
        return RevisionMetrics(0.0)
    failed = prometheus.value(
        f'sum(increase(ember_requests_total{{{labels},status=~"5.."}}{window}))'
    )
    served = f'{labels},ending="served"'
    buckets = f"sum by (le) (rate(ember_request_seconds_bucket{{{served}}}{window}))"
    p95_s = prometheus.value(f"histogram_quantile(0.95, {buckets})")
    return RevisionMetrics(total, (failed or 0.0) / total, p95_s)
