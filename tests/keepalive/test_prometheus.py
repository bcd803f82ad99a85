"""Queries against a real Prometheus with recorded data, and against what is none."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from keepalive.failure import Failure
from keepalive.forecasting.demand import query
from keepalive.forecasting.forecast import STEP, Forecaster
from keepalive.prescaler import signals
from keepalive.prometheus import Prometheus
from tests.keepalive.answering import answering
from tests.keepalive.forecasting.weeks import BERLIN, usual
from tests.keepalive.recorded import demand, prometheus, recorded, text
from tests.running import unused_port

NAMESPACE = 'namespace="ember"'
PODS = ('namespace="ember",pod="a"', 'namespace="ember",pod="b"')
OTHER = 'namespace="other",pod="c"'


def phases(**of):
    """Which phase each pod is in."""
    names = ("starting", "fetching", "loading", "warming", "ready", "draining")
    return [
        (f'{labels},phase="{name}"', int(name == phase))
        for labels, phase in of["of"]
        for name in names
    ]


def buckets(labels, **upto):
    """A histogram of which as many more requests a minute end within each bound."""
    return [
        (f'{labels},route="/v1/swap",le="{le.replace("_", ".")}"', lambda ago, n=n: (60 - ago) * n)
        for le, n in upto.items()
    ]


def fits(value, at):
    """Whether it is a mean of the recorded demand up to then; at midnight that may have jumped."""
    some = [usual(at + timedelta(minutes=minute)) for minute in range(-10, 6)]
    return 0.98 * min(some) <= value <= 1.02 * max(some)


@pytest.fixture(scope="module")
def url(needs, tmp_path_factory):
    port = unused_port()
    a, b = PODS
    metrics = text(
        recorded(
            ember_phase=phases(of=[(a, "ready"), (b, "warming"), (OTHER, "ready")]),
            ember_in_flight=[
                (f'{a},lane="standard"', lambda ago: 100 - ago),  # one more each minute
                (f'{a},lane="bulk"', 2),
                (f'{OTHER},lane="bulk"', 50),
            ],
            ember_in_work=[(a, 4), (OTHER, 50)],
            ember_first_request_ratio=[(a, 1.04), (b, "NaN")],
            ember_cold_start_seconds=[(f'{a},span="ready"', 12.5), (f'{a},span="warm"', 3)],
            ember_degraded=[(f'{a},role="swap"', 1), (f'{a},role="detect"', 0)],
            # 94 % within half a second, all within one: the 95 % are between them
            ember_request_seconds_bucket=[
                *buckets(f'{a},ending="served"', **{"0_5": 94, "1": 100, "+Inf": 100}),
                *buckets(f'{a},ending="refused"', **{"0_5": 4000, "1": 4000, "+Inf": 4000}),
            ],
            ember_request_seconds_count=[
                (f'{a},route="/v1/swap",ending="{ending}"', lambda ago, n=n: (100 - ago) * n)
                for ending, n in (("served", 0.006), ("refused", 120), ("failed", 20))
            ],
            ember_request_seconds_sum=[
                (f'{a},route="/v1/swap",ending="served"', lambda ago: (100 - ago) * 0.03)
            ],
            ember_stuck=[(a, 0), (b, 1), (OTHER, 1)],
            DCGM_FI_DEV_GPU_UTIL=[
                ('gpu="0",DCGM_FI_DRIVER_VERSION="580.1"', 90),
                ('gpu="1",DCGM_FI_DRIVER_VERSION="570.2"', 50),
            ],
            DCGM_FI_DEV_FB_USED=[('gpu="0"', 76), ('gpu="1"', 20)],
            DCGM_FI_DEV_FB_FREE=[('gpu="0"', 4), ('gpu="1"', 60)],
            DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL=[('gpu="0"', 8), ('gpu="1"', 2)],
            DCGM_FI_DEV_XID_ERRORS=[('gpu="0"', 0), ('gpu="1"', 48)],
        ),
        demand(4, noise=0),
    )
    with prometheus(needs, tmp_path_factory.mktemp("prometheus"), port, metrics) as url:
        yield url


class TestSignals:
    def test_the_model_layer_is_what_replicas_say(self, url):
        model = signals.model(Prometheus(url), NAMESPACE)
        assert (model.ready, model.warming, model.degraded) == (1, 1, 1)
        assert model.in_flight == pytest.approx(101.5, abs=2)
        assert model.queued == pytest.approx(model.in_flight - 4)
        assert model.slope == pytest.approx(1 / 60, rel=0.01)
        assert model.p95_s == pytest.approx(0.583, abs=0.01)
        assert model.served_s == pytest.approx(5)
        assert model.refused == pytest.approx(2)
        assert model.turned_away == pytest.approx(10)
        assert model.failed == pytest.approx(1 / 7, rel=0.01)
        assert model.broken == 1
        assert (model.first_ratio, model.start_s) == (1.04, 12.5)

    def test_all_replicas_count_when_none_are_named(self, url):
        assert signals.model(Prometheus(url), "").ready == 2

    def test_where_no_replica_is_seen_nothing_is_known(self, url):
        assert signals.model(Prometheus(url), 'namespace="nowhere"') is None

    def test_the_node_layer_is_what_dcgm_says(self, url):
        node = signals.node(Prometheus(url), "")
        assert (node.gpus, node.drivers, node.faults) == (2, 2, 1)
        assert node.busy == pytest.approx(0.7)
        assert node.memory == pytest.approx(0.95)
        assert node.nvlink == 10 * 2**20

    def test_without_dcgm_nothing_is_known_of_nodes(self, url):
        assert signals.node(Prometheus(url), 'gpu="9"') is None


class TestRanges:
    def test_demand_is_read_and_forecast(self, url):
        now = datetime.now(UTC)
        begin = now.replace(minute=0, second=0, microsecond=0) - timedelta(days=28)
        points = Prometheus(url).points(query(NAMESPACE), begin, now, STEP)
        assert len(points) > 27 * 288
        for point in points[1000:-1:500]:
            assert fits(point.value, point.at)
        forecast = Forecaster(points, BERLIN, timedelta(minutes=15)).forecast(now)
        assert fits(forecast.expected, forecast.at)

    def test_more_points_than_one_answer_may_have_are_asked_for_in_parts(self, url):
        end = datetime.now(UTC).replace(microsecond=0)
        begin = end - timedelta(seconds=60 * 21_000)
        step = timedelta(seconds=60)
        points = Prometheus(url).points(query(NAMESPACE), begin, end, step)
        times = [point.at for point in points]
        assert len(times) == 21_001
        assert all(b - a == step for a, b in pairwise(times))

    def test_a_time_without_values_has_no_points(self, url):
        long_ago = datetime(2020, 1, 1, tzinfo=UTC)
        asked = (long_ago, long_ago + timedelta(hours=1), STEP)
        assert Prometheus(url).points(query(""), *asked) == ()


class TestFailures:
    def test_a_query_that_is_wrong_is_named_with_the_reason(self, url):
        with pytest.raises(Failure, match=r"cannot answer sum\(: .*parse error") as failure:
            Prometheus(url).value("sum(")
        assert failure.value.exit_code == 78

    def test_several_values_are_not_one(self, url):
        with pytest.raises(Failure, match="ember_in_work has 2 values, not one"):
            Prometheus(url).value("ember_in_work")
        now = datetime.now(UTC)
        with pytest.raises(Failure, match="ember_in_work has 2 series, not one"):
            Prometheus(url).points("ember_in_work", now, now, STEP)

    def test_what_is_no_number_is_no_value(self, url):
        assert Prometheus(url).value("vector(NaN)") is None
        assert Prometheus(url).value("vector(1) / 0") is None
        assert Prometheus(url).value("vector(0.5)") == 0.5

    def test_nobody_there_is_named_with_what_to_do(self, free_port):
        with pytest.raises(Failure, match=r"Connection refused\. See that the address") as failure:
            Prometheus(f"http://127.0.0.1:{free_port}").value("up")
        assert failure.value.exit_code == 69

    @pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"status": "error"}'])
    def test_another_server_is_named_with_what_to_do(self, body):
        with answering(404, body) as server, pytest.raises(Failure, match="answers 404, but not"):
            Prometheus(server.url).value("up")

    @pytest.mark.parametrize("url", ["prometheus:9090", "ftp://x", "", "http://"])
    def test_what_is_no_address_is_refused(self, url):
        with pytest.raises(Failure, match="is no address of a Prometheus"):
            Prometheus(url)

    def test_headers_prove_who_asks(self):
        body = json.dumps({"status": "success", "data": {"result": []}}).encode()
        with answering(200, body) as server:
            Prometheus(server.url, {"Authorization": "Bearer x"}).value("up")
        assert server.heads[0]["Authorization"] == "Bearer x"
        assert server.heads[0]["User-Agent"] == "ember-prescale"
