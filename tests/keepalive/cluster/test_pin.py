"""Traffic that is pinned by name is told of by everything that meets it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from keepalive.cluster.lease import Lease
from keepalive.cluster.pin import ROLLOUT, complaint, pinned
from keepalive.prescaler.config import PrescalerConfig
from keepalive.prescaler.prescaler import Prescaler
from keepalive.prescaler.schedule_file import parse
from tests.kube.objects import SERVICES
from tests.kube.service import service

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SCHEDULE = 'timezone = "UTC"\nfloor = 1\nmax_floor = 4\n'
A, B = "ember-00001", "ember-00002"


def named(name, percent, **more):
    return {"revisionName": name, "percent": percent, **more}


def follows(percent, **more):
    return {"latestRevision": True, "percent": percent, **more}


@pytest.mark.parametrize(
    ("traffic", "found"),
    [
        (None, ()),
        ([], ()),
        ([follows(100)], ()),
        ([{"percent": 100}], ()),
        ([named(A, 100)], (A,)),
        ([named(A, 60), named(B, 40)], (A, B)),
        ([named(A, 100), follows(0, tag="next")], (A,)),
        ([named(A, 75), follows(25, tag="canary")], ()),  # a new template gets something
        ([follows(100), named(A, 0, tag="old")], ()),
        ([{"revisionName": "", "percent": 100, "latestRevision": True}], ()),
    ],
)
def test_traffic_is_pinned_where_the_latest_revision_gets_none(traffic, found):
    made = service(traffic=traffic)
    made["metadata"]["name"] = "ember"
    assert pinned(made) == found
    assert bool(complaint(made)) == bool(found)


@pytest.fixture
def once(kube, connect):
    kube.create(SERVICES, "ember", service(min_scale=1))

    def once():
        prescaler = Prescaler(connect(), PrescalerConfig(), parse(SCHEDULE))
        spell = timedelta(seconds=60)
        lease = Lease.take(prescaler.cluster, prescaler.config.lease, "me", spell, NOON)
        return prescaler.once(NOON, lease)

    return once


class TestPrescale:
    def test_each_round_tells_of_it(self, kube, once):
        assert once().notes == ()
        kube.patch(SERVICES, "ember", {"spec": {"traffic": [named(A, 100)]}})
        for _ in range(2):
            (note,) = once().notes
            assert f"The traffic of ember is pinned to {A} by name" in note
            assert "`ember rollout --unpin`" in note

    def test_a_rollout_that_is_under_way_is_no_news(self, kube, once):
        changed = {"metadata": {"annotations": {ROLLOUT: "{}"}}}
        kube.patch(SERVICES, "ember", changed | {"spec": {"traffic": [named(A, 100)]}})
        assert once().notes == ()
