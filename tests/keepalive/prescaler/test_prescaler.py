"""Rounds against a cluster that behaves as real ones do, and a real Prometheus with records."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from keepalive.cli import commands
from keepalive.cluster.lease import Lease, LeaseTaken
from keepalive.cluster.target import HOLD
from keepalive.failure import Failure
from keepalive.forecasting.forecast import Forecast
from keepalive.pinger import metrics as ping_metrics
from keepalive.pinger.check import PingOutcome, PingResult
from keepalive.pinger.ping import Readiness
from keepalive.pinger.swap import PingSwap
from keepalive.prescaler import metrics as pool_metrics
from keepalive.prescaler.config import PrescalerConfig
from keepalive.prescaler.decide import FloorDecision, FloorMemory, PastNeed
from keepalive.prescaler.diagnose import PoolDiagnosis, PoolState
from keepalive.prescaler.grant import Grant
from keepalive.prescaler.observe import Observation
from keepalive.prescaler.pool import ModelLayer, NodeLayer
from keepalive.prescaler.prescaler import Prescaler, Round
from keepalive.prescaler.scale_events import Scale, ScaleEvent
from keepalive.prescaler.schedule_file import parse
from keepalive.prescaler.state import PrescalerState, dump, load
from keepalive.prometheus import Prometheus
from tests.keepalive.prescaler.rounds import BATCH, NOON, SCHEDULE, SPELL, floor, once
from tests.keepalive.recorded import demand, prometheus, recorded, text
from tests.kube.knative import MIN_SCALE
from tests.kube.objects import LEASES, REVISIONS, SCALERS, SERVICES
from tests.kube.server import running
from tests.kube.service import service
from tests.running import unused_port

ALWAYS = SCHEDULE.replace("0 8 * * mon-fri", "0 0 * * *").replace("hours = 10", "hours = 24")
NOT_OURS = {"ember_request_seconds_sum"}
CANARY = '[[pool]]\ntag = "canary"\nfloor = 1\n'


def replicas(**of):
    """Recorded metrics of namespaces: replicas ready and warming, requests in flight, seconds of
    every swap."""
    metrics = {}
    for name, (ready, warming, in_flight, seconds) in of.items():
        where = f'namespace="{name}"'
        for metric, series in {
            "ember_phase": [
                *((f'{where},pod="r{n}",phase="ready"', 1) for n in range(ready)),
                *((f'{where},pod="w{n}",phase="loading"', 1) for n in range(warming)),
            ],
            "ember_in_flight": [(f'{where},lane="standard"', in_flight)],
            "ember_in_work": [(where, min(in_flight, 3 * ready))],
            "ember_request_seconds_bucket": [
                (
                    f'{where},route="/v1/swap",ending="served",le="{le}"',
                    lambda ago, n=n: (60 - ago) * n,
                )
                for le, n in (("0.5", 60 * (seconds <= 0.5)), ("5.0", 60), ("+Inf", 60))
            ],
        }.items():
            metrics.setdefault(metric, []).extend(series)
    return metrics


@pytest.fixture(scope="module")
def url(needs, tmp_path_factory):
    port = unused_port()
    metrics = replicas(
        calm=(2, 0, 1, 0.5), busy=(4, 2, 18, 0.5), late=(4, 0, 11, 5), slow=(4, 0, 2, 5)
    )
    metrics["DCGM_FI_DEV_GPU_UTIL"] = [('gpu="0"', 85)]
    metrics["DCGM_FI_DEV_FB_USED"] = [('gpu="0"', 75)]
    metrics["DCGM_FI_DEV_FB_FREE"] = [('gpu="0"', 5)]
    folder = tmp_path_factory.mktemp("prometheus")
    with prometheus(needs, folder, port, text(recorded(**metrics), demand(4, noise=0))) as found:
        yield found


@pytest.fixture
def ember(kube):
    """A cluster with a Service whose replicas are meant to have three requests at once."""
    kube.create(SERVICES, "ember", service(min_scale=1, target_utilization_percentage=75))
    return kube


def seen(url, namespace, **more):
    return PrescalerConfig(
        prometheus=Prometheus(url), matchers=f'namespace="{namespace}"', objective_s=0.8, **more
    )


class TestRounds:
    def test_a_window_raises_the_floor_of_the_latest_ready_revision(self, connect, ember):
        done = once(connect())
        assert (done.before, done.decision.floor, floor(ember)) == (1, 4, 4)
        (event,) = ember.list("events")
        assert event["message"] == "Warm floor from 1 to 4: window 0 8 * * mon-fri"
        assert len(ember.list(REVISIONS)) == 1

    def test_the_second_round_changes_nothing(self, connect, ember):
        cluster = connect()
        once(cluster)
        version = ember.get(REVISIONS, "ember-00001")["metadata"]["resourceVersion"]
        assert once(cluster, now=NOON + timedelta(minutes=1)).changes == ()
        assert ember.get(REVISIONS, "ember-00001")["metadata"]["resourceVersion"] == version
        assert len(ember.list("events")) == 1

    def test_a_day_is_lived_through(self, connect, ember):
        """Minute by minute across rounds that know of each other only through the cluster."""
        cluster, floors = connect(), {}
        begin = NOON.replace(hour=17, minute=30)
        for minute in range(0, 121, 1):
            now = begin + timedelta(minutes=minute)
            floors[f"{now:%H:%M}"] = once(cluster, now=now).decision.floor
        assert floors["17:59"] == floors["18:28"] == 4
        assert [floors[at] for at in ("18:29", "18:34", "18:39")] == [3, 2, 1]
        assert len(ember.list("events")) == 4

    def test_a_new_revision_gets_the_floor_at_once(self, connect, ember):
        cluster = connect()
        once(cluster)
        again = service(image="ember:2", min_scale=1)
        ember.patch(SERVICES, "ember", {"spec": again["spec"]})
        done = once(cluster, now=NOON + timedelta(minutes=1))
        assert (done.name, floor(ember, "ember-00002")) == ("ember-00002", 4)

    def test_a_hold_is_respected(self, connect, ember):
        ember.patch(SERVICES, "ember", {"metadata": {"annotations": {HOLD: "release day"}}})
        done = once(connect())
        assert (done.changes, floor(ember)) == ((), 1)
        assert done.decision.why.endswith("Service ember: release day")

    def test_what_the_platform_allows_is_not_exceeded(self, connect, kube):
        kube.create(SERVICES, "ember", service(min_scale=1, max_scale=2))
        assert once(connect()).decision.floor == 2

    def test_a_cluster_that_would_roll_pods_is_left_alone(self, tmp_path, monkeypatch):
        with running("1.20.4") as kube:
            monkeypatch.setenv("KUBECONFIG", str(kube.config(tmp_path)))
            kube.create(SERVICES, "ember", service(min_scale=1))
            done = CliRunner().invoke(commands, ["prescale", *given(tmp_path)])
            assert done.exit_code == 78
            assert "replaces all its pods" in done.stderr
            assert (floor(kube), kube.knative.rolled) == (1, [])
            spec = kube.get(LEASES, "ember-prescale-ember")["spec"]
            assert spec["holderIdentity"] == "", "who fails lets the Lease go"

    def test_an_autoscaler_of_a_deployment_is_changed_likewise(self, connect, kube):
        kube.create(SCALERS, "swap", {"spec": {"minReplicas": 1, "maxReplicas": 3}})
        done = once(connect(), PrescalerConfig(hpa="swap", per_replica=3))
        assert kube.get(SCALERS, "swap")["spec"]["minReplicas"] == 3
        assert done.decision.why.startswith("the platform allows 3; without it 4")
        with pytest.raises(Failure, match=r"does not reckon in requests at once.*--per-replica"):
            once(connect(), PrescalerConfig(hpa="swap"))

    @pytest.mark.parametrize("more", [BATCH, CANARY])
    def test_what_a_deployment_cannot_have_is_refused(self, connect, kube, more):
        kube.create(SCALERS, "swap", {"spec": {"minReplicas": 1, "maxReplicas": 3}})
        with pytest.raises(Failure, match="are for a Knative Service: with --hpa, leave them out"):
            once(connect(), PrescalerConfig(hpa="swap", per_replica=3), SCHEDULE + more)

    def test_a_floor_that_the_budget_cannot_have_is_refused(self, connect, kube):
        kube.create(SERVICES, "ember", service(gpus=2))
        tight = SCHEDULE.replace("max_floor = 20", "max_floor = 20\ngpu_hours_per_day = 40")
        with pytest.raises(Failure, match="floor of 1 alone takes 48 GPU-hours a day"):
            once(connect(), schedule=tight)


class TestPools:
    def split(self, kube, latest, *, tag=None):
        parts = [
            {"revisionName": "ember-00001", "percent": 100 - latest},
            {"latestRevision": True, "percent": latest} | ({"tag": tag} if tag else {}),
        ]
        given = service(image="ember:2", min_scale=0, traffic=parts)
        kube.patch(SERVICES, "ember", {"spec": given["spec"]})

    def test_a_canary_gets_its_own_floor_and_never_the_stable_ones(self, connect, ember):
        self.split(ember, 5, tag="canary")
        once(connect(), schedule=SCHEDULE + CANARY)
        assert (floor(ember), floor(ember, "ember-00002")) == (4, 1)
        told = {event["message"] for event in ember.list("events")}
        assert "Warm floor from 0 to 1: the floor of its pool" in told

    def test_a_revision_that_takes_over_gets_its_share_before(self, connect, ember):
        cluster = connect()
        for latest, floors in ((25, (4, 1)), (50, (2, 4)), (75, (1, 4)), (100, (0, 4))):
            self.split(ember, latest)
            once(cluster)
            assert (floor(ember), floor(ember, "ember-00002")) == floors, latest

    def test_a_revision_without_traffic_lets_its_replicas_go(self, connect, ember):
        cluster = connect()
        once(cluster)
        parts = [
            {"revisionName": "ember-00001", "percent": 0, "tag": "previous"},
            {"latestRevision": True, "percent": 100},
        ]
        given = service(image="ember:2", min_scale=1, traffic=parts)
        ember.patch(SERVICES, "ember", {"spec": given["spec"]})
        once(cluster)
        assert (floor(ember), floor(ember, "ember-00002")) == (0, 4)

    def test_batch_gives_way_before_online_gets_more(self, connect, ember):
        ember.create(SERVICES, "batch", service(min_scale=6))
        once(connect(), schedule=SCHEDULE + BATCH)
        assert (floor(ember), floor(ember, "batch-00001")) == (4, 4)
        told = [event["involvedObject"]["name"] for event in ember.list("events")]
        assert sorted(told) == ["batch-00001", "ember-00001"]
        patched = [call.name for call in ember.calls if call.verb == "patch"]
        assert patched == ["batch-00001", "ember-00001"]

    def test_batch_gets_back_what_online_has_left(self, connect, ember):
        ember.create(SERVICES, "batch", service(min_scale=2))
        once(connect(), schedule=SCHEDULE + BATCH)
        patched = [call.name for call in ember.calls if call.verb == "patch"]
        assert patched == ["ember-00001", "batch-00001"]
        assert floor(ember, "batch-00001") == 4

    def test_a_hold_on_batch_is_respected(self, connect, ember):
        ember.create(SERVICES, "batch", service(min_scale=6, annotations={HOLD: "x"}))
        once(connect(), schedule=SCHEDULE + BATCH)
        assert (floor(ember), floor(ember, "batch-00001")) == (4, 6)


class TestTwoAtOnce:
    def test_the_second_leaves_it_to_the_first(self, connect, ember):
        cluster = connect()
        Lease.take(cluster, "ember-prescale-ember", "other", SPELL, NOON)
        with pytest.raises(LeaseTaken, match="other has the Lease"):
            once(cluster)
        assert floor(ember) == 1

    def test_a_change_by_somebody_else_is_read_again(self, connect, ember):
        """A person raises the floor to 9 between reading and writing: it stays, for now."""

        def meanwhile(call):
            if call.verb == "patch":
                ember.before = lambda _: None
                ember.patch(
                    REVISIONS, "ember-00001", {"metadata": {"annotations": {MIN_SCALE: "9"}}}
                )

        ember.before = meanwhile
        done = once(connect())
        assert (done.before, done.decision.floor, floor(ember)) == (9, 9, 9)
        assert done.changes == ()

    def test_a_hold_that_comes_in_between_is_respected(self, connect, ember):
        def meanwhile(call):
            if call.verb == "patch":
                ember.before = lambda _: None
                ember.patch(SERVICES, "ember", {"metadata": {"annotations": {HOLD: "true"}}})
                ember.patch(REVISIONS, "ember-00001", {"metadata": {"labels": {"a": "b"}}})

        ember.before = meanwhile
        assert once(connect()).changes == ()
        assert floor(ember) == 1

    def test_who_is_disturbed_again_and_again_gives_up(self, connect, ember):
        def meanwhile(call):
            if call.verb == "patch":
                ember.patch(
                    REVISIONS, "ember-00001", {"metadata": {"labels": {"n": str(len(ember.calls))}}}
                )

        ember.before = meanwhile
        with pytest.raises(Failure, match="Somebody else keeps changing ember") as failure:
            once(connect())
        assert failure.value.exit_code == 75

    def test_what_was_decided_under_a_lost_lease_is_not_remembered(self, connect, ember):
        cluster = connect()
        prescaler = Prescaler(cluster, PrescalerConfig(), parse(SCHEDULE))
        slow = Lease.take(cluster, "ember-prescale-ember", "slow", SPELL, NOON - 2 * SPELL)
        once(cluster)
        remembered = ember.get(LEASES, "ember-prescale-ember")["metadata"]["annotations"]
        with pytest.raises(LeaseTaken, match="was lost"):
            prescaler.once(NOON, slow)
        after = ember.get(LEASES, "ember-prescale-ember")["metadata"]["annotations"]
        assert after == remembered


class TestSeen:
    NIGHT = NOON.replace(hour=2)

    def test_requests_in_flight_raise_the_floor(self, connect, ember, url):
        done = once(connect(), seen(url, "busy"), now=self.NIGHT)
        assert floor(ember) == 6  # 18 requests, 3 for each
        assert (done.observation.model.ready, done.observation.model.warming) == (4, 2)
        assert done.decision.why == "18.0 requests in flight, soon 18.0"
        assert done.decision.finding.state is PoolState.FINE

    def test_too_few_and_slow_are_told_apart(self, connect, ember, url):
        cluster = connect()
        done = once(cluster, seen(url, "late"), now=self.NIGHT)
        assert (done.decision.finding.state, floor(ember)) == (PoolState.TOO_FEW, 5)
        ember.patch(REVISIONS, "ember-00001", {"metadata": {"annotations": {MIN_SCALE: "1"}}})
        done = once(cluster, seen(url, "slow"), now=self.NIGHT)
        assert (done.decision.finding.state, floor(ember)) == (PoolState.SLOW, 1)
        assert "GPU memory is 94% taken" in done.decision.finding.advice[0]

    def test_the_forecast_raises_the_floor(self, connect, ember, url):
        """All namespaces together have a history; the calm one alone has none."""
        now = datetime.now(UTC)
        wanted = PrescalerConfig(prometheus=Prometheus(url), matchers='namespace=~"calm|ember"')
        done = once(connect(), wanted, SCHEDULE, now)
        assert done.observation.forecast.weeks >= 2
        needed = done.observation.forecast.high / 3
        assert done.decision.need >= needed
        done = once(connect(), seen(url, "calm"), SCHEDULE, now)
        assert done.observation.forecast is None

    def test_without_an_answer_the_schedule_raises_and_nothing_falls(
        self, connect, ember, free_port
    ):
        gone = PrescalerConfig(prometheus=Prometheus(f"http://127.0.0.1:{free_port}"))
        cluster = connect()
        done = once(cluster, gone)
        assert floor(ember) == 4
        assert "does not answer" in done.complaints[0]
        for minute in range(0, 24 * 60, 10):
            once(cluster, gone, now=NOON.replace(hour=20) + timedelta(minutes=minute))
        assert floor(ember) == 4

    def test_a_forecast_that_cannot_be_had_hides_no_replicas(
        self, connect, ember, needs, tmp_path, free_port
    ):
        """A Prometheus that may look at few samples only answers all but the long query."""
        metrics = text(recorded(**replicas(busy=(4, 2, 18, 0.5))), demand(2))
        little = "--query.max-samples=2000"
        with prometheus(needs, tmp_path, free_port, metrics, little) as url:
            wanted = PrescalerConfig(prometheus=Prometheus(url))
            done = once(connect(), wanted, now=datetime.now(UTC))
        assert done.decision.need == 6
        (complaint,) = done.complaints
        assert complaint.startswith("There is no forecast. Prometheus cannot answer sum(rate(")

    def test_replicas_that_nobody_scrapes_are_told(self, connect, ember, url):
        done = once(connect(), seen(url, "nowhere"))
        assert 'knows no replica with namespace="nowhere"' in done.complaints[0]
        assert floor(ember) == 4


class TestMemory:
    def test_it_comes_back_as_it_went(self):
        at = NOON.replace(minute=3)
        memory = FloorMemory((PastNeed(NOON, 9), PastNeed(at, 4)), at, NOON, at.date(), 12.5)
        first = Grant(4, 1, None, NOON, NOON, "x")
        again = Grant(2, 1, 4, NOON, at, "y", reduced=True)
        events = (
            ScaleEvent(NOON, "kpa", "a", "replicas", None, 2, "demand"),
            ScaleEvent(at, "people", "a", "floor", 1, 4, "kubectl"),
        )
        scales = {"a": Scale(1, None), "b": Scale(2, 3)}
        kept = PrescalerState(memory, {"a": first, "b": again}, ("a",), scales, events)
        assert load(dump(kept)) == kept
        assert load(dump(PrescalerState())) == PrescalerState()

    @pytest.mark.parametrize(
        "text",
        [
            None,
            "",
            "x",
            "[]",
            "1",
            '{"peaks": 1}',
            '{"peaks": [[1]]}',
            '{"at": "x"}',
            '{"at": 1e99}',
            '{"day": "2026-13-01"}',
            '{"spent": "much"}',
            '{"grants": {"a": {"floor": 1}}}',
            '{"grants": [1]}',
            '{"told": 1}',
            '{"scales": {"a": [1]}}',
            '{"events": [[1, "kpa"]]}',
        ],
    )
    def test_what_cannot_be_read_is_forgotten(self, text):
        assert load(text) == PrescalerState()


def given(folder, schedule=ALWAYS):
    """Arguments for a schedule."""
    path = folder / "schedule.toml"
    path.write_text(schedule)
    return ["--schedule", str(path)]


class TestCommand:
    """`ember prescale`."""

    @pytest.fixture
    def run(self, kube, tmp_path, monkeypatch):
        monkeypatch.setenv("KUBECONFIG", str(kube.config(tmp_path)))
        return lambda *words: CliRunner().invoke(
            commands, ["prescale", *given(tmp_path), *words], catch_exceptions=False
        )

    def test_it_says_what_it_does_and_why(self, run, ember):
        done = run()
        assert done.exit_code == 0
        assert done.stdout.splitlines() == [
            "ember-00001: the floor changes from 1 to 4",
            "  why: window 0 0 * * *",
        ]
        done = run()
        assert done.stdout.splitlines()[0] == "ember-00001: the floor stays at 4"

    def test_a_dry_run_changes_nothing_at_all(self, run, ember):
        done = run("--dry-run")
        assert done.exit_code == 0
        assert "the floor would change from 1 to 4" in done.stdout
        assert {call.verb for call in ember.calls} == {"get"}
        assert floor(ember) == 1

    @pytest.mark.parametrize(
        ("at", "told"),
        [
            ("2026-11-30T07:47", ["2026-11-30 07:47+00:00: the schedule calls for a floor of 1"]),
            (
                "2026-11-30T08:50+01:00",
                [
                    "2026-11-30 07:50+00:00: the schedule calls for a floor of 4",
                    "  why: window 0 8 * * mon-fri",
                    "  then 1 are wanted, and 4 within 12 min",
                    "  and 1 for the pool canary",
                ],
            ),
            ("2026-11-30T12:00", ["2026-11-30 12:00+00:00: the schedule calls for a floor of 4"]),
            ("2026-11-29T12:00", ["2026-11-29 12:00+00:00: the schedule calls for a floor of 1"]),
        ],
    )
    def test_a_schedule_is_tried_without_a_cluster(self, tmp_path, monkeypatch, at, told):
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
        words = ["prescale", *given(tmp_path, SCHEDULE + CANARY), "--dry-run", "--at", at]
        done = CliRunner().invoke(commands, words)
        assert (done.exit_code, done.stderr) == (0, "")
        assert done.stdout.splitlines()[: len(told)] == told
        plain = json.loads(CliRunner().invoke(commands, [*words, "--json"]).stdout)
        assert f"floor of {plain['floor']}" in told[0]
        assert plain["pools"] == {"canary": 1}

    def test_a_time_is_by_the_clocks_of_the_schedule(self, tmp_path):
        berlin = SCHEDULE.replace("UTC", "Europe/Berlin")
        words = ["prescale", *given(tmp_path, berlin), "--dry-run", "--at=2026-07-01T17:59"]
        done = CliRunner().invoke(commands, words)
        assert done.stdout.startswith("2026-07-01 17:59+02:00: the schedule calls for a floor of 4")

    def test_a_dry_run_without_a_cluster_asks_the_schedule(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
        done = CliRunner().invoke(commands, ["prescale", *given(tmp_path), "--dry-run"])
        assert done.exit_code == 0
        assert "the schedule calls for a floor of 4" in done.stdout
        assert "only the schedule is asked. No cluster is configured" in done.stderr
        done = CliRunner().invoke(commands, ["prescale", *given(tmp_path)])
        assert done.exit_code == 78

    @pytest.mark.parametrize("at", ["tomorrow", "2026-13-01", "25:00", ""])
    def test_what_is_no_time_is_told(self, run, at):
        done = run("--dry-run", "--at", at)
        assert done.exit_code == 2
        assert "Write it as 2026-12-24T18:00" in done.stderr
        assert run("--at=2026-12-24").exit_code == 2, "without --dry-run"

    def test_json_has_everything(self, run, ember, url):
        done = run("--json", f"--prometheus={url}", '--selector=namespace="late"', "--objective=1")
        told = json.loads(done.stdout)
        assert (told["target"], told["before"], told["floor"]) == ("ember-00001", 1, 5)
        assert told["state"] == "too_few"
        assert told["model"]["ready"] == 4
        assert told["node"]["memory"] == pytest.approx(75 / 80)
        assert told["changes"] == [{"name": "ember-00001", "before": 1, "after": 5}]
        assert (told["forecast"], told["complaints"], told["dry_run"]) == (None, [], False)

    def test_the_two_layers_are_published_apart(self, run, ember, url, tmp_path):
        file = tmp_path / "ember.prom"
        words = (f"--prometheus={url}", '--selector=namespace="busy"', f"--metrics={file}")
        assert run(*words).exit_code == 0
        lines = file.read_text().splitlines()
        for line in (
            "ember_pool_ready_replicas 4.0",
            "ember_pool_warming_replicas 2.0",
            "ember_pool_queued_requests 6.0",
            "ember_node_gpu_busy_ratio 0.85",
            "ember_floor_replicas 6.0",
            "ember_floor_need_replicas 6.0",
            "ember_prescale_blind 0.0",
            'ember_pool_state{state="fine"} 1.0',
            'ember_pool_state{state="slow"} 0.0',
        ):
            assert line in lines
        assert any(line.startswith("ember_pool_p95_latency_seconds 0.4") for line in lines)

    def test_a_blind_round_acts_and_fails(self, run, ember, free_port):
        done = run(f"--prometheus=http://127.0.0.1:{free_port}")
        assert done.exit_code == 75
        assert "Warning: Prometheus at" in done.stderr
        assert floor(ember) == 4

    def test_another_one_at_it_is_no_failure(self, run, ember, connect):
        Lease.take(connect(), "ember-prescale-ember", "other", SPELL, datetime.now(UTC))
        done = run()
        assert done.exit_code == 0
        assert "Nothing is done here: other has the Lease" in done.stderr
        assert floor(ember) == 1

    def test_what_is_wrong_is_told_in_one_line(self, run, kube, tmp_path):
        done = run()
        assert done.exit_code == 78
        assert done.stderr.startswith("Error: There is no Knative Service ember in the namespace")
        done = CliRunner().invoke(commands, ["prescale", *given(tmp_path, "floor = x")])
        assert done.exit_code == 78
        assert "is wrong: Invalid value" in done.stderr
        assert run("--dry-run", "--watch").exit_code == 2
        assert run("--prometheus=x").exit_code == 78
        assert run("--prometheus-header=secret").exit_code == 2

    def test_ember_passes_words_and_exit_codes_on(self, tmp_path, free_port):
        words = ("prescale", *given(tmp_path), f"--prometheus=:{free_port}")
        done = subprocess.run(
            [sys.executable, "-m", "function", *words], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (78, "")
        assert done.stderr.startswith("Error: ':")

    def test_without_rights_it_says_which(self, run, ember):
        ember.roles["other"] = []
        done = run("--knative-version=1.22")
        assert done.exit_code == 77
        assert "Not allowed to get leases.coordination.k8s.io" in done.stderr

    def test_watching_goes_on_until_it_is_told_to_stop(self, ember, tmp_path):
        """A schedule that breaks is told and outlived; the Lease is let go at the end."""
        words = given(tmp_path)
        config = {**os.environ, "KUBECONFIG": str(ember.config(tmp_path))}
        with subprocess.Popen(
            [sys.executable, "-m", "keepalive", "prescale", *words, "--watch", "--every=5"],
            env=config,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert "the floor changes from 1 to 4" in process.stdout.readline()
            given(tmp_path, "floor = x")
            assert "is wrong: Invalid value" in process.stderr.readline()
            held = ember.get(LEASES, "ember-prescale-ember")["spec"]
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        assert held["holderIdentity"].startswith(socket.gethostname())
        assert held["leaseDurationSeconds"] >= 12
        assert ember.get(LEASES, "ember-prescale-ember")["spec"]["holderIdentity"] == ""
        assert floor(ember) == 4


def test_the_docs_know_every_metric():
    text = (Path(__file__).parents[3] / "docs" / "prescale.md").read_text()
    told = {name for name in re.findall(r"`(ember_\w+)", text) if name not in NOT_OURS}
    swapped = PingSwap(1.0, 0.7, 0.3, (), (), None)
    found = PingResult(
        "http://x", PingOutcome.WELL, None, Readiness(True, "ready", None, 1.0), swapped
    )
    finding = PoolDiagnosis(PoolState.FINE)
    done = Round(
        "x",
        1,
        FloorDecision(1, 1, "", finding, FloorMemory()),
        Observation(
            ModelLayer(1, p95_s=1.0, first_ratio=1.0, start_s=1.0),
            NodeLayer(1, 1.0, 1.0, 1, 1.0),
            Forecast(NOON, 1.0, 1.0, 1.0, 1.0, 4),
        ),
        (),
        events=(ScaleEvent(NOON, "kpa", "x", "replicas", 1, 2, "demand"),),
    )
    registries = (ping_metrics.registry(found, 0.0), pool_metrics.registry(done, 0.0))
    assert {metric.name for each in registries for metric in each.collect()} == told


def test_the_schedule_of_the_docs_is_sound():
    text = (Path(__file__).parents[3] / "docs" / "prescale.md").read_text()
    (shown,) = re.findall(r"```toml\n(.+?)```", text, re.DOTALL)
    schedule = parse(shown)
    assert (schedule.floor, schedule.max_floor, schedule.batch.gpus) == (1, 20, 24)
