"""A pre-scaler that goes on keeps the demand that it has read, and decides as if it had not."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import timedelta
from urllib.parse import parse_qs

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keepalive.cluster.lease import Lease
from keepalive.failure import Failure
from keepalive.forecasting.demand import DemandHistory
from keepalive.forecasting.forecast import STEP
from keepalive.prescaler.config import PrescalerConfig
from keepalive.prescaler.decide import FloorSamples, FloorSpec, decide
from keepalive.prescaler.observe import PoolObserver
from keepalive.prescaler.prescaler import Prescaler
from keepalive.prescaler.schedule_file import parse
from keepalive.prometheus import Prometheus
from tests.keepalive.answering import serving
from tests.keepalive.forecasting.weeks import weeks
from tests.keepalive.prescaler.rounds import NOON
from tests.kube.objects import SERVICES
from tests.kube.service import service

MINUTE = timedelta(minutes=1)
WEEK = timedelta(days=7)
LEASE_S = timedelta(minutes=2)
SCHEDULE = 'timezone = "Europe/Berlin"\nfloor = 1\nmax_floor = 40\n'
FULL = 5 * WEEK + timedelta(hours=2)
POINTS = tuple(weeks(6, end=NOON + timedelta(hours=12)))


class History:
    """The demand that a Prometheus knows at a time, and the ranges that it was asked for.

    Attributes:
        now: no later value is there.
        late: values that are younger are half of what they will be.
        down: whether it answers nothing.
        ranges: how long each was, since it was last looked at.
    """

    def __init__(self):
        self.now, self.late, self.down, self.ranges = NOON, timedelta(0), False, []

    def answer(self, path, body):
        if self.down:
            return 500, b""
        if not path.endswith("/query_range"):
            return 200, told([{"value": [0, "2"]}])
        asked = parse_qs(body.decode())
        begin, end = (float(asked[key][0]) for key in ("start", "end"))
        self.ranges.append(timedelta(seconds=end - begin))
        values = [
            [at, str(point.value / (1 + (point.at > self.now - self.late)))]
            for point in POINTS
            if point.at <= self.now and begin <= (at := point.at.timestamp()) <= end
        ]
        return 200, told([{"values": values}])

    def widths(self):
        """How long the ranges were that it was asked for since; parts of one are added up."""
        found, self.ranges = self.ranges, []
        return found


def told(result):
    return json.dumps({"status": "success", "data": {"result": result}}).encode()


@contextmanager
def history():
    known = History()
    with serving(known.answer, bodies=True) as server:
        known.prometheus = Prometheus(server.url)
        yield known


@pytest.fixture
def known():
    with history() as found:
        yield found


class Rounds:
    """Rounds of one process; `by` another one they are those of a new process."""

    def __init__(self, cluster, known):
        self.cluster, self.known = cluster, known
        self.config = PrescalerConfig(prometheus=known.prometheus, per_replica=0.5)
        self.observer = PoolObserver(self.config)

    def once(self, now, *, by="me"):
        self.known.now = now
        observer = self.observer if by == "me" else None
        prescaler = Prescaler(self.cluster, self.config, parse(SCHEDULE), observer)
        lease = Lease.take(self.cluster, self.config.lease, by, LEASE_S, now)
        return prescaler.once(now, lease, last=by != "me")


@pytest.fixture
def rounds(connect, kube, known):
    kube.create(SERVICES, "ember", service(min_scale=1))
    return Rounds(connect(), known)


def is_full(widths):
    """Five weeks, which are more points than one answer may have."""
    return len(widths) == 2 and sum(widths, STEP) == FULL


def test_only_the_first_round_reads_five_weeks(rounds, known):
    rounds.once(NOON)
    assert is_full(known.widths())
    for minute in range(1, 8):
        rounds.once(NOON + minute * MINUTE)
        assert known.widths() == [timedelta(minutes=30)]


def test_all_is_read_again_after_a_gap(rounds, known):
    rounds.once(NOON)
    rounds.once(NOON + 10 * MINUTE)
    known.widths()
    rounds.once(NOON + 21 * MINUTE)
    assert is_full(known.widths())


def test_all_is_read_again_after_another_process_has_acted(rounds, known):
    rounds.once(NOON)
    known.widths()
    rounds.once(NOON + 3 * MINUTE, by="another")
    assert is_full(known.widths())
    rounds.once(NOON + 4 * MINUTE)
    assert is_full(known.widths())
    rounds.once(NOON + 5 * MINUTE)
    assert known.widths() == [timedelta(minutes=30)]


def test_a_prometheus_that_was_away_for_a_moment_is_asked_for_what_came_since(known):
    kept = DemandHistory(known.prometheus, "", weeks=1)
    kept.read(NOON)
    known.down = True
    with pytest.raises(Failure):
        kept.read(NOON + MINUTE)
    known.down, known.now = False, NOON + 6 * MINUTE
    known.widths()
    read = kept.read(known.now)
    assert known.widths() == [timedelta(minutes=30)]
    assert read == DemandHistory(known.prometheus, "", weeks=1).read(known.now)


PAUSES = st.lists(st.integers(1, 25), min_size=1, max_size=8)
LATE = st.integers(0, 25).map(lambda minutes: minutes * MINUTE)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(PAUSES, LATE)
def test_what_is_kept_is_what_a_full_read_would_find(pauses, late):
    with history() as known:
        known.late = late
        kept = DemandHistory(known.prometheus, "", weeks=1)
        for pause in [0, *pauses]:
            known.now += pause * MINUTE
            full = DemandHistory(known.prometheus, "", weeks=1).read(known.now)
            assert kept.read(known.now) == full
            assert len(full) > 2000


def floor(found, now, schedule):
    samples = FloorSamples(1, model=found.model, expected=found.forecast.high)
    return decide(now, samples, FloorSpec(schedule, per_replica=0.5)).floor


@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.integers(1, 12), min_size=2, max_size=4), LATE)
def test_the_same_floors_are_decided_as_with_a_full_read(pauses, late):
    schedule = parse(SCHEDULE)
    with history() as known:
        known.late = late
        config = PrescalerConfig(prometheus=known.prometheus)
        kept = PoolObserver(config)
        for pause in [0, *pauses]:
            known.now += pause * MINUTE
            found = kept.observe(known.now, schedule)
            assert found.forecast is not None
            full = PoolObserver(config).observe(known.now, schedule)
            assert found == full
            assert floor(found, known.now, schedule) == floor(full, known.now, schedule) > 1
