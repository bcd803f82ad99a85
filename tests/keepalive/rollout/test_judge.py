"""Whether a new revision is as good as the old one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepalive.prometheus import Prometheus
from keepalive.rollout.judge import JudgeLimits, RevisionMetrics, judge, revision_metrics
from tests.keepalive.recorded import prometheus, recorded, text

LIMITS = JudgeLimits(errors=0.01, slower=1.5, requests=30)
OLD = RevisionMetrics(1000, 0.002, 0.4)


@pytest.mark.parametrize(
    ("old", "new", "good"),
    [
        (OLD, RevisionMetrics(1000, 0.002, 0.4), True),
        (OLD, RevisionMetrics(1000, 0.012, 0.4), True),  # by as much as it may be
        (OLD, RevisionMetrics(1000, 0.0121, 0.4), False),
        (OLD, RevisionMetrics(1000, 0.0, 0.6), True),
        (OLD, RevisionMetrics(1000, 0.0, 0.601), False),
        (OLD, RevisionMetrics(29, 1.0, 9.0), None),
        (OLD, RevisionMetrics(0), None),
        (
            RevisionMetrics(5, 1.0, 9.0),
            RevisionMetrics(100, 0.011, 0.4),
            False,
        ),  # too few of the old one excuse nothing
        (RevisionMetrics(5, 1.0, 0.1), RevisionMetrics(100, 0.0, 9.0), True),
        (RevisionMetrics(1000, 0.5, 0.4), RevisionMetrics(100, 0.5, 0.4), True),
        (OLD, RevisionMetrics(100, 0.0, None), True),
    ],
)
def test_it_may_be_a_little_worse_but_not_more(old, new, good):
    assert judge(old, new, LIMITS).good is good


@given(
    st.builds(RevisionMetrics, st.floats(0, 1e6), st.floats(0, 1), st.floats(0.001, 60)),
    st.builds(RevisionMetrics, st.floats(30, 1e6), st.floats(0, 1), st.floats(0.001, 60)),
    st.floats(0, 1),
)
def test_fewer_errors_never_make_it_worse(old, new, less):
    better = RevisionMetrics(new.requests, new.errors * less, new.p95_s)
    assert not judge(old, new, LIMITS).good or judge(old, better, LIMITS).good


def test_what_prometheus_has_recorded_is_read_by_revision(needs, tmp_path, free_port):
    def counts(per_minute):
        return lambda ago: (100 - ago) * per_minute

    series = recorded(
        ember_requests_total=[
            ('route="/v1/swap",revision="ember-1",status="200"', counts(60)),
            ('route="/v1/swap",revision="ember-2",status="200"', counts(30)),
            ('route="/v1/swap",revision="ember-2",status="503"', counts(10)),
            ('route="/v1/faces",revision="ember-2",status="500"', counts(99)),
        ],
        ember_request_seconds_bucket=[
            (f'route="/v1/swap",revision="ember-2",ending="{ending}",le="{le}"', counts(n))
            for ending, le, n in (
                ("served", "0.5", 20),
                ("served", "1.0", 40),
                ("served", "+Inf", 40),
                ("refused", "0.5", 900),
                ("refused", "1.0", 900),
                ("refused", "+Inf", 900),
            )
        ],
    )
    with prometheus(needs, tmp_path, free_port, text(series)) as url:
        old, new, none = (revision_metrics(Prometheus(url), f"ember-{n}", 300) for n in (1, 2, 3))
    assert (old.errors, old.p95_s) == (0.0, None)
    assert old.requests == pytest.approx(300, rel=0.05)
    assert new.requests == pytest.approx(200, rel=0.05)
    assert new.errors == pytest.approx(0.25, rel=0.01)
    assert new.p95_s == pytest.approx(0.95, rel=0.01)
    assert none == RevisionMetrics(0)
