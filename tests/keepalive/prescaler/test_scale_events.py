"""One record of who changed the scale: autoscalers, the pre-scaler and people."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from click.testing import CliRunner

from keepalive.cli import commands
from keepalive.prescaler import metrics, scale_events
from keepalive.prescaler.config import PrescalerConfig
from keepalive.prescaler.prescaler import Prescaler
from keepalive.prescaler.scale_events import ScaleEvent
from keepalive.prescaler.schedule_file import parse
from tests.keepalive.prescaler import rounds
from tests.keepalive.prescaler.rounds import NOON
from tests.kube.knative import MIN_SCALE
from tests.kube.objects import REVISIONS, SCALERS, SERVICES
from tests.kube.service import service

SCHEDULE = """
timezone = "UTC"
floor = 1
max_floor = 20
[[window]]
start = "30 12 * * *"
hours = 1
floor = 4
"""


@pytest.fixture
def ember(kube):
    with kube.objects.changed_by("kn"):
        kube.create(SERVICES, "ember", service(min_scale=1))
    return kube


def once(cluster, minutes=0, config=None):
    return rounds.once(cluster, config, SCHEDULE, minutes=minutes)


def told(done):
    return [(one.by, one.of, one.what, one.before, one.after, one.why) for one in done.events]


def test_everybodys_changes_are_in_one_record(connect, ember):
    cluster = connect()
    first = [("people", "ember-00001", "floor", None, 1, "kn")]
    assert told(once(cluster)) == first
    ember.knative.demand = 3
    ember.knative.pass_a_window()
    kpa = [("kpa", "ember-00001", "replicas", None, 3, "demand")]
    done = once(cluster, 1)
    assert sorted(told(done)) == sorted([*first, *kpa])
    window = ("prescaler", "ember-00001", "floor", 1, 4, "window 30 12 * * *")
    assert window in told(once(cluster, 20))
    assert ("kpa", "ember-00001", "replicas", 3, 4, "the floor") in told(once(cluster, 21))
    with ember.objects.changed_by("kubectl-annotate"):
        ember.patch(REVISIONS, "ember-00001", {"metadata": {"annotations": {MIN_SCALE: "9"}}})
    done = once(cluster, 22)
    assert ("people", "ember-00001", "floor", 4, 9, "kubectl-annotate") in told(done)
    with ember.objects.changed_by("argocd"):
        ember.patch(SERVICES, "ember", {"spec": service(image="ember:2", min_scale=2)["spec"]})
    done = once(cluster, 23)
    assert ("people", "ember-00002", "floor", None, 2, "argocd") in told(done)
    again = once(cluster, 24)
    assert len(again.events) <= len(done.events) + 1, "nothing is told twice"


def test_an_hpas_changes_are_in_it_as_well(connect, kube):
    kube.create(SCALERS, "swap", {"spec": {"minReplicas": 1, "maxReplicas": 9}})
    config, cluster = PrescalerConfig(hpa="swap", per_replica=3), connect()
    once(cluster, config=config)
    key = next(key for key in kube.objects.kept if key.name == "swap")
    kube.objects.keep(key, {**kube.get(SCALERS, "swap"), "status": {"desiredReplicas": 6}})
    assert ("hpa", "swap", "replicas", None, 6, "demand") in told(once(cluster, 1, config))
    with kube.objects.changed_by("kubectl-edit"):
        kube.patch(SCALERS, "swap", {"spec": {"minReplicas": 2}})
    done = once(cluster, 2, config)
    assert ("people", "swap", "floor", 1, 2, "kubectl-edit") in told(done)


def test_a_change_that_was_made_and_not_told_is_the_prescalers(connect, ember):
    """The round was killed after it: the Lease knows what was meant."""
    cluster = connect()
    once(cluster)
    rounds.killed(cluster, SCHEDULE, minutes=20)
    found = [one for one in told(once(cluster, 25)) if one[3:5] == (1, 4)]
    assert found == [("prescaler", "ember-00001", "floor", 1, 4, "window 30 12 * * *")]


def test_a_hundred_are_kept():
    many = [
        ScaleEvent(NOON - timedelta(minutes=n), "kpa", "x", "replicas", n, n + 1, "demand")
        for n in range(150)
    ]
    assert scale_events.latest(many) == tuple(reversed(many[:100]))


def test_a_dry_run_records_nothing(connect, ember):
    cluster = connect()
    Prescaler(cluster, PrescalerConfig(), parse(SCHEDULE)).rehearse(NOON)
    assert not [call for call in ember.calls if call.verb != "get"]


def test_the_latest_of_each_is_a_metric(connect, ember):
    cluster = connect()
    once(cluster)
    registry = metrics.registry(once(cluster, 20), 0.0)
    labels = {"by": "prescaler", "of": "ember-00001", "what": "floor"}
    assert registry.get_sample_value("ember_scale_replicas", labels) == 4
    at = registry.get_sample_value("ember_scale_time_seconds", labels)
    assert at == (NOON + timedelta(minutes=20)).timestamp()


def test_the_command_lists_them(connect, ember, monkeypatch, tmp_path):
    monkeypatch.setenv("KUBECONFIG", str(ember.config(tmp_path)))
    done = CliRunner().invoke(commands, ["scale-events"])
    assert (done.exit_code, done.stdout) == (0, "")
    assert "No pre-scaler has kept a record" in done.stderr
    once(connect(), 20)
    done = CliRunner().invoke(commands, ["scale-events"])
    line = "2026-11-30 12:20:00Z  prescaler  ember-00001  floor 1 -> 4  window 30 12 * * *"
    assert line in done.stdout.splitlines()
    plain = CliRunner().invoke(commands, ["scale-events", "--json"]).stdout.splitlines()
    assert sorted(json.loads(one)["by"] for one in plain) == ["people", "prescaler"]
    ember.roles["pod"] = []
    monkeypatch.setenv("KUBECONFIG", str(ember.config(tmp_path, "pod")))
    assert CliRunner().invoke(commands, ["scale-events"]).exit_code == 77
