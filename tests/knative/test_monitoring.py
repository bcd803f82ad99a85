"""Alerts fire when users are harmed, and only then; what they ask for is exported."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
import yaml

from tests.knative.manifests import KNATIVE, ROOT, Manifests, render
from tests.knative.overlay import VALUES, kustomization

FOLDER = KNATIVE / "components" / "monitoring"
PLATFORM = {
    "DCGM_FI_DEV_FB_FREE",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DRIVER_VERSION",
    "kube_deployment_spec_replicas",
    "kube_deployment_status_replicas_available",
    "kube_horizontalpodautoscaler_status_condition",
    "kube_pod_container_status_waiting_reason",
    "kube_pod_status_unschedulable",
}
"""What others export: kube-state-metrics and the DCGM exporter."""
MINUTES = 90  # of input; rates over longer windows are those of what there is


def spec(name):
    return yaml.safe_load((FOLDER / name).read_text())["spec"]


RECORDS, ALERTS = spec("records.yaml"), spec("alerts.yaml")
NAMES = [rule["alert"] for group in ALERTS["groups"] for rule in group["rules"]]
RECORDED = {rule["record"] for group in RECORDS["groups"] for rule in group["rules"]}
WELL = {
    'ember_phase{phase="ready",pod="a"}': "1",
    'ember_phase{phase="warming",pod="a"}': "0",
    'ember_requests_total{route="/v1/swap",status="200"}': "+600",
    'ember_request_seconds_bucket{route="/v1/swap",ending="served",le="2.0"}': "+599",
    'ember_request_seconds_count{route="/v1/swap",ending="served"}': "+600",
    'ember_request_seconds_count{route="/v1/swap",ending="failed"}': "+1",
    'ember_request_seconds_count{route="/v1/swap",ending="refused"}': "+1",
    'ember_request_seconds_bucket{route="/v1/swap",ending="refused",le="2.0"}': "+1",
    'ember_requests_total{route="/",method="GET",status="200"}': "+6000",
    'ember_requests_total{route="unmatched",method="GET",status="404"}': "+6000",
    'ember_requests_total{route="ping",method="POST",status="503"}': "+60",
    'ember_probes_total{route="/readyz",status="200"}': "+6000",
    'ember_stage_seconds_count{stage="load"}': "0",
    'ember_first_request_ratio{pod="a"}': "1.1",
    'ember_phase_changes_total{phase="failed",pod="a"}': "0",
    'ember_degraded{role="swap"}': "0",
    'ember_stuck{pod="a"}': "0",
    "ember_heartbeat_failures_total": "0",
    'ember_batch_cap{role="swap"}': "8",
    "ember_quota_store_down": "0",
    'ember_events_total{outcome="done"}': "+10",
    'ember_events_total{outcome="failed"}': "0",
    'ember_gate_enabled{gate="content",pod="a"}': "1",
    'ember_refusals_total{code="refused_content"}': "+0.2",
    "ember_audit_failures_total": "0",
    'ember_identity_list_problem{list="deny",pod="a"}': "0",
    "ember_signing_failures_total": "0",
    "ember_c2pa_certificate_expiry_seconds": "5000000",
    'ember_ping{outcome="well"}': "1",
    "ember_prescale_time_seconds": "0+60x90",
    "ember_prescale_blind": "0",
    'kube_pod_status_unschedulable{pod="ember-1-deployment-x"}': "0",
    'kube_deployment_spec_replicas{deployment="ember-1-deployment"}': "2",
    'kube_deployment_status_replicas_available{deployment="ember-1-deployment"}': "2",
    'kube_horizontalpodautoscaler_status_condition{horizontalpodautoscaler="ember",'
    'condition="ScalingActive",status="false"}': "0",
    'DCGM_FI_DEV_FB_USED{pod="ember-1"}': "80",
    'DCGM_FI_DEV_FB_FREE{pod="ember-1"}': "20",
    'DCGM_FI_DEV_GPU_TEMP{pod="ember-1",DCGM_FI_DRIVER_VERSION="580.1"}': "50",
}
"""A replica that is well: each series' value, or by how much it grows in a minute. Far more than
users ask for is asked by probes, pings, and whoever looks at the page or for holes."""
HARM = {
    "EmberErrorsBurnFast": {'ember_request_seconds_count{route="/v1/swap",ending="failed"}': "+60"},
    "EmberErrorsBurnSlow": {'ember_request_seconds_count{route="/v1/swap",ending="failed"}': "+25"},
    "EmberSlowSwapsBurnFast": {
        'ember_request_seconds_bucket{route="/v1/swap",ending="served",le="2.0"}': "+500"
    },
    "EmberSlowSwapsBurnSlow": {
        'ember_request_seconds_bucket{route="/v1/swap",ending="served",le="2.0"}': "+550"
    },
    "EmberRefuses": {'ember_request_seconds_count{route="/v1/swap",ending="refused"}': "+10"},
    "EmberColdStartInRequests": {'ember_stage_seconds_count{stage="load"}': "+1"},
    "EmberFirstRequestSlow": {'ember_first_request_ratio{pod="b"}': "2"},
    "EmberBelowFloor": {'ember_phase{phase="ready",pod="a"}': "0"},
    "EmberAbsent": {
        'ember_phase{phase="ready",pod="a"}': None,
        'ember_phase{phase="warming",pod="a"}': None,
    },
    "EmberWarmupFails": {'ember_phase_changes_total{phase="failed",pod="a"}': "+1"},
    "EmberWarmsForLong": {'ember_phase{phase="warming",pod="a"}': "1"},
    "EmberDegraded": {'ember_degraded{role="swap"}': "1"},
    "EmberStuck": {'ember_stuck{pod="a"}': "1"},
    "EmberHeartbeatFails": {"ember_heartbeat_failures_total": "+1"},
    "EmberShortOfMemory": {'ember_batch_cap{role="swap"}': "8x60 4x60"},
    "EmberQuotaStoreDown": {"ember_quota_store_down": "1"},
    "EmberEventsFail": {'ember_events_total{outcome="failed"}': "+10"},
    "EmberGateOff": {'ember_gate_enabled{gate="content",pod="b"}': "0"},
    "EmberRefusalsRise": {'ember_refusals_total{code="refused_content"}': "+10"},
    "EmberAuditFails": {"ember_audit_failures_total": "+1"},
    "EmberIdentitiesUnreadable": {'ember_identity_list_problem{list="deny",pod="a"}': "1"},
    "EmberSigningFails": {"ember_signing_failures_total": "+1"},
    "EmberCertificateEnds": {"ember_c2pa_certificate_expiry_seconds": "1000000"},
    "EmberPingFails": {'ember_ping{outcome="well"}': "0"},
    "EmberPrescalerSilent": {"ember_prescale_time_seconds": "0"},
    "EmberPrescalerBlind": {"ember_prescale_blind": "1"},
    "EmberPodsDoNotCome": {'kube_pod_status_unschedulable{pod="ember-1-deployment-x"}': "1"},
    "EmberDoesNotScale": {
        'kube_deployment_spec_replicas{deployment="ember-1-deployment"}': "5",
    },
    "EmberHpaCannotScale": {
        'kube_horizontalpodautoscaler_status_condition{horizontalpodautoscaler="ember",'
        'condition="ScalingActive",status="false"}': "1"
    },
    "EmberGpuMemoryFull": {'DCGM_FI_DEV_FB_FREE{pod="ember-1"}': "2"},
    "EmberDriversDiffer": {
        'DCGM_FI_DEV_GPU_TEMP{pod="ember-2",DCGM_FI_DRIVER_VERSION="570.9"}': "50"
    },
}
"""For each alert, what differs from that when it has to fire."""
TOGETHER = {
    "EmberErrorsBurnFast": {"EmberErrorsBurnSlow"},
    "EmberSlowSwapsBurnFast": {"EmberSlowSwapsBurnSlow"},
}
"""Alerts that fire with another one."""


def series(values):
    """Input of promtool: one sample a minute."""
    made = []
    for name, value in values.items():
        if value is None:
            continue
        full = re.sub(
            r"^(\w+)(\{)?", lambda m: f'{m[1]}{{namespace="ember"{"," if m[2] else "}"}', name
        )
        many = f"0{value}x{MINUTES}" if value.startswith("+") else f"{value}x{MINUTES}"
        made.append({"series": full, "values": value if "x" in value else many})
    return made


def promtool(needs, folder, case):
    for name, content in (("records", RECORDS), ("alerts", ALERTS)):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content))
    test = {"rule_files": ["records.yaml", "alerts.yaml"], "evaluation_interval": "1m"}
    (folder / "test.yaml").write_text(yaml.safe_dump({**test, "tests": [case]}))
    words = [needs("promtool"), "test", "rules", str(folder / "test.yaml")]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def fires(needs, folder, values):
    """The names of the alerts that fire at the end."""
    at = f"{MINUTES}m"
    case = {"interval": "1m", "input_series": series(values)}
    query = {"expr": 'count by (alertname) (ALERTS{alertstate="firing"})', "eval_time": at}
    case["promql_expr_test"] = [query | {"exp_samples": [{"labels": "{none='none'}", "value": 1}]}]
    told = promtool(needs, folder, case)
    return set(re.findall(r'alertname="(\w+)"', told.stdout + told.stderr))


def test_a_replica_that_is_well_wakes_nobody(needs, tmp_path):
    assert fires(needs, tmp_path, WELL) == set()


def test_every_alert_is_proven():
    assert sorted(HARM) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_harm_is_told_by_the_alert_for_it(name, needs, tmp_path):
    fired = fires(needs, tmp_path, {**WELL, **HARM[name]})
    assert fired - TOGETHER.get(name, set()) - {"EmberBelowFloor"} == {name} - {"EmberBelowFloor"}
    assert name in fired


def test_the_floor_is_that_of_the_overlay(tmp_path):
    made = Manifests(render(kustomization(tmp_path, ["monitoring"])))
    (records,) = [one for one in made.of("PrometheusRule") if "records" in one["metadata"]["name"]]
    first = records["spec"]["groups"][0]["rules"][0]
    assert first == {"record": "ember:floor", "expr": f"vector( {VALUES['floor']} )"}


def test_every_alert_has_its_runbook():
    text = (ROOT / "docs" / "operate.md").read_text()
    for group in ALERTS["groups"]:
        for rule in group["rules"]:
            assert rule["annotations"]["runbook"] == f"docs/operate.md#{rule['alert'].lower()}"
            assert rule["labels"]["severity"] in {"page", "ticket"}
    assert re.findall(r"^### (\w+)$", text, re.MULTILINE) == NAMES


def expressions():
    for group in (*RECORDS["groups"], *ALERTS["groups"]):
        for rule in group["rules"]:
            yield rule.get("record") or rule["alert"], rule["expr"]
    dashboard = json.loads(
        yaml.safe_load((FOLDER / "dashboard.yaml").read_text())["data"]["ember.json"]
    )
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for annotation in dashboard["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_what_is_asked_for_is_exported(where, expression):
    bare = re.sub(r'"[^"]*"', '""', expression)
    asked = set(re.findall(r"\b(?:ember_\w+|kube_\w+|DCGM_\w+|ember:[\w:]+)", bare))
    rows = re.findall(
        r"^\| `(ember_\w+)` \| (\w+)", (ROOT / "docs" / "metrics.md").read_text(), re.MULTILINE
    )
    exported = {
        name + end
        for name, kind in rows
        for end in (("_bucket", "_count", "_sum") if kind == "histogram" else ("",))
    }
    exported |= set(re.findall(r"`(ember_\w+)", (ROOT / "docs" / "prescale.md").read_text()))
    assert asked or expression.startswith("vector")
    assert asked <= exported | RECORDED | PLATFORM


def test_labels_that_are_asked_for_are_there():
    table = dict(
        re.findall(
            r"^\| `(ember_\w+)` \| \w+ \| ([^|]*)\|",
            (ROOT / "docs" / "metrics.md").read_text(),
            re.MULTILINE,
        )
    )
    for where, expression in expressions():
        for name, inside in re.findall(
            r"\b(ember_\w+?)(?:_bucket|_count|_sum)?\{([^}]*)\}", expression
        ):
            if name not in table and f"{name}_count" not in table:
                continue  # of the pings or the pre-scaler
            labels = set(re.findall(r"(\w+)\s*(?:=|!)", inside)) - {"namespace", "le", "pod"}
            assert labels <= set(
                re.findall(r"`(\w+)`", table.get(name) or table[f"{name}_count"])
            ), where
